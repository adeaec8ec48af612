#include "op_runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <random>

#include "ir/check.h"
#include "passes/lower/lowering.h"
#include "runtime/plan.h"

namespace tfc::test {

namespace {

using ir::Arg;
using ir::Attributes;
using ir::Dim;
using ir::DType;
using ir::Tensor;
using ir::Type;
using ir::Value;
using passes::Location;

bool is_absent(const Tensor& tensor) { return tensor.shape.size() == 1 && tensor.shape[0] < 0; }

DType stored_type(const Tensor& tensor, DType real) {
  return tensor.dtype == DType::F64 ? real : tensor.dtype;
}

Type type_of(const Tensor& tensor, DType dtype) {
  Type type{dtype, {}};
  for (int64_t size : tensor.shape) type.shape.push_back(Dim(size));
  return type;
}

/// Memory of one value in its element type, rows `stride` elements apart; the gaps hold a pattern.
struct Memory {
  DType dtype;
  int64_t rows, width, stride;
  std::vector<unsigned char> bytes;

  Memory(DType type, int64_t row_count, int64_t row_width, int64_t gap)
      : dtype(type),
        rows(row_count),
        width(row_width),
        stride(row_width + gap),
        bytes(static_cast<size_t>(row_count * stride * ir::dtype_bytes(type)), 0xff) {}

  unsigned char* at(int64_t row, int64_t column) {
    return bytes.data() + (row * stride + column) * ir::dtype_bytes(dtype);
  }
  template <class T>
  void put(unsigned char* p, double value) {
    const T narrow = static_cast<T>(value);
    std::memcpy(p, &narrow, sizeof narrow);
  }
  template <class T>
  double get(const unsigned char* p) const {
    T value;
    std::memcpy(&value, p, sizeof value);
    return static_cast<double>(value);
  }
  void write(const std::vector<double>& data) {
    for (int64_t i = 0; i < rows * width; ++i) {
      unsigned char* p = at(i / width, i % width);
      const double value = data[static_cast<size_t>(i)];
      switch (dtype) {
        case DType::F32:
          put<float>(p, value);
          break;
        case DType::F64:
          put<double>(p, value);
          break;
        case DType::I32:
          put<int32_t>(p, value);
          break;
        case DType::U8:
          put<uint8_t>(p, value);
          break;
      }
    }
  }
  std::vector<double> read() {
    std::vector<double> data;
    for (int64_t i = 0; i < rows * width; ++i) {
      const unsigned char* p = at(i / width, i % width);
      switch (dtype) {
        case DType::F32:
          data.push_back(get<float>(p));
          break;
        case DType::F64:
          data.push_back(get<double>(p));
          break;
        case DType::I32:
          data.push_back(get<int32_t>(p));
          break;
        case DType::U8:
          data.push_back(get<uint8_t>(p));
          break;
      }
    }
    return data;
  }
  bool gaps_untouched() {
    for (int64_t row = 0; row < rows; ++row) {
      for (unsigned char* p = at(row, width); p < at(row, 0) + stride * ir::dtype_bytes(dtype); ++p) {
        if (*p != 0xff) return false;
      }
    }
    return true;
  }
};

/// Operands that are f64 whatever the module: losses, norms, hyper-parameters.
bool is_double(ir::OpKind op, size_t slot) {
  switch (op) {
    case ir::OpKind::AdamW:
      return slot >= 4;
    case ir::OpKind::BalanceGrad:
      return slot < 2;
    case ir::OpKind::ClipScale:
    case ir::OpKind::AddBalance:
    case ir::OpKind::BalanceScale:
      return true;
    default:
      return false;
  }
}

/// A lowering whose values live in memory of its own; pointers are numbers of pieces of memory.
class OneOp : public passes::Lowering {
 public:
  OneOp(const OpCase& c) : case_(c), module_(c.module) {
    module_.real = graph_.real = c.real;
    std::vector<Value> operands;
    for (const Tensor& tensor : c.operands) {
      if (is_absent(tensor)) {
        operands.push_back({});
        continue;
      }
      ir::Node input;
      input.name = "in" + std::to_string(operands.size());
      input.results = {type_of(tensor, tensor.dtype == DType::F64 && is_double(c.op, operands.size())
                                           ? DType::F64
                                           : stored_type(tensor, c.real))};
      operands.push_back({graph_.add_node(input, {}), 0});
    }
    id_ = graph_.add(c.op, operands, c.attributes, "node");
    for (size_t slot = 0; slot < operands.size(); ++slot) {
      if (!operands[slot].valid()) continue;
      const int piece = add_memory(type(operands[slot]), static_cast<int>(slot));
      memory_[static_cast<size_t>(piece)].write(c.operands[slot].data);
      places_[operands[slot]] = piece;
    }
    if (c.op == ir::OpKind::Edit) describe_edit(operands[2], operands[1]);
    if (c.op == ir::OpKind::EditGrad) describe_edit(operands[1], operands[0]);
    for (uint32_t i = 0; i < node().results.size(); ++i) {
      const bool donated = (c.op == ir::OpKind::AdamW) || (c.op == ir::OpKind::CacheAppend);
      if (c.unused.contains(i)) continue;
      constexpr size_t kAdamWSlots[] = {0, 2, 3, 1};  // p', m', v', g' of operands p, g, m, v
      const size_t slot = c.op == ir::OpKind::AdamW ? kAdamWSlots[i] : 0;
      places_[result(i)] =
          donated ? places_.at(operands[slot]) : add_memory(node().results[i], 100 + static_cast<int>(i));
    }
  }

