#include "tools/random_edits.h"

#include <map>

#include "ir/edits.h"
#include "tools/random.h"

namespace tfc::tools {

namespace {

using ir::DType;
using ir::Tensor;

constexpr int64_t kReplaced = 4, kAdded = 2;  // one element of so many

/// [W], or [B,1,...,W]. Rows by expert, which are of rank 4, are in no order of sequences.
std::vector<int64_t> repeated_shape(const std::vector<int64_t>& shape, bool by_sequence) {
  if (!by_sequence || shape.size() < 2 || shape.size() > 3) return {shape.back()};
  std::vector<int64_t> repeated(shape.size(), 1);
  repeated.front() = shape.front();
  repeated.back() = shape.back();
  return repeated;
}

Tensor random_where(std::vector<int64_t> shape, int64_t one_of, Random& random) {
  Tensor where(DType::U8, std::move(shape));
  for (double& flag : where.data) flag = random.below(one_of) == 0;
  return where;
}

/// The element of `array` that stands at element `i` of a value.
double repeated(const Tensor& array, const std::vector<int64_t>& shape, int64_t i) {
  int64_t at = 0, step = 1;
  for (size_t d = 1; d <= shape.size(); ++d) {
    const int64_t size = shape[shape.size() - d],
                  own = d <= array.shape.size() ? array.shape[array.shape.size() - d] : 1;
    if (own != 1) at += i % size * step;
    i /= size;
    step *= own;
  }
  return array[at];
}

tc_array as_array(const Tensor& tensor, const void* data) {
  tc_array array{};
  array.size = sizeof array;
  array.data = data;
  array.rank = static_cast<int32_t>(tensor.shape.size());
  std::copy(tensor.shape.begin(), tensor.shape.end(), array.shape);
  return array;
}

}  // namespace

std::vector<RandomEdit> random_edits(const ir::Module& module, const ir::Point& point) {
  std::map<std::string, ir::Type> types;  // in the order of their numbers
  for (const ir::Entry& entry : module.entries) {
    for (const ir::EditedValue& edited : ir::edited_values(entry.graph))
      types.try_emplace(edited.name, edited.type);
  }
  Random random(5);
  std::vector<RandomEdit> edits;
  for (const auto& [name, type] : types) {
    const size_t kind = edits.size() % 4;
    const std::vector<int64_t> shape = ir::shape_at(type, point);
    Tensor value(DType::F64, repeated_shape(shape, kind % 2 == 1)), where;
    for (double& number : value.data) {
      number = 0.3 * random.normal();
      if (module.real == DType::F32) number = static_cast<float>(number);
    }
    if (kind != 0)
      where = random_where(repeated_shape(shape, kind > 1), kind < 3 ? kReplaced : kAdded, random);
    const bool replaces = kind == 1 || kind == 2;
    edits.push_back(
        {name, replaces ? TC_EDIT_REPLACE : TC_EDIT_ADD, std::move(value), std::move(where), type});
  }
  return edits;
}

void set_edits(const LoadedModel& model, const std::vector<RandomEdit>& edits) {
  for (size_t i = 0; i < edits.size(); ++i) {
    const RandomEdit& edit = edits[i];
    std::vector<uint8_t> numbers(static_cast<size_t>(edit.value.elements() * model.info().real_bytes));
    model.write(numbers.data(), edit.value.data);
    const std::vector<uint8_t> flags(edit.where.data.begin(), edit.where.data.end());
    const tc_array value = as_array(edit.value, numbers.data()), where = as_array(edit.where, flags.data());
    model.check(model.api().set_edit(model.session(), static_cast<int32_t>(i), edit.how, &value,
                                     flags.empty() ? nullptr : &where));
  }
}

void set_edits(ir::Interpreter& interpreter, const std::vector<RandomEdit>& edits) {
  for (const RandomEdit& edit : edits) {
    const std::vector<int64_t> shape = ir::shape_at(edit.type, interpreter.point);
    Tensor value(edit.type.dtype, shape), how(DType::U8, shape);
    for (int64_t i = 0; i < value.elements(); ++i) {
      value[i] = repeated(edit.value, shape, i);
      how[i] = edit.where.data.empty() || repeated(edit.where, shape, i) != 0 ? edit.how : 0;
    }
    interpreter.edits[edit.name] = value;
    interpreter.edits[std::string(ir::kHow) + edit.name] = how;
  }
}

}  // namespace tfc::tools
