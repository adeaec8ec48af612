#include "models/random_heads.h"

#include <sstream>

namespace tfc::models {
namespace {

class Heads {
 public:
  Heads(RandomSource& draw, const HeadedModel& model) : draw_(draw), model_(model) {}

  RandomHeads make() {
    draw_.chance(25) ? several() : only();
    return {text_.str(), has_loss_};
  }

 private:
  void only() {
    const std::string type = random_type(model_.words);
    if (type == (model_.words ? "lm" : "none") && draw_.chance(30)) {  // the default
      has_loss_ = model_.words;
      return;
    }
    std::ostringstream keys, loss;
    keys << "type = \"" << type << "\"\n";
    settings(type, keys, loss);
    text_ << "[head]\n" << keys.str();
    if (!loss.str().empty()) text_ << "[loss]\n" << loss.str();
  }

  /// The first reads the end of the stack, so that no layer is unread.
  void several() {
    const int64_t count = draw_.between(1, 4);
    for (int64_t i = 0; i < count; ++i) {
      const bool source = i > 0 && model_.source_layers > 0 && draw_.chance(35);
      const bool words = source ? model_.source_words : model_.words;
      const std::string type = random_type(words);
      std::ostringstream keys;
      keys << "type = \"" << type << "\"\n";
      if (source)
        keys << "from = \"encoder.layers." << layer(model_.source_layers) << "\"\n";
      else if (i > 0 && model_.layers > 0 && draw_.chance(50))
        keys << "from = \"" << (model_.pair ? "decoder." : "") << "layers." << layer(model_.layers) << "\"\n";
      if ((type == "lm" || type == "mlm") && draw_.chance(40)) keys << "tie = " << flag() << "\n";
      if (type != "none" && draw_.chance(50)) keys << "loss_weight = " << draw_.word({"0.0", "0.5", "2.0"}) << "\n";
      settings(type, keys, keys);
      text_ << "[head.h" << i << "]\n" << keys.str();
    }
  }

  std::string random_type(bool words) {
    if (words && draw_.chance(60)) return draw_.chance(80) ? "lm" : "mlm";
    return draw_.word({"classifier", "token_classifier", "regression", "none"});
  }

  /// From either end.
  int64_t layer(int64_t count) {
    const int64_t number = draw_.between(0, count - 1);
    return draw_.chance(30) ? number - count : number;
  }

  void settings(const std::string& type, std::ostringstream& keys, std::ostringstream& loss) {
    if (type == "none") return;
    std::string kind = type == "regression" ? "mse" : "cross_entropy";
    const bool classifies = type == "classifier" || type == "token_classifier";
    if (draw_.chance(10))
      kind = "none";
    else if (classifies && draw_.chance(30))
      kind = "binary_cross_entropy";
    if (kind == "none" || kind == "binary_cross_entropy" || draw_.chance(20)) keys << "loss = \"" << kind << "\"\n";
    if (classifies) keys << "classes = " << draw_.between(kind == "cross_entropy" ? 2 : 1, 5) << "\n";
    if (type == "regression" && draw_.chance(50)) keys << "classes = " << draw_.between(1, 3) << "\n";
    if (type == "classifier" && draw_.chance(75)) keys << "pool = \"" << draw_.word({"first", "mean", "last"}) << "\"\n";
    if (type == "regression" && draw_.chance(75))
      keys << "pool = \"" << draw_.word({"first", "mean", "last", "none"}) << "\"\n";
    if (draw_.chance(40)) keys << "bias = " << flag() << "\n";
    has_loss_ |= kind != "none";
    if (kind != "cross_entropy") return;
    if (draw_.chance(25)) loss << "label_smoothing = 0.1\n";
    if (draw_.chance(20)) loss << "ignore_index = 1\n";
  }

  const char* flag() { return draw_.chance(50) ? "true" : "false"; }

  RandomSource& draw_;
  const HeadedModel& model_;
  std::ostringstream text_;
  bool has_loss_ = false;
};

}  // namespace

RandomHeads random_heads(RandomSource& draw, const HeadedModel& model) { return Heads(draw, model).make(); }

}  // namespace tfc::models
