// Writes the tables of runtime/plan.h by hand, as codegen would.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace tc::test {

/// A size expression as a postfix program, without its End.
struct Expr {
  std::vector<int64_t> ops;
  Expr(int64_t value) : ops{ExprConst, value} {}  // NOLINT: numbers are expressions
  Expr(int value) : Expr(int64_t{value}) {}       // NOLINT
  static Expr symbol(int64_t index) {
    Expr e(0);
    e.ops = {ExprSymbol, index};
    return e;
  }
  static Expr join(const Expr& a, const Expr& b, int64_t op) {
    Expr e = a;
    e.ops.insert(e.ops.end(), b.ops.begin(), b.ops.end());
    e.ops.push_back(op);
    return e;
  }
};
inline Expr operator+(const Expr& a, const Expr& b) { return Expr::join(a, b, ExprAdd); }
inline Expr operator*(const Expr& a, const Expr& b) { return Expr::join(a, b, ExprMul); }
inline Expr min(const Expr& a, const Expr& b) { return Expr::join(a, b, ExprMin); }
inline Expr max(const Expr& a, const Expr& b) { return Expr::join(a, b, ExprMax); }
inline Expr ceildiv(Expr a, int64_t divisor) {
  a.ops.push_back(ExprCeilDiv);
  a.ops.push_back(divisor);
  return a;
}

/// The program as the run time reads it, its End included.
inline std::vector<uint8_t> packed(Expr expr) {
  expr.ops.push_back(ExprEnd);
  std::vector<uint8_t> code;
  for (int64_t word : expr.ops) {
    // Seven bits at a time, the lowest first, until what is left is no more than the sign of the last of them.
    for (; word < -64 || word > 63; word >>= 7) code.push_back(static_cast<uint8_t>((word & 0x7f) | 0x80));
    code.push_back(static_cast<uint8_t>(word & 0x7f));
  }
  return code;
}
inline const Expr B = Expr::symbol(0), T = Expr::symbol(1), S = Expr::symbol(2), C = Expr::symbol(3),
                  I = Expr::symbol(4);

struct Arg {
  int16_t space;
  int16_t index;
  Expr value;
};
inline Arg ext(int16_t index, Expr offset = 0) { return {SpaceExternal, index, offset}; }
inline Arg in(SpaceId space, Expr offset = 0) { return {space, 0, offset}; }
inline Arg number(Expr value) { return {SpaceInteger, 0, value}; }
inline Arg null() { return {SpaceNull, 0, 0}; }

/// Work that makes a record worth all threads.
constexpr int64_t kLarge = 100'000'000;

class TableBuilder {
 public:
  explicit TableBuilder(const char* name) { desc_.name = name; }

  ModelDesc& desc() { return desc_; }

  int32_t program(const Expr& expr) {
    const std::vector<uint8_t> code = packed(expr);
    code_.insert(code_.end(), code.begin(), code.end());
    return static_cast<int32_t>(code_.size() - code.size());
  }
  void begin(EntryId entry, const Expr& workspace = 0, const Expr& scratch = 0) {
    current_ = &parts_[entry];
    EntryDesc& e = desc_.entries[entry];
    e.present = 1;
    e.workspace = program(workspace);
    e.scratch = program(scratch);
  }
  int32_t external(Role role, bool output, DTypeId dtype, const std::vector<Expr>& dims) {
    ExternalDesc e{role, output, dtype, static_cast<int32_t>(dims.size()), {}};
    for (size_t i = 0; i < dims.size(); ++i) e.dims[i] = program(dims[i]);
    current_->externals.push_back(e);
    return static_cast<int32_t>(current_->externals.size()) - 1;
  }
  void call(Kernel kernel, const Expr& tasks, const std::vector<Arg>& args, int64_t work = kLarge) {
    RecordDesc r{RecordCall,
                 static_cast<int16_t>(args.size()),
                 static_cast<int32_t>(current_->args.size()),
                 static_cast<int32_t>(kernels_.size()),
                 program(tasks),
                 program(work),
                 0};
    kernels_.push_back(kernel);
    for (const Arg& arg : args) current_->args.push_back({arg.space, arg.index, program(arg.value)});
    current_->records.push_back(r);
  }
  void loop(const Expr& iterations) {
    current_->records.push_back({RecordLoopBegin, 0, 0, 0, program(iterations), program(0), 0});
  }
  void end_loop() { current_->records.push_back({RecordLoopEnd, 0, 0, 0, program(0), program(0), 0}); }
  void parameter(ParamDesc parameter) { params_.push_back(parameter); }
  void cache(CacheDesc cache) { caches_.push_back(cache); }
  int32_t constant(const double* values) {
    constants_.push_back(values);
    return static_cast<int32_t>(constants_.size()) - 1;
  }

  /// The finished tables; they live as long as this builder.
  const ModelDesc& finish() {
    desc_.code = code_.data();
    desc_.kernels = kernels_.data();
    kernel_names_.assign(kernels_.size(), "a kernel");
    desc_.kernel_names = kernel_names_.data();
    desc_.strings = "a node";  // of every record
    desc_.kernel_count = static_cast<int32_t>(kernels_.size());
    if (heads_.empty()) {
      const int32_t loss = desc_.head == TC_HEAD_NONE ? TC_LOSS_NONE : TC_LOSS_CROSS_ENTROPY;
      heads_.push_back({"", desc_.head, loss, 1, 0, desc_.out_width, desc_.ignore_index, 1.0});
    }
    desc_.heads = heads_.data();
    desc_.head_count = static_cast<int32_t>(heads_.size());
    desc_.params = params_.data();
    desc_.param_count = static_cast<int32_t>(params_.size());
    desc_.caches = caches_.data();
    desc_.cache_count = static_cast<int32_t>(caches_.size());
    desc_.constants = constants_.data();
    for (int e = 0; e < EntryEnd; ++e) {
      EntryDesc& entry = desc_.entries[e];
      const Parts& parts = parts_[e];
      entry.external_count = static_cast<int32_t>(parts.externals.size());
      entry.record_count = static_cast<int32_t>(parts.records.size());
      entry.arg_count = static_cast<int32_t>(parts.args.size());
      entry.externals = parts.externals.data();
      entry.records = parts.records.data();
      entry.args = parts.args.data();
    }
    return desc_;
  }

 private:
  struct Parts {
    std::vector<ExternalDesc> externals;
    std::vector<RecordDesc> records;
    std::vector<ArgDesc> args;
  };
  ModelDesc desc_{};
  std::vector<HeadDesc> heads_;
  Parts parts_[EntryEnd];
  Parts* current_ = nullptr;
  std::vector<uint8_t> code_;
  std::vector<Kernel> kernels_;
  std::vector<const char*> kernel_names_;
  std::vector<ParamDesc> params_;
  std::vector<CacheDesc> caches_;
  std::vector<const double*> constants_;
};

}  // namespace tc::test
