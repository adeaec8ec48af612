// Images as sequences of squares (Dosovitskiy et al. 2021, arXiv:2010.11929), and a learned token before them.
#include "ir/ops/rules.h"

namespace tfc::ir {
namespace {

/// Calls f(element of patches, element of the image) for every pixel. image: channels, height, width.
template <typename F>
void for_pixels(int64_t batch, const std::vector<int64_t>& image, int64_t size, F f) {
  const int64_t channels = image[0], height = image[1], width = image[2], across = width / size;
  const int64_t patches = height / size * across, patch = channels * size * size;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t row = b * patches + y / size * across + x / size;
          const int64_t column = (c * size + y % size) * size + x % size;
          f(row * patch + column, ((b * channels + c) * height + y) * width + x);
        }
}

/// The sizes of an image [B,c,h,w], as far as they are numbers; without a batch.
std::vector<int64_t> image_sizes(const Type& image) {
  std::vector<int64_t> sizes;
  for (size_t i = 1; i < image.shape.size(); ++i) {
    if (const auto size = image.shape[i].constant()) sizes.push_back(*size);
  }
  return sizes;
}

/// The type of the patches of such an image; sets the error where it has none.
bool patches_type(InferContext& c, const Dim& batch, const std::vector<int64_t>& image, Type& patches) {
  if (!need_positive(c, "size")) return false;
  const int64_t size = c.attributes.integer("size");
  if (image.size() != 3) return fail(c, "an image has three sizes: channels, height, width");
  if (image[1] % size != 0 || image[2] % size != 0)
    return fail(c, "an image of " + std::to_string(image[1]) + " x " + std::to_string(image[2]) +
                       " has no whole number of squares of " + std::to_string(size));
  patches = {c.real, {batch, image[1] / size * (image[2] / size), image[0] * size * size}};
  return true;
}

}  // namespace

// patches (image f[B,c,h,w]) {size = P} -> f[B,T,c*P*P]
void infer_Patches(InferContext& c) {
  if (!need(c, 0, "image", c.real, 4, 4)) return;
  const Type& image = *c.operands[0];
  Type patches;
  if (patches_type(c, image.shape[0], image_sizes(image), patches)) c.results = {patches};
}

void eval_Patches(const EvalContext& c) {
  const Tensor& image = need(c, 0);
  for_pixels(image.shape[0], {image.shape[1], image.shape[2], image.shape[3]}, c.attributes.integer("size"),
             [&](int64_t patch, int64_t pixel) { c.results[0][patch] = image[pixel]; });
}

// Every pixel is in one square
void gradient_Patches(GradientContext& c) {
  if (!c.upstream().valid() || !c.wanted(0)) return;
  c.give(0, {c.add(OpKind::PatchesGrad, {c.upstream()},
                   {{"size", c.node().attributes.integer("size")},
                    {"image", image_sizes(type_of(c, c.operand(0)))}},
                   "dx")});
}

// patches_grad (dpatches f[B,T,c*P*P]) {size = P, image = [c, h, w]} -> f[B,c,h,w]
void infer_PatchesGrad(InferContext& c) {
  if (!need(c, 0, "dpatches", c.real, 3, 3)) return;
  const Dim batch = c.operands[0]->shape[0];
  const std::vector<int64_t>& image = c.attributes.list("image");
  Type patches;
  if (!patches_type(c, batch, image, patches) || !need_type(c, 0, "dpatches", patches)) return;
  c.results = {{c.real, {batch, image[0], image[1], image[2]}}};
}

void eval_PatchesGrad(const EvalContext& c) {
  const Tensor& dpatches = need(c, 0);
  for_pixels(dpatches.shape[0], c.attributes.list("image"), c.attributes.integer("size"),
             [&](int64_t patch, int64_t pixel) { c.results[0][pixel] = dpatches[patch]; });
}

// prepend (x f[B,T-1,D], token f[D], rows? f[T,D]) -> f[B,T,D]
void infer_Prepend(InferContext& c) {
  if (!need(c, 0, "x", c.real, 3, 3)) return;
  Type y = *c.operands[0];
  y.shape[1] = y.shape[1] + 1;
  if (!need_type(c, 1, "token", {c.real, {y.width()}})) return;
  if (allow_type(c, 2, "rows", {c.real, {y.shape[1], y.width()}})) c.results = {y};
}

void eval_Prepend(const EvalContext& c) {
  const Tensor& x = need(c, 0);
  Tensor& y = c.results[0];
  const int64_t T = y.shape[1];
  for (int64_t b = 0; b < y.shape[0]; ++b)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t d = 0; d < y.width(); ++d) {
        const double value = t == 0 ? need(c, 1)[d] : x.row(b * (T - 1) + t - 1)[d];
        y.row(b * T + t)[d] = operand(c, 2) ? value + operand(c, 2)->row(t)[d] : value;
      }
}

void gradient_Prepend(GradientContext& c) {
  const Value dy = c.upstream();
  if (!dy.valid()) return;
  if (c.wanted(0) || c.wanted(1)) {
    const NodeId grad = c.add(OpKind::PrependGrad, {dy}, {}, "dx");
    for (uint32_t slot : {0u, 1u})
      if (c.wanted(slot)) c.give(slot, {grad, slot});
  }
  if (optional_operand(c, 2).valid() && c.wanted(2)) c.give(2, {c.add(OpKind::BatchSum, {dy}, {}, "drows")});
}

// prepend_grad (dy f[B,T,D]) -> dx f[B,T-1,D], dtoken f[D]
void infer_PrependGrad(InferContext& c) {
  if (!need(c, 0, "dy", c.real, 3, 3)) return;
  Type dx = *c.operands[0];
  dx.shape[1] = dx.shape[1] - 1;
  c.results = {dx, {c.real, {dx.width()}}};
}

void eval_PrependGrad(const EvalContext& c) {
  const Tensor& dy = need(c, 0);
  const int64_t T = dy.shape[1];
  for (int64_t r = 0; r < dy.rows(); ++r)
    for (int64_t d = 0; d < dy.width(); ++d) {
      if (r % T == 0)
        c.results[1][d] += dy.row(r)[d];
      else
        c.results[0].row(r / T * (T - 1) + r % T - 1)[d] = dy.row(r)[d];
    }
}

}  // namespace tfc::ir
