// The model's heads, as its facts tell of them.
#pragma once

#include <string>
#include <vector>

#include "ir/attributes.h"

namespace tfc::ir {

struct HeadFacts {
  std::string name;         // of [head.NAME]; "" for the only one, of [head]
  std::string type;         // lm | mlm | classifier | token_classifier | regression | none
  std::string loss;         // cross_entropy | binary_cross_entropy | mse | none
  bool per_token = true;    // its rows are tokens [B,T], not sequences [B]
  int64_t out = 0;          // width of a row
  int64_t ignore_index = -100;
  double weight = 1.0;      // its share of the whole loss
  bool source = false;      // reads the encoder of an encoder-decoder: its rows are source tokens [B,S], or sequences of them

  bool has_loss() const { return loss != "none"; }
  /// Are its targets classes, i32, one for each row? Else they are numbers, one for each output.
  bool has_class_targets() const { return loss == "cross_entropy"; }
  /// What inputs and outputs of this head are called: BASE, or BASE.NAME where heads have names.
  std::string named(const std::string& base) const { return name.empty() ? base : base + "." + name; }
};

/// In the order of the description. Facts: heads (their number) and head.I.KEY for each; a head without a name is
/// told by head, loss, per_token, out_width, ignore_index alone.
std::vector<HeadFacts> heads_of(const Attributes& facts);
void set_heads(Attributes& facts, const std::vector<HeadFacts>& heads);

/// The head that `last`, `decode` and generation are about: the only one, or the only language model among several
/// that read the model's own tokens; -1: there is none.
int main_head(const std::vector<HeadFacts>& heads);

}  // namespace tfc::ir
