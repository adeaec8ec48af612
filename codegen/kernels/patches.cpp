// Images as rows of squares and back (Dosovitskiy et al. 2021), and a token put before the rows of a batch.
#include "codegen/kernels/kernels.h"

namespace tfc::codegen {

namespace {

/// patches, patches_grad {size = P, channels, height, width}   slots: patches, image, stride of patches
/// Task (b, i) is the i-th row of squares of image b: in each channel P lines of pixels, whose pieces of P go
/// to the same place in as many patches (or come from there).
llvm::Function* emit_pixels(KernelBuilder& k, const ir::Attributes& a, bool to_patches) {
  const int64_t P = a.integer("size"), channels = a.integer("channels"), height = a.integer("height"),
                width = a.integer("width"), across = width / P, down = height / P;
  const Val stride = k.integer(2);
  k.for_tasks([&](Val task) {
    const Ptr first = k.at(k.pointer(0), task * across * stride);
    k.loop("channel", k.index(channels), [&](Val channel) {
      k.loop("line", k.index(P), [&](Val line) {
        const Val row = (task / down * channels + channel) * height + task % down * P + line;
        const Ptr pixels = k.at(k.pointer(1), row * width);
        k.loop("square", k.index(across), [&](Val square) {
          const Ptr patch = k.at(first, square * stride + (channel * P + line) * P);
          const Ptr piece = k.at(pixels, square * P);
          k.vector_loop("pixel", k.index(P), [&](Lane lane) {
            to_patches ? k.store(patch, lane, k.load(piece, lane)) : k.store(piece, lane, k.load(patch, lane));
          });
        });
      });
    });
  });
  return k.finish();
}

llvm::Function* emit_patches(KernelBuilder& k, const ir::KernelSpec& spec) {
  return emit_pixels(k, spec.attributes, /*to_patches=*/true);
}

llvm::Function* emit_patches_grad(KernelBuilder& k, const ir::KernelSpec& spec) {
  return emit_pixels(k, spec.attributes, /*to_patches=*/false);
}

/// Row (b, t) of B*T rows without the first of each b, counted through the batch.
Val without_first(Val row, Val T) { return row - row / T - 1; }

/// prepend {width = D, chunk, rows}   slots: B*T, out, x, token, added rows (or null), T, strides of out, of x
/// out[b,0] = token, out[b,t] = x[b,t-1], each plus row t of `rows`. A task is `chunk` rows.
llvm::Function* emit_prepend(KernelBuilder& k, const ir::KernelSpec& spec) {
  const ir::Attributes& a = spec.attributes;
  const int64_t chunk = a.integer("chunk");
  const Val D = k.index(a.integer("width")), T = k.integer(5);
  k.for_tasks([&](Val task) {
    k.loop("row", task * chunk, k.min((task + 1) * chunk, k.integer(0)), 1, [&](Val row) {
      const Ptr out = k.at(k.pointer(1), row * k.integer(6));
      const auto write = [&](Ptr from) {
        k.vector_loop("d", D, [&](Lane d) {
          const Val value = k.load(from, d);
          k.store(out, d, a.flag("rows") ? value + k.load(k.at(k.pointer(4), row % T * D), d) : value);
        });
      };
      k.if_(
          row % T == 0, [&] { write(k.pointer(3)); },
          [&] { write(k.at(k.pointer(2), without_first(row, T) * k.integer(7))); });
    });
  });
  return k.finish();
}

/// drop_first {width = D, chunk}   slots: B*(T-1), out, x, T, strides of out, of x
/// out[b,t] = x[b,t+1]. A task is `chunk` rows.
llvm::Function* emit_drop_first(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t chunk = spec.attributes.integer("chunk");
  k.for_tasks([&](Val task) {
    k.loop("row", task * chunk, k.min((task + 1) * chunk, k.integer(0)), 1, [&](Val row) {
      const Ptr out = k.at(k.pointer(1), row * k.integer(4));
      const Ptr x = k.at(k.pointer(2), (row + row / (k.integer(3) - 1) + 1) * k.integer(5));
      k.vector_loop("d", k.index(spec.attributes.integer("width")),
                    [&](Lane d) { k.store(out, d, k.load(x, d)); });
    });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> patch_kernels() {
  return {{"patches", emit_patches},
          {"patches_grad", emit_patches_grad},
          {"prepend", emit_prepend},
          {"drop_first", emit_drop_first}};
}

}  // namespace tfc::codegen
