// Three small models with kernels in C++, simple enough to be computed by hand.
//
// decoder (the library's own, tc_model_desc; float): V 16, max_seq 8. Each token has a number e[id]; a
// position's
//   hidden state is the sum of e over its row's real tokens so far, its logits h * (v + 1) / 16 + bias[v].
//   The loss of a target is minus its logit. Parameters: emb [16,1], bias [16], frozen [5], then padding
//   to 48.
// hidden (double): y = x * w, an encoder of vectors of width 3 with vjp alone.
// translator (float): as the decoder, plus the sum of the real source ids; no masks of its own are asked for
// lightly:
//   it declares them.
#pragma once

#include <vector>

#include "runtime/exports.h"
#include "runtime/objects.h"
#include "runtime/plan.h"

namespace tc::test {

constexpr int kVocab = 16, kMaxSeq = 8, kSourceVocab = 12, kWidth = 3, kBlock = 48;

const ModelDesc& decoder();
const ModelDesc& hidden();
const ModelDesc& translator();

/// A model and a session that go away by themselves; creation is expected to succeed.
class Fixture {
 public:
  explicit Fixture(const ModelDesc& desc, tc_options options = {});
  ~Fixture();
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  tc_model* model = nullptr;
  tc_session* session = nullptr;
  const char* message() const { return tc_rt_message(session); }
  float* parameters() const { return static_cast<float*>(tc_rt_block(model, TC_BLOCK_PARAMETERS)); }
  float* gradients() const { return static_cast<float*>(tc_rt_block(model, TC_BLOCK_GRADIENTS)); }
  /// Everything that a failed call must leave alone.
  std::vector<float> everything() const;
};

tc_options options_of(int threads);
tc_batch batch_of(int64_t B, int64_t T);
tc_adamw adamw_of(double lr);

}  // namespace tc::test
