// Dropout by itself: the words that every row's draws begin with, and elements dropped where no other kernel takes
// it along.
#include "codegen/dropout.h"

#include "codegen/kernels/kernels.h"

namespace tfc::codegen {

namespace {

using ir::DType;

/// One round of Philox4x32: both products, then words and keys crossed. All i64, of which the low 32 bits count.
struct Philox {
  KernelBuilder& k;
  Val counter[4], key[2];

  static constexpr int64_t kWord = 0xffffffff;
  Val high(Val x) { return k.wrap(k.ir().CreateLShr(x.raw(), 32)); }
  Val low(Val x) { return x & k.index(kWord); }
  Val cross(Val a, Val b, Val c) {
    return k.wrap(k.ir().CreateXor(k.ir().CreateXor(a.raw(), b.raw()), c.raw()));
  }

  void round() {
    const Val left = counter[0] * int64_t{0xd2511f53}, right = counter[2] * int64_t{0xcd9e8d57};
    counter[0] = cross(high(right), counter[1], key[0]);
    counter[2] = cross(high(left), counter[3], key[1]);
    counter[1] = low(right);
    counter[3] = low(left);
    key[0] = low(key[0] + int64_t{0x9e3779b9});
    key[1] = low(key[1] + int64_t{0xbb67ae85});
  }
};

/// dropout_keys {chunk}   slots: rows B*T, keys i32[rows,3], call i32[5], T
llvm::Function* emit_dropout_keys(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t chunk = spec.attributes.integer("chunk");
  const Ptr call = k.pointer(2, DType::I32), keys = k.pointer(1, DType::I32);
  const Val T = k.integer(3);
  const auto narrow = [&](Val x) { return k.wrap(k.ir().CreateTrunc(x.raw(), k.ir().getInt32Ty())); };
  k.for_tasks([&](Val task) {
    k.loop("row", task * chunk, k.min((task + 1) * chunk, k.integer(0)), 1, [&](Val row) {
      const auto word = [&](int64_t i) { return k.to_index(k.load(call, k.index(i))) & k.index(Philox::kWord); };
      Philox draw{k, {row % T, row / T, word(2), word(3)}, {word(0), word(1)}};
      for (int i = 0; i < 10; ++i) draw.round();
      k.store(keys, row * 3, narrow(draw.counter[0]));
      k.store(keys, row * 3 + 1, narrow(draw.counter[1]));
      k.store(keys, row * 3 + 2, k.load(call, k.index(4)));
    });
  });
  return k.finish();
}

/// dropout {p, width, chunk}   slots: rows, out, x, keys, place, strides of out, of x. A task is `chunk` rows.
llvm::Function* emit_dropout(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t chunk = spec.attributes.integer("chunk");
  const Dropout dropout(k, spec.attributes.real("p"));
  k.for_tasks([&](Val task) {
    const Val stream = dropout.stream(k.integer(4), k.index(0));
    k.loop("row", task * chunk, k.min((task + 1) * chunk, k.integer(0)), 1, [&](Val row) {
      const DropoutRow keys = dropout.row(k.pointer(3, DType::I32), row, stream);
      const Ptr out = k.at(k.pointer(1), row * k.integer(5)), x = k.at(k.pointer(2), row * k.integer(6));
      k.vector_loop("element", k.index(spec.attributes.integer("width")),
                    [&](Lane lane) { k.store(out, lane, dropout.apply(keys, lane, k.load(x, lane))); });
    });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> dropout_kernels() {
  return {{"dropout_keys", emit_dropout_keys}, {"dropout", emit_dropout}};
}

}  // namespace tfc::codegen
