// The head's product and the loss over it, in chunks of rows: logits -> losses and their gradient in the same memory ->
// gradients of hidden states and weight. The logits of all tokens never exist together.
#include <algorithm>
#include <optional>

#include "ir/check.h"
#include "passes/lower/product_plan.h"

namespace tfc::passes {

using ir::Dim;

namespace {

// A chunk reads the weight and, in training, its gradient once more than a single pass would, so that chunks are as
// tall as this much memory for logits allows.
constexpr int64_t kLogitBytes = 58'000'000;
constexpr int64_t kLeastRows = 64, kMostRows = 4096, kRowMultiple = 64;
constexpr int64_t kElementsPerTask = 16384;  // of row by row kernels

/// What linear_loss, its gradient and linear_logprob share of operands and settings, and the current chunk.
class ChunkedHead {
 public:
  explicit ChunkedHead(Lowering& lowering) : lowering_(lowering) {
    const ir::Type& w = lowering.type(lowering.operand(1));
    const ir::Type& hidden = lowering.type(lowering.operand(0));
    vocab = w.shape[0].constant().value_or(0);
    width = w.shape[1].constant().value_or(0);
    TFC_CHECK(vocab > 0 && width > 0, "an output projection has a size that is not fixed: " + w.text());
    rows = hidden.rows();
    bytes = ir::dtype_bytes(lowering.module().real);
    stride = (vocab + 15) / 16 * 16;
    chunk = std::clamp(kLogitBytes / (stride * bytes) / kRowMultiple * kRowMultiple, kLeastRows, kMostRows);
    chunk_rows = min(Dim(chunk), rows - Dim(ir::Symbol::I) * Dim(chunk));
    greatest_rows = min(Dim(chunk), rows);  // of the first chunk
    targets_ = lowering.pointer(lowering.operand(3));
    mask_ = lowering.operand(4).valid() ? lowering.pointer(lowering.operand(4)) : null_pointer();
    if (lowering.operand(5).valid()) weights_ = lowering.pointer(lowering.operand(5));
    ignore_index_ = lowering.attributes().integer("ignore_index", -100);
    kind_ = lowering.attributes().text("kind", "cross_entropy");
    // Together in memory, so that a short batch needs no more than its rows.
    logits = {lowering.temporary("logits", greatest_rows * Dim(stride * bytes)), stride, vocab};
  }

  void for_chunks(const std::function<void()>& body) { lowering_.loop(ceildiv(rows, chunk), body); }

  /// Memory of the current chunk's rows.
  ir::Arg chunk_of(ir::Arg pointer, int64_t row_bytes) const {
    if (pointer.kind == ir::Arg::Kind::Pointer && pointer.index < 0) return pointer;
    return Lowering::advance(pointer, Dim(ir::Symbol::I) * Dim(chunk * row_bytes));
  }
  Location chunk_of(Location location) const {
    location.pointer = chunk_of(location.pointer, location.stride * bytes);
    return location;
  }

  /// Which rows count, a byte for each: what the products do.
  void lower_counted() {
    const int64_t rows_per_task = 4096;
    counted_ = lowering_.temporary("counted", rows);
    ir::Record record;
    record.kernel = {"counted_rows", attributes()};
    record.tasks = ceildiv(rows, rows_per_task);
    record.args = {counted_, targets_, mask_};
    for (const Dim& number : {rows, Dim(ignore_index_), Dim(rows_per_task)})
      record.args.push_back(Lowering::integer(number));
    if (weights_) record.args.push_back(*weights_);
    record.bytes = rows * Dim(6);
    lowering_.call(std::move(record));
  }
  /// Of the current chunk.
  ir::Arg counted() const { return chunk_of(counted_, 1); }

  void lower_logits() {
    Product product;
    product.form = "nt";
    product.a = chunk_of(lowering_.locate(lowering_.operand(0)));
    product.b = lowering_.locate(lowering_.operand(1));
    product.c = logits;
    if (lowering_.operand(2).valid()) product.bias = lowering_.pointer(lowering_.operand(2));
    product.m = chunk_rows, product.n = vocab, product.k = width;
    product.real = counted();
    lower_product(lowering_, product);
  }

  /// A kernel over the chunk's rows: out, source, targets, mask, rows, width, stride, ignore_index, rows per task,
  /// weights where there are some.
  ir::Record row_record(const std::string& family, ir::Arg first, ir::Arg second, int64_t row_width,
                        int64_t row_stride) const {
    const int64_t rows_per_task = std::clamp<int64_t>(kElementsPerTask / row_width, 1, 64);
    ir::Record record;
    record.kernel = {family, attributes()};
    record.tasks = ceildiv(chunk_rows, rows_per_task);
    record.args = {first, second, chunk_of(targets_, has_classes() ? 4 : vocab * bytes), chunk_of(mask_, 1)};
    for (const Dim& number : {chunk_rows, Dim(row_width), Dim(row_stride), Dim(ignore_index_), Dim(rows_per_task)}) {
      record.args.push_back(Lowering::integer(number));
    }
    if (weights_) record.args.push_back(chunk_of(*weights_, bytes));
    record.flops = chunk_rows * Dim(row_width * 16);  // an exponential is about a dozen operations
    record.bytes = chunk_rows * Dim(row_width * bytes * 2);
    return record;
  }

  void lower_count(ir::Arg count) {
    ir::Record record;
    record.kernel = {"loss_count", attributes()};
    record.tasks = 1;
    record.args = {count, targets_, mask_, Lowering::integer(rows), Lowering::integer(ignore_index_)};
    if (weights_) record.args.push_back(*weights_);
    record.bytes = rows * Dim(5);
    lowering_.call(std::move(record));
  }

