#include "models/random_descriptions.h"

#include <algorithm>
#include <sstream>

#include "models/random_blocks.h"
#include "models/random_heads.h"

namespace tfc::models {
namespace {

/// One description in the making. Each method writes a table, or says nothing and leaves its defaults.
class Description {
 public:
  explicit Description(uint64_t seed) : seed_(seed), draw_(seed) {}

  Case make() {
    choose();
    model();
    embedding();
    position();
    norm();
    table("attention", random_attention(draw_, facts_) + random_sight(draw_, facts_));
    table("ffn", random_ffn(draw_, facts_));
    table("residual", random_residual(draw_, facts_));
    const RandomHeads heads = random_heads(draw_, {facts_.pair, words_, source_words_, own_layers_, source_layers_});
    text_ << heads.text;
    train();
    inputs(heads.has_loss);
    shapes();
    for (const std::string& block : blocks_) text_ << block;
    overrides();
    debug();
    return {"random_" + std::to_string(seed_), B_, T_, facts_.pair ? S_ : 0, text_.str()};
  }

 private:
  void choose() {
    kind_ = draw_.word({"decoder", "encoder", "encoder-decoder"});
    facts_.pair = kind_ == "encoder-decoder";
    facts_.decoder = kind_ != "encoder";
    images_ = kind_ == "encoder" && draw_.chance(20);
    words_ = !images_ && draw_.chance(85);
    facts_.width = draw_.one_of<int64_t>({2, 3, 7, 8, 15, 16, 17, 31, 33});
    B_ = draw_.between(1, 3);
    T_ = draw_.one_of<int64_t>({1, 2, 3, 5, 9, 15, 17});
    S_ = draw_.one_of<int64_t>({1, 3, 7, 16, 17});
    position_ = draw_.word({"learned", "sinusoidal", "rope", "alibi", "none"});
    facts_.rope = position_ == "rope";
    facts_.prefix = facts_.decoder && draw_.chance(20);
    facts_.drops = draw_.chance(30);
    facts_.experts = draw_.chance(25);
    source_layers_ = facts_.pair ? draw_.between(0, 2) : 0;
    own_layers_ = draw_.between(source_layers_ > 0 && draw_.chance(15) ? 0 : 1, 3);
    placement_ = draw_.word({"pre", "post", "sandwich", "auto"});
    source_words_ = words_ && source_layers_ > 0;
  }

  void model() {
    text_ << "[model]\nkind = \"" << kind_ << "\"\nd_model = " << facts_.width << "\n";
    if (facts_.pair)
      text_ << "encoder_layers = " << source_layers_ << "\ndecoder_layers = " << own_layers_ << "\n";
    else
      text_ << "layers = " << own_layers_ << "\n";
    text_ << random_head_keys(draw_, facts_);
    if (words_) text_ << "vocab = " << draw_.one_of<int64_t>({2, 3, 15, 17, 33}) << "\n";
    if (source_words_) source_vocabulary();
    if (!images_ && (position_ == "learned" || draw_.chance(30)))
      text_ << "max_seq = " << std::max(T_, facts_.pair ? S_ : 0) + draw_.between(0, 3) << "\n";
    if (draw_.chance(50)) text_ << "d_ff = " << draw_.one_of<int64_t>({1, 5, 16, 31, 33}) << "\n";
    if (draw_.chance(20)) text_ << "d_ff_multiple = " << draw_.one_of<int64_t>({1, 7, 16}) << "\n";
    if (facts_.drops && draw_.chance(50)) text_ << "dropout = 0.2\n";
    patterns();
  }

  /// Another one than the target's, or floats.
  void source_vocabulary() {
    other_source_ = draw_.chance(30);
    if (!other_source_) return;
    source_words_ = draw_.chance(80);
    text_ << "src_vocab = " << (source_words_ ? 19 : 0) << "\n";
  }

  void patterns() {
    if (facts_.pair) {
      pattern("encoder_pattern", "e", false, source_layers_);
      pattern("decoder_pattern", "d", true, own_layers_);
    } else {
      pattern("pattern", "b", false, own_layers_);
    }
  }

  void pattern(const std::string& key, const std::string& prefix, bool memory, int64_t layers) {
    if (layers == 0 || !draw_.chance(50)) return;
    const int64_t count = std::min(layers, draw_.between(1, 2));
    text_ << key << " = [";
    for (int64_t i = 0; i < count; ++i) {
      const std::string name = prefix + std::to_string(i);
      text_ << (i ? ", " : "") << '"' << name << '"';
      const bool shared = draw_.chance(25);
      any_shared_ |= shared;
      blocks_.push_back("[block." + name + "]\n" + (shared ? "shared = true\n" : "") +
                        random_block(draw_, facts_, memory));
    }
    text_ << "]\n";
  }

