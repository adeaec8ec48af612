#include "passes/expand/init.h"

#include <cmath>

#include "ir/check.h"

namespace tfc::passes {
namespace {

using ir::Init;

Init xavier(int64_t rows, int64_t columns) {
  return {Init::Kind::Uniform, std::sqrt(6.0 / static_cast<double>(rows + columns))};
}

Init by_fan_in(int64_t fan_in) { return {Init::Kind::Uniform, 1.0 / std::sqrt(static_cast<double>(fan_in))}; }

}  // namespace

Initialiser::Initialiser(const ir::Module& module) {
  const std::string name = module.facts.text("init", "normal");
  if (name == "gpt2") kind_ = Kind::Gpt2;
  if (name == "xavier") kind_ = Kind::Xavier;
  if (name == "torch") kind_ = Kind::Torch;
  TFC_CHECK(kind_ != Kind::Normal || name == "normal", "unknown init '" + name + "'");
  zero_branches_ = module.facts.flag("zero_init");
  deviation_ = module.facts.real("init_std", 0.02);
  const int64_t layers = module.facts.integer("layers", 0) + module.facts.integer("encoder_layers", 0) +
                         module.facts.integer("decoder_layers", 0);
  const bool scaled = kind_ == Kind::Gpt2 && layers > 0;
  residual_deviation_ = scaled ? deviation_ / std::sqrt(2.0 * static_cast<double>(layers)) : deviation_;
}

Init Initialiser::matrix(int64_t rows, int64_t columns) const {
  if (kind_ == Kind::Xavier) return xavier(rows, columns);
  if (kind_ == Kind::Torch) return by_fan_in(columns);
  return {Init::Kind::Normal, deviation_};
}

Init Initialiser::residual_matrix(int64_t rows, int64_t columns) const {
  if (zero_branches_) return kZeros;
  if (kind_ == Kind::Xavier || kind_ == Kind::Torch) return matrix(rows, columns);
  return {Init::Kind::Normal, residual_deviation_};
}

Init Initialiser::bias(int64_t fan_in) const {
  return kind_ == Kind::Xavier || kind_ == Kind::Torch ? by_fan_in(fan_in) : kZeros;
}

Init Initialiser::residual_bias(int64_t fan_in) const { return zero_branches_ ? kZeros : bias(fan_in); }

Init Initialiser::attention_input(int64_t joint_rows, int64_t columns) const {
  if (kind_ == Kind::Xavier || kind_ == Kind::Torch) return xavier(joint_rows, columns);
  return {Init::Kind::Normal, deviation_};
}

Init Initialiser::attention_output(int64_t rows, int64_t columns) const {
  return residual_matrix(rows, columns);
}

Init Initialiser::attention_bias() const { return kZeros; }

Init Initialiser::table(int64_t rows, int64_t width, bool tied) const {
  if (kind_ != Kind::Xavier && kind_ != Kind::Torch) return {Init::Kind::Normal, deviation_};
  return tied ? matrix(rows, width) : Init{Init::Kind::Normal, 1.0};
}

}  // namespace tfc::passes
