#include "models/random_descriptions.h"

#include <algorithm>
#include <sstream>

#include "models/random_blocks.h"

namespace tfc::models {
namespace {

/// One description in the making. Each method writes a table, or says nothing and leaves its defaults.
class Description {
 public:
  explicit Description(uint64_t seed) : seed_(seed), draw_(seed), draw_experts_(seed + (uint64_t{1} << 32)) {}

  Case make() {
    choose();
    model();
    embedding();
    position();
    norm();
    table("attention", random_attention(draw_, facts_) + random_sight(draw_, facts_));
    table("ffn", random_ffn(draw_) + experts());
    table("residual", random_residual(draw_));
    head();
    train();
    inputs();
    for (const std::string& block : blocks_) text_ << block;
    overrides();
    return {"random_" + std::to_string(seed_), B_, T_, facts_.pair ? S_ : 0, text_.str()};
  }

 private:
  void choose() {
    kind_ = draw_.word({"decoder", "encoder", "encoder-decoder"});
    facts_.pair = kind_ == "encoder-decoder";
    facts_.decoder = kind_ != "encoder";
    words_ = draw_.chance(85);
    facts_.width = draw_.one_of<int64_t>({2, 3, 7, 8, 15, 16, 17, 31, 33});
    B_ = draw_.between(1, 3);
    T_ = draw_.one_of<int64_t>({1, 2, 3, 5, 9, 15, 17});
    S_ = draw_.one_of<int64_t>({1, 3, 7, 16, 17});
    position_ = draw_.word({"learned", "sinusoidal", "rope", "alibi", "none"});
    facts_.rope = position_ == "rope";
    facts_.prefix = facts_.decoder && draw_.chance(20);
    own_layers_ = draw_.between(1, 3);
    source_layers_ = facts_.pair ? draw_.between(0, 2) : 0;
    placement_ = draw_.word({"pre", "post", "sandwich", "auto"});
  }

  void model() {
    text_ << "[model]\nkind = \"" << kind_ << "\"\nd_model = " << facts_.width << "\n";
    if (facts_.pair)
      text_ << "encoder_layers = " << source_layers_ << "\ndecoder_layers = " << own_layers_ << "\n";
    else
      text_ << "layers = " << own_layers_ << "\n";
    text_ << random_head_keys(draw_, facts_);
    if (words_) text_ << "vocab = " << draw_.one_of<int64_t>({2, 3, 15, 17, 33}) << "\n";
    other_source_ = words_ && facts_.pair && source_layers_ > 0 && draw_.chance(30);
    if (other_source_) text_ << "src_vocab = 19\n";
    if (position_ == "learned" || draw_.chance(30))
      text_ << "max_seq = " << std::max(T_, facts_.pair ? S_ : 0) + draw_.between(0, 3) << "\n";
    if (draw_.chance(50)) text_ << "d_ff = " << draw_.one_of<int64_t>({1, 5, 16, 31, 33}) << "\n";
    if (draw_.chance(20)) text_ << "d_ff_multiple = " << draw_.one_of<int64_t>({1, 7, 16}) << "\n";
    patterns();
  }

  void patterns() {
    if (facts_.pair) {
      if (source_layers_ > 0) pattern("encoder_pattern", "e", false);
      pattern("decoder_pattern", "d", true);
    } else {
      pattern("pattern", "b", false);
    }
  }

  void pattern(const std::string& key, const std::string& prefix, bool memory) {
    if (!draw_.chance(50)) return;
    const int64_t count = draw_.between(1, 2);
    text_ << key << " = [";
    for (int64_t i = 0; i < count; ++i) {
      const std::string name = prefix + std::to_string(i);
      text_ << (i ? ", " : "") << '"' << name << '"';
      // A pattern may be longer than its stack; a block that no layer has is an error.
      blocks_.push_back("[block." + name + "]\n" + random_block(draw_, facts_, memory));
      if (i + 1 == (memory || !facts_.pair ? own_layers_ : source_layers_)) break;
    }
    text_ << "]\n";
  }

  void embedding() {
    std::ostringstream keys;
    if (words_) {
      if (draw_.chance(40)) keys << "tie = " << flag() << "\n";
      if (draw_.chance(20)) keys << "scale = \"sqrt_d\"\n";
      if (draw_.chance(25)) keys << "norm = true\n";
      if (kind_ == "encoder" && draw_.chance(25)) keys << "types = " << draw_.between(1, 3) << "\n";
      if (facts_.pair && source_layers_ > 0 && !other_source_ && draw_.chance(30))
        keys << "tie_sides = " << flag() << "\n";
    }
    table("embedding", keys.str());
  }