  void embedding() {
    std::ostringstream keys;
    if (words_) {
      if (draw_.chance(40)) keys << "tie = " << flag() << "\n";
      if (draw_.chance(20)) keys << "scale = \"sqrt_d\"\n";
      if (kind_ == "encoder" && draw_.chance(25)) keys << "types = " << draw_.between(1, 3) << "\n";
      const bool two_tables = !facts_.pair || source_layers_ == 0 || source_words_;
      if (two_tables && draw_.chance(20)) keys << "dim = " << draw_.one_of<int64_t>({1, 5, 16, 35}) << "\n";
      if (source_words_ && !other_source_ && draw_.chance(30)) keys << "tie_sides = " << flag() << "\n";
    }
    if (draw_.chance(25)) keys << "norm = true\n";
    if (facts_.drops && draw_.chance(30)) keys << "dropout = 0.3\n";
    if (images_) patches(keys);
    table("embedding", keys.str());
  }

  void patches(std::ostringstream& keys) {
    const int64_t size = draw_.between(1, 4), down = draw_.between(1, 3), across = draw_.between(1, 3);
    const bool token = draw_.chance(50);
    keys << "patches = { size = " << size << ", image = [" << draw_.between(1, 3) << ", " << down * size << ", "
         << across * size << "] }\n";
    if (token) keys << "class_token = true\n";
    T_ = down * across + token;
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

  void train() {
    std::ostringstream keys;
    if (draw_.chance(40)) keys << "init = \"" << draw_.word({"gpt2", "xavier", "torch"}) << "\"\n";
    if (draw_.chance(10)) keys << "zero_init = true\n";
    if (draw_.chance(25))
      keys << "recompute = \"all\"\n";
    else if (draw_.chance(10))
      keys << "recompute = \"auto\"\nbudget = { bytes = \"1GB\", batch = " << B_ << ", seq = " << T_ << " }\n";
    if (const std::string what = random_freeze(); draw_.chance(25) && !what.empty())
      keys << "freeze = [\"" << what << "\"]\n";
    else if (blocks_.empty() && draw_.chance(15))
      keys << "lora = { rank = " << draw_.between(1, 3) << ", alpha = 2, targets = \"" << draw_.word({"q", "k", "v", "o", "*"})
           << "\" }\n";
    table("train", keys.str());
  }

  /// What certainly names a parameter; "" where nothing is certain.
  std::string random_freeze() {
    if (!blocks_.empty()) return words_ ? "embedding" : "";
    const std::string layer = facts_.pair ? own_layers_ > 0 ? "decoder.layers.0" : "encoder.layers.0" : "layers.0";
    if (draw_.chance(60)) return draw_.word({"*", "*.attn.*", "*.weight", "*norm1*"});
    return layer + draw_.word({"", ".attn", ".attn.k", ".norm1"});
  }

  void inputs(bool has_loss) {
    std::ostringstream keys;
    if (!images_) {
      if (draw_.chance(30)) keys << "mask = false\n";
      if (draw_.chance(20)) keys << "lengths = true\n";
      if (draw_.chance(25)) keys << "positions = true\n";
      if (draw_.chance(25)) keys << "documents = true\n";
      if (facts_.prefix) keys << "prefix = true\n";
    }
    if (has_loss && draw_.chance(25)) keys << "weights = true\n";
    table("inputs", keys.str());
  }

  void shapes() {
    std::ostringstream keys;
    if (draw_.chance(10)) keys << "batch = " << B_ << "\n";
    if (!images_ && draw_.chance(10)) keys << "seq = " << T_ << "\n";
    if (facts_.pair && draw_.chance(10)) keys << "src_seq = " << S_ << "\n";
    table("shapes", keys.str());
  }

  /// Settings of some layers; those of a shared block cannot have their own.
  void overrides() {
    if (any_shared_ || own_layers_ == 0 || !draw_.chance(25)) return;
    const int64_t first = draw_.between(0, own_layers_ - 1), last = draw_.between(first, own_layers_ - 1);
    std::string range = std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
    if (draw_.chance(20)) range = "-1";
    text_ << '[' << (facts_.pair ? "decoder." : "") << "layers." << range << "]\n" << random_settings(draw_, facts_);
  }

  /// Drawn last, so that a seed's model is the same but for this. Some value has an n in its name, whatever the blocks.
  void debug() {
    std::ostringstream keys;
    if (draw_.chance(15)) keys << "taps = \"*\"\n";
    if (draw_.chance(25)) keys << "edits = \"" << draw_.word({"*", "*n*"}) << "\"\n";
    table("debug", keys.str());
  }

  const char* flag() { return draw_.chance(50) ? "true" : "false"; }

  void table(const std::string& name, const std::string& keys) {
    if (!keys.empty()) text_ << '[' << name << "]\n" << keys;
  }

  const uint64_t seed_;
  RandomSource draw_;
  BlockFacts facts_;
  std::string kind_, position_, placement_;
  bool words_ = true, source_words_ = false, other_source_ = false, images_ = false, any_shared_ = false;
  int64_t B_ = 1, T_ = 1, S_ = 1, own_layers_ = 1, source_layers_ = 0;
  std::vector<std::string> blocks_;
  std::ostringstream text_;
};

}  // namespace

Case random_case(uint64_t seed) { return Description(seed).make(); }

}  // namespace tfc::models