  const ir::Module& module() const override { return module_; }
  const ir::Graph& graph() const override { return graph_; }
  ir::NodeId id() const override { return id_; }
  bool used(Value value) const override { return places_.contains(value); }
  Location locate(Value value) override {
    const auto found = places_.find(value);
    if (!value.valid() || found == places_.end())
      return {{Arg::Kind::Pointer, ir::Space::Workspace, -1, 0}, 0, 0};
    if (value == edit_) return {{Arg::Kind::Pointer, ir::Space::Edits, edit_entry_, 0}, 0, 0};
    const Memory& memory = memory_[static_cast<size_t>(found->second)];
    return {{Arg::Kind::Pointer, ir::Space::Workspace, found->second, 0}, memory.stride, memory.width};
  }
  Arg temporary(const std::string&, Dim bytes) override {
    memory_.emplace_back(DType::U8, 1, bytes.at({}), 0);
    return {Arg::Kind::Pointer, ir::Space::Workspace, static_cast<int>(memory_.size()) - 1, 0};
  }
  Arg constant(const std::string&, const std::vector<double>& values) override {
    memory_.emplace_back(DType::F64, 1, static_cast<int64_t>(values.size()), 0);
    memory_.back().write(values);
    return {Arg::Kind::Pointer, ir::Space::Workspace, static_cast<int>(memory_.size()) - 1, 0};
  }
  void call(ir::Record record) override { records_.push_back(std::move(record)); }
  void loop(Dim, const std::function<void()>&) override { ir::compiler_fault("no operation here loops"); }

  void lower() {
    switch (case_.op) {
#define TFC_OP(name, text, least, most, results, padding) \
  case ir::OpKind::name:                                  \
    return passes::lower_##name(*this);
#define TFC_GRAD_OP(name, text, least, most, results, padding) \
  case ir::OpKind::name:                                       \
    return passes::lower_##name(*this);
#include "ir/ops.def"
      default:
        ir::compiler_fault("not a primitive");
    }
  }

  void run(const std::string& level, TaskOrder order) {
    for (const ir::Record& record : records_) {
      std::vector<SlotValue> slots;
      for (const Arg& arg : record.args) {
        if (arg.kind == Arg::Kind::Integer) {
          slots.push_back(arg.value.at({}));
        } else if (arg.index < 0) {
          slots.push_back(nullptr);
        } else {
          slots.push_back(memory_[static_cast<size_t>(arg.index)].bytes.data() + arg.value.at({}));
        }
      }
      compiled(record.kernel, level).run(slots, record.tasks.at({}), record.scratch.at({}), order);
    }
  }

  std::vector<Tensor> results() {
    std::vector<Tensor> all;
    for (uint32_t i = 0; i < node().results.size(); ++i) {
      std::vector<int64_t> shape;
      for (const Dim& size : node().results[i].shape) shape.push_back(size.at({}));
      Tensor tensor(DType::F64, shape);
      if (const auto found = places_.find(result(i)); found != places_.end()) {
        Memory& memory = memory_[static_cast<size_t>(found->second)];
        tensor.data = memory.read();
        EXPECT_TRUE(memory.gaps_untouched()) << "the gaps of result " << i << " were written";
      }
      all.push_back(tensor);
    }
    return all;
  }

 private:
  int add_memory(const Type& type, int number) {
    const int64_t width = type.rank() == 0 ? 1 : type.width().at({}),
                  rows = type.rank() == 0 ? 1 : type.rows().at({});
    const bool view = type.rank() == 3 && type.dtype == case_.real && !case_.contiguous.contains(number);
    memory_.emplace_back(type.dtype, rows, width, view ? case_.gap : 0);
    return static_cast<int>(memory_.size()) - 1;
  }

  /// The entry of a session's table, of arrays that repeat nowhere. Rows of `value` may be of any content in a gradient.
  void describe_edit(Value how, Value value) {
    tc::EditEntry entry{};
    const auto address = [&](Value of) {
      return static_cast<int64_t>(reinterpret_cast<intptr_t>(memory_[static_cast<size_t>(places_.at(of))].bytes.data()));
    };
    entry.value = address(value);
    entry.how = address(how);
    const std::vector<int64_t>& shape = case_.operands[0].shape;
    int64_t stride = shape.back();
    for (size_t d = 2; d <= shape.size(); ++d) {
      entry.value_strides[4 - d] = entry.how_strides[4 - d] = stride;
      stride *= shape[shape.size() - d];
    }
    memory_.emplace_back(DType::U8, 1, static_cast<int64_t>(sizeof entry), 0);
    std::memcpy(memory_.back().bytes.data(), &entry, sizeof entry);
    edit_ = how;
    edit_entry_ = static_cast<int>(memory_.size()) - 1;
  }

