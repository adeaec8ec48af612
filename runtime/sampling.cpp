#include "runtime/sampling.h"

#include "runtime/floating_point.h"
#include "runtime/mathematics.h"
#include "runtime/random.h"
#include "runtime/structs.h"

namespace tc {

namespace {

using Long = long long;

double logit(const ModelDesc& model, const void* logits, int64_t id) {
  return model.real == TypeF64 ? static_cast<const double*>(logits)[id]
                               : static_cast<double>(static_cast<const float*>(logits)[id]);
}

tc_status read_logits(const ModelDesc& model, const void* logits, const Draw& draw, double* values,
                      int32_t& best, Message& message) {
  best = -1;
  for (int64_t id = 0; id < model.out_width; ++id) {
    const double value = logit(model, logits, id);
    if (!(value < __builtin_inf())) {
      return message.fail(TC_E_STATE, "the logit of token %lld in row %lld is %s: nothing can be drawn",
                          Long{id}, Long{draw.row}, value != value ? "NaN" : "+inf");
    }
    values[id] = value;
    if (value > -__builtin_inf() && (best < 0 || value > values[best])) best = static_cast<int32_t>(id);
  }
  if (best >= 0) return TC_OK;
  return message.fail(TC_E_STATE, "no logit of row %lld is finite: nothing can be drawn", Long{draw.row});
}

/// Ids from the most probable on, ties by lowest id: a heap that gives them one at a time, since few are
/// wanted.
class Ranking {
 public:
  Ranking(const double* values, int32_t* order, int64_t size) : values_(values), order_(order), size_(size) {
    for (int64_t i = 0; i < size; ++i) order[i] = static_cast<int32_t>(i);
    for (int64_t i = size / 2; i-- > 0;) sink(i);
  }
  /// Moves the next best behind the heap, at order[size - 1 - taken].
  int32_t take() {
    const int32_t best = order_[0];
    --size_;
    order_[0] = order_[size_];
    order_[size_] = best;
    sink(0);
    return best;
  }

 private:
  bool before(int32_t a, int32_t b) const {
    return values_[a] != values_[b] ? values_[a] > values_[b] : a < b;
  }
  void sink(int64_t i) {
    for (;;) {
      int64_t child = 2 * i + 1;
      if (child >= size_) return;
      if (child + 1 < size_ && before(order_[child + 1], order_[child])) ++child;
      if (!before(order_[child], order_[i])) return;
      const int32_t swapped = order_[i];
      order_[i] = order_[child];
      order_[child] = swapped;
      i = child;
    }
  }

