// What a caller makes of a value inside the model: elements replaced, or something added to them.
#include "codegen/kernels/kernels.h"
#include "runtime/plan.h"

namespace tfc::codegen {

namespace {

using ir::DType;

/// A member of tc::EditEntry, all of which are words.
Val word(KernelBuilder& k, Ptr entry, size_t bytes) {
  return k.load({entry.base, k.ir().getInt64Ty()}, k.index(static_cast<int64_t>(bytes / sizeof(int64_t))));
}

/// Numbers of a row along its leading dimensions, the first of which is all that is left.
struct Index {
  Val i[3];
};

/// The caller's elements for a row: dimensions along which an array repeats have the stride 0.
Ptr row_of(KernelBuilder& k, Ptr entry, size_t address, size_t strides, const Index& index,
           llvm::Type* element) {
  Val offset = k.index(0);
  for (size_t d = 0; d < 3; ++d) offset = offset + index.i[d] * word(k, entry, strides + d * sizeof(int64_t));
  const Ptr start{k.ir().CreateIntToPtr(word(k, entry, address).raw(), k.ir().getPtrTy()), element};
  return k.at(start, offset);
}

Val edited(KernelBuilder& k, Val x, Val value, Val how) {
  return k.select(how == int64_t{tc::EditReplace}, value,
                  k.select(how == int64_t{tc::EditAdd}, x + value, x));
}

void edit_row(KernelBuilder& k, const ir::Attributes& a, Ptr entry, Ptr out, Ptr x, const Index& index) {
  const Ptr how = row_of(k, entry, offsetof(tc::EditEntry, how), offsetof(tc::EditEntry, how_strides), index,
                         k.type_of(DType::U8));
  const Val width = k.index(a.integer("width"));
  if (a.flag("gradient")) {
    k.vector_loop("element", width, [&](Lane lane) {
      const Val dy = k.load(x, lane);
      k.store(out, lane,
              k.select(k.load(how, lane) == int64_t{tc::EditReplace}, k.same_type_constant(dy, 0.0), dy));
    });
    return;
  }
  const Ptr value = row_of(k, entry, offsetof(tc::EditEntry, value), offsetof(tc::EditEntry, value_strides),
                           index, k.real_type());
  k.vector_loop("element", width, [&](Lane lane) {
    k.store(out, lane, edited(k, k.load(x, lane), k.load(value, lane), k.load(how, lane)));
  });
}

/// edit {width, chunk, gradient, masked, in_place}   slots: rows, out, x, entry of the table, mask, strides
/// of out, of x, sizes of the last and the last but one of the leading dimensions Rows that are masked, and
/// all where nothing is set, are as they were: copied, unless they are in place. With `gradient` x is dy, and
/// zeros where the forward replaced.
llvm::Function* emit_edit(KernelBuilder& k, const ir::KernelSpec& spec) {
  const ir::Attributes& a = spec.attributes;
  const bool in_place = a.flag("in_place");
  const Ptr entry = k.pointer(3, DType::U8);
  const Val set = word(k, entry, offsetof(tc::EditEntry, value)) != 0;
  k.for_tasks([&](Val task) {
    const Val first = task * a.integer("chunk"), end = k.min(first + a.integer("chunk"), k.integer(0));
    k.loop("row", first, in_place ? k.select(set, end, first) : end, 1, [&](Val row) {
      const Ptr out = k.at(k.pointer(1), row * k.integer(5)), x = k.at(k.pointer(2), row * k.integer(6));
      const Val edits = a.flag("masked") ? set & (k.load(k.pointer(4, DType::U8), row) != 0) : set;
      const auto change = [&] {
        const Val last = k.integer(7), before = k.integer(8);
        edit_row(k, a, entry, out, x, {{row / (last * before), row / last % before, row % last}});
      };
      const auto copy = [&] {
        k.vector_loop("element", k.index(a.integer("width")),
                      [&](Lane lane) { k.store(out, lane, k.load(x, lane)); });
      };
      in_place ? k.if_(edits, change) : k.if_(edits, change, copy);
    });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> edit_kernels() { return {{"edit", emit_edit}}; }

}  // namespace tfc::codegen