  const JitKernel& compiled(const ir::KernelSpec& spec, const std::string& level) {
    static std::map<std::string, std::unique_ptr<JitKernel>> known;
    auto& slot = known[level + std::to_string(case_.optimisation) + spec.text()];
    if (!slot) slot = std::make_unique<JitKernel>(spec, target_of(level), case_.optimisation);
    return *slot;
  }

  const OpCase& case_;
  ir::Module module_;
  ir::Graph graph_;
  ir::NodeId id_;
  std::deque<Memory> memory_;
  std::map<Value, int> places_;
  Value edit_;  // the operand that an entry describes
  int edit_entry_ = -1;
  std::vector<ir::Record> records_;
};

double as_stored(double value, DType dtype) {
  return dtype == DType::F32 ? static_cast<double>(static_cast<float>(value)) : value;
}

/// Greatest difference relative to the greatest magnitude; infinite where a NaN or infinity is not the
/// other's too.
double difference(const Tensor& found, const Tensor& wanted) {
  double greatest = 0, worst = 0;
  for (double value : wanted.data) {
    if (std::isfinite(value)) greatest = std::max(greatest, std::fabs(value));
  }
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    const double a = found[i], b = wanted[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double error = std::fabs(a - b);
    worst = std::max(worst, std::isnan(error) ? std::numeric_limits<double>::infinity() : error);
  }
  return worst / std::max(greatest, 1e-300);
}

}  // namespace

std::vector<Tensor> run_compiled(const OpCase& c, const std::string& level, TaskOrder order) {
  OneOp op(c);
  op.lower();
  op.run(level, order);
  return op.results();
}

std::vector<Tensor> run_interpreted(const OpCase& c) {
  OneOp op(c);
  std::vector<Tensor> rounded = c.operands;
  std::vector<const Tensor*> operands;
  for (size_t i = 0; i < rounded.size(); ++i) {
    if (!is_double(c.op, i) && rounded[i].dtype == DType::F64) {
      for (double& value : rounded[i].data) value = as_stored(value, c.real);
    }
    operands.push_back(is_absent(rounded[i]) ? nullptr : &rounded[i]);
  }
  std::vector<Tensor> results;
  for (const Type& type : op.node().results) {
    std::vector<int64_t> shape;
    for (const Dim& size : type.shape) shape.push_back(size.at({}));
    results.emplace_back(DType::F64, shape);
  }
  const Attributes attributes = c.attributes;
  ir::evaluate(c.op, {operands, results, attributes, &c.module});
  return results;
}

void expect_as_interpreted(OpCase c, double tolerance_f32, double tolerance_f64) {
  for (DType real : {DType::F32, DType::F64}) {
    c.real = real;
    const std::vector<Tensor> wanted = run_interpreted(c);
    for (const std::string& level : runnable_levels()) {
      std::vector<Tensor> plain;
      for (int64_t gap : {0, 3, 16}) {
        c.gap = gap;
        const std::string where =
            level + " " + std::string(ir::dtype_name(real)) + " gap " + std::to_string(gap);
        const std::vector<Tensor> found = run_compiled(c, level);
        const std::vector<Tensor> backwards = run_compiled(c, level, TaskOrder::Backward);
        for (size_t i = 0; i < wanted.size(); ++i) {
          if (c.unused.contains(static_cast<uint32_t>(i))) continue;
          EXPECT_LE(difference(found[i], wanted[i]), real == DType::F32 ? tolerance_f32 : tolerance_f64)
              << "result " << i << ", " << where;
          EXPECT_EQ(0, std::memcmp(found[i].data.data(), backwards[i].data.data(), found[i].data.size() * 8))
              << "result " << i << " depends on the order of tasks, " << where;
          if (gap > 0) {
            EXPECT_EQ(0, std::memcmp(found[i].data.data(), plain[i].data.data(), found[i].data.size() * 8))
                << "result " << i << " depends on the stride, " << where;
          }
        }
        if (gap == 0) plain = found;
      }
    }
  }
}

Tensor random_tensor(std::vector<int64_t> shape, unsigned seed, double low, double high) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  Tensor tensor(DType::F64, std::move(shape));
  for (double& value : tensor.data) value = uniform(random);
  return tensor;
}

Tensor integer_tensor(DType dtype, std::vector<int64_t> shape, std::vector<double> values) {
  return {dtype, std::move(shape), std::move(values)};
}

}  // namespace tfc::test