  void position() {
    std::ostringstream keys;
    keys << "type = \"" << position_ << "\"\n";
    if (facts_.rope && draw_.chance(50)) keys << "rope_style = \"interleaved\"\n";
    if (facts_.rope && draw_.chance(30)) keys << "rope_theta = 100.0\n";
    table("position", keys.str());
  }

  void norm() {
    std::ostringstream keys;
    keys << random_norm(draw_) << "placement = \"" << placement_ << "\"\n";
    if (draw_.chance(30)) keys << "final = " << flag() << "\n";
    table("norm", keys.str());
  }

  void head() {
    has_loss_ = words_;
    if (!words_) return;
    if (draw_.chance(20)) return several_heads();
    std::ostringstream keys;
    const int64_t which = draw_.between(1, 10);
    has_loss_ = which != 1;
    const bool classifier = which > 7 && kind_ != "encoder-decoder";
    if (classifier) {
      keys << "type = \"classifier\"\nclasses = " << draw_.between(2, 5) << "\n";
      keys << "pool = \"" << draw_.word({"first", "mean", "last"}) << "\"\n";
    } else if (which == 1) {
      keys << "type = \"none\"\n";
    }
    if (which != 1 && draw_.chance(40)) keys << "bias = true\n";
    table("head", keys.str());
    if (which != 1 && draw_.chance(30)) text_ << "[loss]\nlabel_smoothing = 0.1\n";
  }

  void several_heads() {
    const std::string kind = facts_.pair || draw_.chance(50) ? "lm" : "mlm";
    table("head.words", "type = \"" + kind + "\"\ntie = " + flag() + "\nlabel_smoothing = 0.1\n");
    if (draw_.chance(60)) table("head.topic", "type = \"classifier\"\nclasses = 3\npool = \"mean\"\nloss_weight = 0.5\n");
    if (draw_.chance(50)) table("head.score", "type = \"regression\"\nbias = true\n");
    std::ostringstream tags;
    tags << "type = \"token_classifier\"\nclasses = " << draw_.between(1, 4) << "\nloss = \"binary_cross_entropy\"\n";
    if (!facts_.pair) tags << "from = \"layers.0\"\n";
    if (draw_.chance(50)) table("head.tags", tags.str());
  }

  void train() {
    std::ostringstream keys;
    if (draw_.chance(40)) keys << "init = \"" << draw_.word({"gpt2", "xavier", "torch"}) << "\"\n";
    if (draw_.chance(25)) keys << "recompute = \"all\"\n";
    if (draw_.chance(20)) {
      const std::string layer = facts_.pair ? "decoder.layers.0" : "layers.0";
      keys << "freeze = [" << (words_ && draw_.chance(50) ? "\"embedding\"" : "\"" + layer + "\"") << "]\n";
    }
    table("train", keys.str());
  }

  void inputs() {
    std::ostringstream keys;
    if (draw_.chance(30)) keys << "mask = false\n";
    if (draw_.chance(20)) keys << "lengths = true\n";
    if (draw_.chance(25)) keys << "positions = true\n";
    if (draw_.chance(25)) keys << "documents = true\n";
    if (facts_.prefix) keys << "prefix = true\n";
    if (has_loss_ && draw_.chance(25)) keys << "weights = true\n";
    table("inputs", keys.str());
  }

  /// Settings of one layer.
  void overrides() {
    if (!draw_.chance(25)) return;
    const std::string side = facts_.pair ? "decoder." : "";
    text_ << '[' << side << "layers." << draw_.between(0, own_layers_ - 1) << "]\n"
          << "residual = { scale = 0.5 }\n";
  }

  /// Of every layer: drawn apart, so that the seeds' other draws are what they are without experts.
  std::string experts() {
    if (!draw_experts_.chance(25)) return "";
    const int64_t count = draw_experts_.between(1, 5);
    std::ostringstream keys;
    keys << "moe = { experts = " << count << ", top_k = " << draw_experts_.between(1, count)
         << ", renormalize = " << (draw_experts_.chance(50) ? "true" : "false")
         << (draw_experts_.chance(40) ? ", aux_loss = 0.1" : "") << " }\n";
    return keys.str();
  }

  const char* flag() { return draw_.chance(50) ? "true" : "false"; }

  void table(const std::string& name, const std::string& keys) {
    if (!keys.empty()) text_ << '[' << name << "]\n" << keys;
  }

  const uint64_t seed_;
  RandomSource draw_, draw_experts_;
  BlockFacts facts_;
  std::string kind_, position_, placement_;
  bool words_ = true, other_source_ = false, has_loss_ = false;
  int64_t B_ = 1, T_ = 1, S_ = 1, own_layers_ = 1, source_layers_ = 0;
  std::vector<std::string> blocks_;
  std::ostringstream text_;
};

}  // namespace

Case random_case(uint64_t seed) { return Description(seed).make(); }

}  // namespace tfc::models