  void lower_sum(ir::Arg sum, ir::Arg losses) {
    ir::Record record;
    record.kernel = {"loss_sum", real_attribute(lowering_)};
    record.tasks = 1;
    record.args = {sum, losses, Lowering::integer(rows)};
    record.bytes = rows * Dim(8);
    lowering_.call(std::move(record));
  }

  int64_t vocab = 0, width = 0, bytes = 4;
  int64_t chunk = 0, stride = 0;
  Dim rows, chunk_rows, greatest_rows;
  Location logits;

 private:
  bool has_classes() const { return kind_ == "cross_entropy"; }
  /// What specialises the kernels: nothing but the real type in the usual case.
  ir::Attributes attributes() const {
    ir::Attributes attributes = real_attribute(lowering_);
    if (!has_classes()) attributes.set("kind", kind_);
    if (weights_) attributes.set("weighted", true);
    return attributes;
  }

  Lowering& lowering_;
  ir::Arg targets_, mask_, counted_;
  std::optional<ir::Arg> weights_;
  int64_t ignore_index_;
  std::string kind_;
};

/// A result's memory, or a temporary where nobody reads it but the kernel needs a place to write.
ir::Arg result_or_temporary(Lowering& lowering, uint32_t index, const std::string& name) {
  return lowering.used(lowering.result(index)) ? lowering.pointer(lowering.result(index)) : lowering.temporary(name, 64);
}

void lower_row_loss(Lowering& lowering, const ChunkedHead& head, ir::Arg losses, std::vector<ir::Arg> upstream) {
  ir::Record record = head.row_record("row_loss", head.logits.pointer, head.chunk_of(losses, 8), head.vocab, head.stride);
  record.kernel.attributes.set("gradient", !upstream.empty());
  record.kernel.attributes.set("smoothing", lowering.attributes().real("smoothing", 0.0));
  const double share = lowering.attributes().real("share", 1.0);
  if (!upstream.empty() && share != 1) record.kernel.attributes.set("share", share);
  record.args.insert(record.args.end(), upstream.begin(), upstream.end());
  lowering.call(std::move(record));
}

/// dW (+)= dlogits^T hidden, over the rows that count: the first chunk stores, the others add.
void lower_weight_gradient(Lowering& lowering, ChunkedHead& head, const Dim& accumulate) {
  Product product;
  product.form = "tn";
  product.a = head.logits;
  product.b = head.chunk_of(lowering.locate(lowering.operand(0)));
  product.c = lowering.locate(lowering.result(3));
  product.m = head.vocab, product.n = head.width, product.k = head.chunk_rows;
  product.greatest_k = head.greatest_rows;
  product.accumulate = accumulate;
  product.real = head.counted();
  lower_product(lowering, product);
}

void lower_hidden_gradient(Lowering& lowering, ChunkedHead& head) {
  Product product;
  product.form = "nn";
  product.a = head.logits;
  product.b = lowering.locate(lowering.operand(1));
  product.c = head.chunk_of(lowering.locate(lowering.result(2)));
  product.m = head.chunk_rows, product.n = head.width, product.k = head.vocab;
  product.real = head.counted(), product.fills = true;
  lower_product(lowering, product);
}

}  // namespace

void lower_LinearLoss(Lowering& lowering) {
  ChunkedHead head(lowering);
  const ir::Arg losses = lowering.temporary("losses", head.rows * Dim(8));
  if (lowering.used(lowering.result(1))) head.lower_count(lowering.pointer(lowering.result(1)));
  head.lower_counted();
  head.for_chunks([&] {
    head.lower_logits();
    lower_row_loss(lowering, head, losses, {});
  });
  head.lower_sum(result_or_temporary(lowering, 0, "sum"), losses);
}

void lower_LinearLossGrad(Lowering& lowering) {
  ChunkedHead head(lowering);
  const bool wants_hidden = lowering.used(lowering.result(2)), wants_weight = lowering.used(lowering.result(3)),
             wants_bias = lowering.used(lowering.result(4));
  const ir::Arg losses = lowering.temporary("losses", head.rows * Dim(8));
  const ir::Arg count = result_or_temporary(lowering, 1, "count");
  const ir::Arg mean = lowering.pointer(lowering.operand(6));

  const bool kept = lowering.accumulates(lowering.result(3));
  head.lower_count(count);
  head.lower_counted();
  head.for_chunks([&] {
    const Dim accumulate = min(Dim(1), Dim(ir::Symbol::I));
    head.lower_logits();
    lower_row_loss(lowering, head, losses, {count, mean});
    if (wants_hidden) lower_hidden_gradient(lowering, head);
    if (wants_weight) lower_weight_gradient(lowering, head, kept ? Dim(1) : accumulate);
    if (wants_bias) {
      lower_column_sum(lowering, {}, lowering.pointer(lowering.result(4)), head.logits, head.chunk_rows,
                       head.greatest_rows, accumulate);
    }
  });
  head.lower_sum(result_or_temporary(lowering, 0, "sum"), losses);
}

void lower_LinearLogprob(Lowering& lowering) {
  ChunkedHead head(lowering);
  head.lower_counted();
  head.for_chunks([&] {
    head.lower_logits();
    const ir::Arg out = head.chunk_of(lowering.pointer(lowering.result()), head.bytes);
    lowering.call(head.row_record("softmax_logprob", head.logits.pointer, out, head.vocab, head.stride));
  });
}

}  // namespace tfc::passes