  const double* values_;
  int32_t* order_;
  int64_t size_;
};

/// The first `kept` of the ranking whose weights reach `share` of the total, in order; the one that crosses
/// stays.
int64_t cut_by_share(const double* weights, const int32_t* ranked, int64_t count, double total,
                     double share) {
  double reached = 0;
  for (int64_t i = 0; i < count; ++i) {
    reached += weights[ranked[-i]];
    if (reached >= share * total) return i + 1;
  }
  return count;
}

int32_t draw_ranked(const double* weights, const int32_t* ranked, int64_t count, double random) {
  double total = 0, reached = 0;
  for (int64_t i = 0; i < count; ++i) total += weights[ranked[-i]];
  for (int64_t i = 0; i < count; ++i) {
    reached += weights[ranked[-i]];
    if (reached > random * total) return ranked[-i];
  }
  return ranked[0];
}

int32_t draw_any(const double* weights, int64_t count, int32_t best, double random) {
  double total = 0, reached = 0;
  for (int64_t id = 0; id < count; ++id) total += weights[id];
  for (int64_t id = 0; id < count; ++id) {
    reached += weights[id];
    if (reached > random * total) return static_cast<int32_t>(id);
  }
  return best;
}

/// Ranks as many as the settings can keep: top_k of them, or until the share top_p is reached.
int32_t draw_cut(const SamplingScratch& scratch, int64_t V, int64_t top_k, double top_p, double random) {
  const double* weights = scratch.weights;
  Ranking ranking(scratch.values, scratch.order, V);
  const int32_t* ranked = scratch.order + V - 1;  // the best; the next stand before it
  int64_t kept = 0;
  double total = 0, reached = 0;
  if (top_k > 0) {
    for (; kept < top_k; ++kept) total += weights[ranking.take()];
    kept = cut_by_share(weights, ranked, kept, total, top_p);
  } else {
    for (int64_t id = 0; id < V; ++id) total += weights[id];
    while (kept < V && (kept == 0 || reached < top_p * total)) {
      reached += weights[ranking.take()];
      ++kept;
    }
  }
  return draw_ranked(weights, ranked, kept, random);
}

tc_status check_setting(const char* name, double value, double most, Message& message) {
  if (value >= 0 && value <= most) return TC_OK;
  return message.fail(TC_E_ARGUMENT, "%s is %g, expected %s", name, value,
                      most == 1 ? "0 to 1" : "a finite number of at least 0");
}

}  // namespace

tc_status check_sampling(const ModelDesc& model, const tc_sampling* given, tc_sampling& settings,
                         Message& message) {
  const FloatingPointScope scope(Denormals::Keep);  // a comparison with NaN is an exception that the host may trap
  tc_status status = read_struct("sampling", given, settings, message);
  if (status != TC_OK) return status;
  if (settings.max_new < 0) {
    return message.fail(TC_E_ARGUMENT, "max_new is %lld, expected at least 0", Long{settings.max_new});
  }
  status = check_setting("temperature", settings.temperature, __FLT_MAX__, message);
  if (status == TC_OK) status = check_setting("top_p", settings.top_p, 1, message);
  if (status != TC_OK) return status;
  if (settings.top_k < 0)
    return message.fail(TC_E_ARGUMENT, "top_k is %d, expected at least 0", settings.top_k);
  if (settings.first_row < 0) {
    return message.fail(TC_E_ARGUMENT, "first_row is %lld, expected at least 0", Long{settings.first_row});
  }
  if (settings.context < TC_CONTEXT_STOP || settings.context > TC_CONTEXT_ERROR) {
    return message.fail(TC_E_ARGUMENT, "context is %d, expected 0 (stop), 1 (slide) or 2 (error)",
                        settings.context);
  }
  if (settings.eos < -1 || settings.eos >= model.out_width) {
    return message.fail(TC_E_ARGUMENT, "eos is %d, expected 0 to %lld, or -1 for none", settings.eos,
                        Long{model.out_width - 1});
  }
  return TC_OK;
}

tc_status sample(const ModelDesc& model, const void* logits, const tc_sampling& settings, const Draw& draw,
                 const SamplingScratch& scratch, int32_t& token, Message& message) {
  const FloatingPointScope scope(Denormals::Keep);
  int32_t best;
  const tc_status status = read_logits(model, logits, draw, scratch.values, best, message);
  if (status != TC_OK) return status;
  token = best;
  const double temperature = settings.temperature, top_p = settings.top_p;
  if (temperature == 0 || top_p == 0) return TC_OK;
  const int64_t V = model.out_width;
  const double most = scratch.values[best];
  for (int64_t id = 0; id < V; ++id)
    scratch.weights[id] = exponential((scratch.values[id] - most) / temperature);
  const RandomBits bits = philox(draw.seed, static_cast<uint64_t>(draw.position),
                                 random_stream(RandomUse::Sample, static_cast<uint64_t>(draw.row)));
  const double random = uniform53(bits.word[0], bits.word[1]);
  const int64_t top_k = settings.top_k < V ? settings.top_k : 0;
  token = top_k == 0 && top_p == 1 ? draw_any(scratch.weights, V, best, random)
                                   : draw_cut(scratch, V, top_k, top_p, random);
  return TC_OK;
}

}  // namespace tc
