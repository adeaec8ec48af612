// What kernel emitters are written in: values with operators, loops, vector loops, reductions. Emitters in
// codegen/kernels/ read like the mathematics and touch neither basic blocks nor phi nodes.
//
// A vector is always kLanes = 16 elements, whatever the CPU (LLVM splits it into hardware vectors), so a reduction
// adds in the same order at every vector width. Register-tiled kernels ask for hardware vectors explicitly.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/target.h"
#include "ir/type.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tfc::codegen {

inline constexpr int kLanes = 16;

class KernelBuilder;

/// A value of the kernel being built: i64/i32/i1, float/double, a pointer, or a vector of these. Operators act by
/// type; a scalar meeting a vector is broadcast; C++ numbers become constants of the other side's type.
class Val {
 public:
  Val() = default;
  Val(KernelBuilder* k, llvm::Value* v) : k_(k), v_(v) {}
  llvm::Value* raw() const { return v_; }
  KernelBuilder* builder() const { return k_; }
  explicit operator bool() const { return v_ != nullptr; }
  bool is_vector() const { return v_->getType()->isVectorTy(); }
  bool is_real() const { return v_->getType()->isFPOrFPVectorTy(); }
  int lanes() const;                      // 1 for scalars
  std::optional<int64_t> constant() const;  // of integer constants

 private:
  KernelBuilder* k_ = nullptr;
  llvm::Value* v_ = nullptr;
};

Val operator+(Val a, Val b);
Val operator-(Val a, Val b);
Val operator*(Val a, Val b);
Val operator/(Val a, Val b);  // integers: signed, towards zero
Val operator%(Val a, Val b);
Val operator-(Val a);
Val operator<(Val a, Val b);  // comparisons: signed for integers, ordered for reals (false with NaN)
Val operator<=(Val a, Val b);
Val operator>(Val a, Val b);
Val operator>=(Val a, Val b);
Val operator==(Val a, Val b);
Val operator!=(Val a, Val b);  // reals: unordered (true with NaN)
Val operator&(Val a, Val b);
Val operator|(Val a, Val b);
Val operator!(Val a);
#define TFC_MIXED(op)                  \
  Val operator op(Val a, double b);    \
  Val operator op(double a, Val b);    \
  Val operator op(Val a, int64_t b);   \
  Val operator op(int64_t a, Val b);   \
  inline Val operator op(Val a, int b) { return a op static_cast<int64_t>(b); } \
  inline Val operator op(int a, Val b) { return static_cast<int64_t>(a) op b; }
TFC_MIXED(+)
TFC_MIXED(-)
TFC_MIXED(*)
TFC_MIXED(/)
TFC_MIXED(%)
TFC_MIXED(<)
TFC_MIXED(<=)
TFC_MIXED(>)
TFC_MIXED(>=)
TFC_MIXED(==)
TFC_MIXED(!=)
#undef TFC_MIXED

/// Elements, rows or tasks from `first` up to `last`, which is not one of them.
struct Range {
  Val first, last;
  Val size() const { return last - first; }
};

/// Part number `part` of 0..total-1 in `parts` nearly equal parts.
inline Range share(Val total, Val parts, Val part) {
  return {total * part / parts, total * (part + 1) / parts};
}

/// A typed pointer: what it points at decides how loads and offsets count.
struct Ptr {
  llvm::Value* base = nullptr;
  llvm::Type* element = nullptr;
};

/// Position of a vector in a vector_loop: elements start .. start+15, of which the mask's are inside (no mask: all).
struct Lane {
  Val start;
  Val mask;  // <16 x i1>, absent in full vectors
};

/// A mutable variable (an alloca that SROA turns into registers): how loops carry values.
class Var {
 public:
  Var(KernelBuilder* k, llvm::AllocaInst* slot) : k_(k), slot_(slot) {}
  Val get() const;
  void set(Val value) const;
  operator Val() const { return get(); }  // NOLINT: reads as the variable

 private:
  KernelBuilder* k_;
  llvm::AllocaInst* slot_;
};

/// Builds one function  void name(const int64_t* slots, int64_t first, int64_t last, void* scratch)  (runtime/plan.h).
class KernelBuilder {
 public:
  KernelBuilder(llvm::Module& module, const Target& target, const std::string& name, ir::DType real);

  /// A helper that kernels call: parameters by letter of `signature`, 'p' a pointer, 'i' an i64; pointer(n) and
  /// integer(n) are parameter number n. Never inlined: several kernels share it.
  KernelBuilder(llvm::Module& module, const Target& target, const std::string& name, ir::DType real,
                const std::string& signature);

  const Target& target() const { return target_; }
  ir::DType real() const { return real_; }
  llvm::Type* real_type() const;  // float or double
  llvm::Type* type_of(ir::DType dtype) const;
  llvm::IRBuilder<>& ir() { return b_; }
  llvm::Function* function() const { return function_; }
  llvm::Function* finish();       // ends the function and verifies it

  // -- arguments -----------------------------------------------------------------------------------------------
  Ptr pointer(int slot, ir::DType element);     // argument number `slot` of the record
  Ptr pointer(int slot) { return pointer(slot, real_); }
  Val integer(int slot);
  Ptr scratch(ir::DType element);               // this thread's memory
  Val is_null(Ptr p);                           // i1
  /// Runs `body` for every task given to this call.
  void for_tasks(const std::function<void(Val task)>& body);
  Val tasks_end();                              // one past this call's last task

