// A model of a compiled library with one session, and all that its entries give, as bytes to compare.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/heads.h"
#include "models/compiled.h"
#include "tools/call_inputs.h"

namespace tfc::models {

using Bytes = std::vector<uint8_t>;
using Results = std::map<std::string, Bytes>;  // "train gradients" -> ...

/// Names of what differs; empty: the same.
std::string differences(const Results& a, const Results& b);

tc_options with_threads(int threads);

class Session {
 public:
  explicit Session(const Compiled& compiled, tc_options options = with_threads(1));
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Compiled& compiled;
  const tc_api& api;
  tc_model* model = nullptr;
  tc_session* session = nullptr;
  tc_info info{};

  void check(tc_status status) const;  // throws with the library's message unless TC_OK
  std::string message() const { return api.message(session); }
  uint64_t calls() const;  // that dropped
  /// Does the entry draw numbers?
  bool drops(const char* entry) const;
  int64_t real_bytes() const { return info.real_bytes; }
  bool is_pair() const { return info.kind == TC_KIND_ENCODER_DECODER; }

  /// Every parameter random, the same for a seed.
  void randomise(uint64_t seed);
  /// As a model whose parameters `randomise(1)` filled and that was never trained.
  void start_over();

  /// A block's elements, padding included, up to where the frozen parameters begin in gradients and moments;
  /// empty where it is not allocated.
  Bytes block(int which) const;
  std::vector<ir::HeadFacts> heads() const;
  ir::HeadFacts main_head() const;  // or the first
  /// Parameters, gradients, moments and training state.
  Results state() const;

  // One entry each.
  Bytes forward(const tc_batch& batch, int last = 0);  // of several heads: the main one's
  Bytes logprobs(const tc_batch& batch);
  /// By head: "infer" or "infer.NAME", "logprobs" or "logprobs.NAME".
  Results forward_heads(const tc_batch& batch);
  Results logprobs_heads(const tc_batch& batch);
  /// Sums and counts by head of the last call that had a loss.
  Bytes losses();
  double loss(const tc_batch& batch);
  double backward(const tc_batch& batch);
  /// grad_x and its like by name.
  Results vjp(const tc_batch& batch, const void* const* grad_output, bool training = false);
  double step();
  /// Empties the cache; pairs take the source of `batch`.
  void reset_cache(const tc_batch& batch, int64_t capacity);
  Bytes decode(const tc_batch& next);

  /// Everything that the model has, from the start; what changes state leaves it changed. `decodes`: the
  /// batch's masks, if any, are padding on the right.
  Results everything(const tc_batch& batch, const void* const* grad_output, bool decodes = true);

 private:
  size_t output_bytes(const char* entry, const char* output, const tc_batch& batch) const;
};

/// Inputs at a point and the batch over them.
struct Call {
  Call(const Session& session, const tools::Inputs& inputs, const ir::Point& point);
  tools::Inputs inputs;
  ir::Point point;
  tools::Batch batch;
  const tc_batch& get() const { return batch.batch; }
  operator const tc_batch&() const { return batch.batch; }  // NOLINT: it is one
};

/// Random inputs; with `padded` rows end in padding where the model declares masks.
Call random_call(const Session& session, int64_t B, int64_t T, int64_t S, uint64_t seed = 7,
                 bool padded = true);

tc_adamw usual_settings();

/// An array's elements, of the session's precision.
std::vector<double> numbers(const Session& session, const Bytes& bytes);

}  // namespace tfc::models