  // -- constants and conversions ---------------------------------------------------------------------------------
  Val index(int64_t value);                     // i64
  Val number(double value);                     // scalar of the real type
  Val constant(ir::DType dtype, double value);  // scalar of any type (I32 -> i32, ...)
  Val splat(Val scalar, int lanes = kLanes);
  Val lane_numbers(int lanes = kLanes);         // <n x i64> 0,1,2,...
  Val to_real(Val value);                       // any number or vector of numbers to the real type
  Val to_double(Val value);
  Val to_float(Val value);
  Val to_index(Val value);                      // i32/i8/i1 -> i64 (sign extended; i1 and u8 zero extended)
  Val bitcast(Val value, llvm::Type* type);
  Val extract(Val vector, int lane);
  Val shuffle(Val a, Val b, const std::vector<int>& mask);

  // -- control ----------------------------------------------------------------------------------------------------
  void loop(const std::string& name, Val from, Val to, Val step, const std::function<void(Val)>& body);
  void loop(const std::string& name, Val from, Val to, int64_t step, const std::function<void(Val)>& body) {
    loop(name, from, to, index(step), body);
  }
  void loop(const std::string& name, Val count, const std::function<void(Val)>& body) { loop(name, index(0), count, 1, body); }
  /// The same, `unroll` copies of the body per iteration (the rest one by one). For constant counts a full unroll
  /// is `unroll >= count`.
  void unrolled_loop(const std::string& name, Val from, Val to, int unroll, const std::function<void(Val)>& body);
  void if_(Val condition, const std::function<void()>& then, const std::function<void()>& otherwise = nullptr);
  Var var(Val initial);
  Val select(Val condition, Val a, Val b);

  // -- vectors ------------------------------------------------------------------------------------------------------
  /// Elements 0..n-1 by sixteen; the rest in one masked step, in which loads give `0` and stores skip outside.
  void vector_loop(const std::string& name, Val n, const std::function<void(Lane)>& body);
  /// The same from an element on (`from` need not be a multiple of anything).
  void vector_loop(const std::string& name, Val from, Val to, const std::function<void(Lane)>& body);
  /// Sum over 0..n-1 of `term`, in 16 lanes, then pairwise from the upper half down. Masked lanes count as 0.
  Val sum(const std::string& name, Val n, const std::function<Val(Lane)>& term);
  /// The same, added in `type` (F64: terms are widened first).
  Val sum_in(ir::DType type, const std::string& name, Val n, const std::function<Val(Lane)>& term);
  /// Greatest; NaN if any term is NaN; -inf for n = 0.
  Val maximum(const std::string& name, Val n, const std::function<Val(Lane)>& term);
  Val reduce_add(Val vector);   // halves folded: (0+8),(1+9)... in fixed order
  Val reduce_max(Val vector);   // keeps NaN
  Val max_keeping_nan(Val a, Val b);

  // -- memory -------------------------------------------------------------------------------------------------------
  Ptr at(Ptr p, Val elements);                       // p + elements
  Val load(Ptr p, Val index);                        // scalar
  Val load(Ptr p) { return load(p, index(0)); }
  void store(Ptr p, Val index, Val value);           // scalar, or a whole vector of any width (unaligned)
  Val load(Ptr p, const Lane& lane);                 // <16 x element>, masked lanes 0
  void store(Ptr p, const Lane& lane, Val value);
  Val load_vector(Ptr p, Val index, int lanes);      // hardware-width loads for tiles, unaligned
  Val load_vector(Ptr p, Val index, int lanes, Val mask);   // masked lanes 0
  void store_vector(Ptr p, Val index, Val value, Val mask);
  Val gather(Ptr p, Val indices, Val mask);          // <n x i64> element indices; masked lanes 0
  void prefetch(Ptr p, Val index, int locality = 3);  // any address: nothing is read
  void zero(Ptr p, Val elements);                    // fills with zeros (vector stores)
  Val first_lanes_mask(Val count, int lanes);        // <lanes x i1>: lane < count

  // -- arithmetic -----------------------------------------------------------------------------------------------------
  Val fma(Val a, Val b, Val c);   // a*b + c; one rounding where the target has it, else two
  Val sqrt(Val a);
  Val abs(Val a);
  Val min(Val a, Val b);          // reals: b where either is NaN (x86 minps); use select for NaN-keeping forms
  Val max(Val a, Val b);
  Val floor(Val a);
  Val round_to_even(Val a);

  // helpers of operators
  void match(Val& a, Val& b);     // broadcasts the scalar of a scalar and a vector
  Val same_type_constant(Val like, double value);
  Val same_type_constant(Val like, int64_t value);
  Val wrap(llvm::Value* v) { return {this, v}; }

 private:
  llvm::Align align_of(Ptr p) const;

  llvm::Module& module_;
  Target target_;
  ir::DType real_;
  llvm::Function* function_;
  llvm::BasicBlock* entry_;                   // argument loads and variables; ends in a branch to the body
  llvm::IRBuilder<> b_;
  std::map<int, llvm::Value*> arguments_;     // slot -> its word, loaded once
  std::map<int, llvm::Value*> pointers_;      // slot -> the word as a pointer
};

Val fma(Val a, Val b, Val c);
Val square(Val a);

}  // namespace tfc::codegen
