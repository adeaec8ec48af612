#include "codegen/kernel_builder.h"

#include <limits>

#include "codegen/function_attributes.h"
#include "ir/check.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

namespace tfc::codegen {

using llvm::Type;
using llvm::Value;

namespace {

Type* with_lanes(Type* scalar, int lanes) {
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes));
}

/// Loads of arguments never change during a call; saying so lets LLVM keep them in registers across stores.
void mark_invariant(llvm::Instruction* load) {
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(load->getContext(), {}));
}

}  // namespace

KernelBuilder::KernelBuilder(llvm::Module& module, const Target& target, const std::string& name, ir::DType real)
    : module_(module), target_(target), real_(real), b_(module.getContext()) {
  Type* pointer = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, b_.getInt64Ty(), b_.getInt64Ty(), pointer}, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
  set_function_attributes(*function_, target);
  const char* names[] = {"slots", "first", "last", "scratch"};
  for (unsigned i = 0; i < 4; ++i) function_->getArg(i)->setName(names[i]);
  function_->addParamAttr(0, llvm::Attribute::ReadOnly);
  function_->addParamAttr(0, llvm::Attribute::NoAlias);
  function_->addParamAttr(3, llvm::Attribute::NoAlias);
  entry_ = llvm::BasicBlock::Create(b_.getContext(), "entry", function_);
  auto* start = llvm::BasicBlock::Create(b_.getContext(), "start", function_);
  llvm::BranchInst::Create(start, entry_);
  b_.SetInsertPoint(start);
}

KernelBuilder::KernelBuilder(llvm::Module& module, const Target& target, const std::string& name, ir::DType real,
                             const std::string& signature)
    : module_(module), target_(target), real_(real), b_(module.getContext()) {
  std::vector<Type*> parameters;
  for (char letter : signature) parameters.push_back(letter == 'p' ? static_cast<Type*>(b_.getPtrTy())
                                                                   : b_.getInt64Ty());
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), parameters, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
  set_function_attributes(*function_, target);
  function_->addFnAttr(llvm::Attribute::NoInline);
  for (unsigned i = 0; i < signature.size(); ++i) {
    auto& known = signature[i] == 'p' ? pointers_ : arguments_;
    known[static_cast<int>(i)] = function_->getArg(i);
  }
  entry_ = llvm::BasicBlock::Create(b_.getContext(), "entry", function_);
  auto* start = llvm::BasicBlock::Create(b_.getContext(), "start", function_);
  llvm::BranchInst::Create(start, entry_);
  b_.SetInsertPoint(start);
}

llvm::Function* KernelBuilder::finish() {
  b_.CreateRetVoid();
  std::string text;
  llvm::raw_string_ostream stream(text);
  TFC_CHECK(!llvm::verifyFunction(*function_, &stream), "kernel " + function_->getName().str() + ": " + text);
  return function_;
}

Type* KernelBuilder::real_type() const { return type_of(real_); }

Type* KernelBuilder::type_of(ir::DType dtype) const {
  llvm::LLVMContext& context = module_.getContext();
  switch (dtype) {
    case ir::DType::F32: return Type::getFloatTy(context);
    case ir::DType::F64: return Type::getDoubleTy(context);
    case ir::DType::I32: return Type::getInt32Ty(context);
    case ir::DType::U8: return Type::getInt8Ty(context);
  }
  ir::compiler_fault("unknown element type");
}

// -- arguments ---------------------------------------------------------------------------------------------------

Val KernelBuilder::integer(int slot) {
  auto found = arguments_.find(slot);
  if (found != arguments_.end()) return wrap(found->second);
  llvm::IRBuilder<> entry(entry_->getTerminator());
  Value* address = entry.CreateConstInBoundsGEP1_64(entry.getInt64Ty(), function_->getArg(0), slot);
  auto* load = entry.CreateAlignedLoad(entry.getInt64Ty(), address, llvm::Align(8), "arg" + std::to_string(slot));
  mark_invariant(load);
  arguments_[slot] = load;
  return wrap(load);
}

Ptr KernelBuilder::pointer(int slot, ir::DType element) {
  auto found = pointers_.find(slot);
  if (found == pointers_.end()) {
    Value* word = integer(slot).raw();
    llvm::IRBuilder<> entry(entry_->getTerminator());
    Value* address = entry.CreateIntToPtr(word, entry.getPtrTy(), "ptr" + std::to_string(slot));
    found = pointers_.emplace(slot, address).first;
  }
  return {found->second, type_of(element)};
}

Ptr KernelBuilder::scratch(ir::DType element) { return {function_->getArg(3), type_of(element)}; }

Val KernelBuilder::is_null(Ptr p) { return wrap(b_.CreateIsNull(p.base)); }

void KernelBuilder::for_tasks(const std::function<void(Val)>& body) {
  loop("task", wrap(function_->getArg(1)), wrap(function_->getArg(2)), 1, body);
}

Val KernelBuilder::tasks_end() { return wrap(function_->getArg(2)); }

// -- constants and conversions -----------------------------------------------------------------------------------

Val KernelBuilder::index(int64_t value) { return wrap(b_.getInt64(static_cast<uint64_t>(value))); }
Val KernelBuilder::number(double value) { return wrap(llvm::ConstantFP::get(real_type(), value)); }

Val KernelBuilder::constant(ir::DType dtype, double value) {
  Type* type = type_of(dtype);
  if (type->isFloatingPointTy()) return wrap(llvm::ConstantFP::get(type, value));
  return wrap(llvm::ConstantInt::getSigned(type, static_cast<int64_t>(value)));
}

Val KernelBuilder::same_type_constant(Val like, double value) {
  return wrap(llvm::ConstantFP::get(like.raw()->getType(), value));
}

Val KernelBuilder::same_type_constant(Val like, int64_t value) {
  Type* type = like.raw()->getType();
  if (like.is_real()) return wrap(llvm::ConstantFP::get(type, static_cast<double>(value)));
  return wrap(llvm::ConstantInt::getSigned(type, value));
}

Val KernelBuilder::splat(Val scalar, int lanes) {
  return lanes == 1 ? scalar : wrap(b_.CreateVectorSplat(static_cast<unsigned>(lanes), scalar.raw()));
}

Val KernelBuilder::lane_numbers(int lanes) {
  std::vector<llvm::Constant*> numbers;
  for (int i = 0; i < lanes; ++i) numbers.push_back(b_.getInt64(static_cast<uint64_t>(i)));
  return wrap(llvm::ConstantVector::get(numbers));
}

Val KernelBuilder::to_real(Val value) {
  return real_ == ir::DType::F64 ? to_double(value) : to_float(value);
}

Val KernelBuilder::to_double(Val value) {
  Type* type = with_lanes(b_.getDoubleTy(), value.lanes());
  if (!value.is_real()) return wrap(b_.CreateSIToFP(value.raw(), type));
  return value.raw()->getType() == type ? value : wrap(b_.CreateFPExt(value.raw(), type));
}

Val KernelBuilder::to_float(Val value) {
  Type* type = with_lanes(b_.getFloatTy(), value.lanes());
  if (!value.is_real()) return wrap(b_.CreateSIToFP(value.raw(), type));
  return value.raw()->getType() == type ? value : wrap(b_.CreateFPTrunc(value.raw(), type));
}

Val KernelBuilder::to_index(Val value) {
  Type* type = with_lanes(b_.getInt64Ty(), value.lanes());
  if (value.is_real()) return wrap(b_.CreateFPToSI(value.raw(), type));
  const bool is_unsigned = value.raw()->getType()->getScalarSizeInBits() <= 8;
  return wrap(b_.CreateIntCast(value.raw(), type, !is_unsigned));
}

Val KernelBuilder::bitcast(Val value, Type* type) { return wrap(b_.CreateBitCast(value.raw(), type)); }
Val KernelBuilder::extract(Val vector, int lane) {
  return wrap(b_.CreateExtractElement(vector.raw(), static_cast<uint64_t>(lane)));
}
Val KernelBuilder::shuffle(Val a, Val b, const std::vector<int>& mask) {
  return wrap(b_.CreateShuffleVector(a.raw(), b.raw(), mask));
}

// -- control -----------------------------------------------------------------------------------------------------

void KernelBuilder::loop(const std::string& name, Val from, Val to, Val step,
                         const std::function<void(Val)>& body) {
  llvm::LLVMContext& context = b_.getContext();
  auto* before = b_.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(context, name + ".head", function_);
  auto* inside = llvm::BasicBlock::Create(context, name, function_);
  auto* after = llvm::BasicBlock::Create(context, name + ".end", function_);
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2, name + ".i");
  i->addIncoming(from.raw(), before);
  b_.CreateCondBr(b_.CreateICmpSLT(i, to.raw()), inside, after);
  b_.SetInsertPoint(inside);
  body(wrap(i));
  Value* next = b_.CreateAdd(i, step.raw(), name + ".next", /*HasNUW=*/false, /*HasNSW=*/true);
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

void KernelBuilder::unrolled_loop(const std::string& name, Val from, Val to, int unroll,
                                  const std::function<void(Val)>& body) {
  const auto first = from.constant(), last = to.constant();
  if (first && last && *last - *first <= unroll) {
    for (int64_t i = *first; i < *last; ++i) body(index(i));
    return;
  }
  Val whole = from + (to - from) / unroll * unroll;
  loop(name, from, whole, unroll, [&](Val i) {
    for (int u = 0; u < unroll; ++u) body(i + u);
  });
  if (first && last && (*last - *first) % unroll == 0) return;
  loop(name + ".rest", whole, to, 1, body);
}

void KernelBuilder::if_(Val condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  if (auto known = condition.constant()) {
    if (*known) {
      then();
    } else if (otherwise) {
      otherwise();
    }
    return;
  }
  llvm::LLVMContext& context = b_.getContext();
  auto* yes = llvm::BasicBlock::Create(context, "then", function_);
  auto* no = otherwise ? llvm::BasicBlock::Create(context, "else", function_) : nullptr;
  auto* after = llvm::BasicBlock::Create(context, "endif", function_);
  b_.CreateCondBr(condition.raw(), yes, no ? no : after);
  b_.SetInsertPoint(yes);
  then();
  b_.CreateBr(after);
  if (no) {
    b_.SetInsertPoint(no);
    otherwise();
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

Var KernelBuilder::var(Val initial) {
  llvm::IRBuilder<> entry(entry_->getTerminator());
  Var result(this, entry.CreateAlloca(initial.raw()->getType()));
  result.set(initial);
  return result;
}

Val Var::get() const { return k_->wrap(k_->ir().CreateLoad(slot_->getAllocatedType(), slot_)); }
void Var::set(Val value) const { k_->ir().CreateStore(value.raw(), slot_); }

Val KernelBuilder::select(Val condition, Val a, Val b) {
  match(a, b);
  if (condition.is_vector() && !a.is_vector()) {
    a = splat(a, condition.lanes());
    b = splat(b, condition.lanes());
  }
  return wrap(b_.CreateSelect(condition.raw(), a.raw(), b.raw()));
}

// -- vectors -----------------------------------------------------------------------------------------------------

void KernelBuilder::vector_loop(const std::string& name, Val from, Val to, const std::function<void(Lane)>& body) {
  Val whole = from + (to - from) / kLanes * kLanes;
  const auto first = from.constant(), last = to.constant();
  if (first && last && *last - *first == kLanes) {
    body({from, {}});
    return;
  }
  loop(name, from, whole, kLanes, [&](Val start) { body({start, {}}); });
  if (first && last && (*last - *first) % kLanes == 0) return;
  if_(whole < to, [&] { body({whole, first_lanes_mask(to - whole, kLanes)}); });
}

void KernelBuilder::vector_loop(const std::string& name, Val n, const std::function<void(Lane)>& body) {
  vector_loop(name, index(0), n, body);
}

Val KernelBuilder::sum(const std::string& name, Val n, const std::function<Val(Lane)>& term) {
  return sum_in(real_, name, n, term);
}

Val KernelBuilder::sum_in(ir::DType type, const std::string& name, Val n, const std::function<Val(Lane)>& term) {
  const Val zeros = splat(constant(type, 0.0));
  Var total = var(zeros);
  vector_loop(name, n, [&](Lane lane) {
    Val value = term(lane);
    if (type == ir::DType::F64) value = to_double(value);
    if (!value.is_vector()) value = splat(value);
    if (lane.mask) value = select(lane.mask, value, zeros);
    total.set(total.get() + value);
  });
  return reduce_add(total.get());
}

Val KernelBuilder::maximum(const std::string& name, Val n, const std::function<Val(Lane)>& term) {
  const Val lowest = splat(number(-std::numeric_limits<double>::infinity()));
  Var greatest = var(lowest);
  vector_loop(name, n, [&](Lane lane) {
    Val value = term(lane);
    if (!value.is_vector()) value = splat(value);
    if (lane.mask) value = select(lane.mask, value, lowest);
    greatest.set(max_keeping_nan(greatest.get(), value));
  });
  return reduce_max(greatest.get());
}

Val KernelBuilder::reduce_add(Val vector) {
  for (int n = vector.lanes() / 2; n >= 1; n /= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < n; ++i) low.push_back(i), high.push_back(i + n);
    vector = shuffle(vector, vector, low) + shuffle(vector, vector, high);
  }
  return extract(vector, 0);
}

Val KernelBuilder::reduce_max(Val vector) {
  for (int n = vector.lanes() / 2; n >= 1; n /= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < n; ++i) low.push_back(i), high.push_back(i + n);
    vector = max_keeping_nan(shuffle(vector, vector, low), shuffle(vector, vector, high));
  }
  return extract(vector, 0);
}

Val KernelBuilder::max_keeping_nan(Val a, Val b) { return select((a > b) | (a != a), a, b); }

// -- memory ------------------------------------------------------------------------------------------------------

Ptr KernelBuilder::at(Ptr p, Val elements) {
  return {b_.CreateInBoundsGEP(p.element, p.base, elements.raw()), p.element};
}

Val KernelBuilder::load(Ptr p, Val index) {
  return wrap(b_.CreateAlignedLoad(p.element, at(p, index).base, align_of(p)));
}
void KernelBuilder::store(Ptr p, Val index, Val value) {
  b_.CreateAlignedStore(value.raw(), at(p, index).base, align_of(p));
}

Val KernelBuilder::load(Ptr p, const Lane& lane) {
  return lane.mask ? load_vector(p, lane.start, kLanes, lane.mask) : load_vector(p, lane.start, kLanes);
}
void KernelBuilder::store(Ptr p, const Lane& lane, Val value) {
  if (!value.is_vector()) value = splat(value);
  if (lane.mask) {
    store_vector(p, lane.start, value, lane.mask);
  } else {
    store(p, lane.start, value);
  }
}

Val KernelBuilder::load_vector(Ptr p, Val index, int lanes) {
  return wrap(b_.CreateAlignedLoad(with_lanes(p.element, lanes), at(p, index).base, align_of(p)));
}
Val KernelBuilder::load_vector(Ptr p, Val index, int lanes, Val mask) {
  Type* type = with_lanes(p.element, lanes);
  return wrap(b_.CreateMaskedLoad(type, at(p, index).base, align_of(p), mask.raw(), llvm::Constant::getNullValue(type)));
}
void KernelBuilder::store_vector(Ptr p, Val index, Val value, Val mask) {
  b_.CreateMaskedStore(value.raw(), at(p, index).base, align_of(p), mask.raw());
}

Val KernelBuilder::gather(Ptr p, Val indices, Val mask) {
  Type* type = with_lanes(p.element, indices.lanes());
  Value* addresses = b_.CreateInBoundsGEP(p.element, p.base, indices.raw());
  return wrap(b_.CreateMaskedGather(type, addresses, align_of(p), mask ? mask.raw() : nullptr,
                                    llvm::Constant::getNullValue(type)));
}

void KernelBuilder::prefetch(Ptr p, Val index, int locality) {
  Value* address = b_.CreateGEP(p.element, p.base, index.raw());  // not inbounds
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                     {address, b_.getInt32(0), b_.getInt32(static_cast<uint32_t>(locality)), b_.getInt32(1)});
}

void KernelBuilder::zero(Ptr p, Val elements) {
  Val zeros = wrap(llvm::Constant::getNullValue(with_lanes(p.element, kLanes)));
  vector_loop("zero", elements, [&](Lane lane) { store(p, lane, zeros); });
}

Val KernelBuilder::first_lanes_mask(Val count, int lanes) {
  std::vector<llvm::Constant*> numbers;
  for (int i = 0; i < lanes; ++i) numbers.push_back(b_.getInt32(static_cast<uint32_t>(i)));
  Value* narrow = b_.CreateTrunc(count.raw(), b_.getInt32Ty());
  Value* all = b_.CreateVectorSplat(static_cast<unsigned>(lanes), narrow);
  return wrap(b_.CreateICmpSLT(llvm::ConstantVector::get(numbers), all));
}

llvm::Align KernelBuilder::align_of(Ptr p) const {
  return llvm::Align(std::max<uint64_t>(1, p.element->getScalarSizeInBits() / 8));
}

}  // namespace tfc::codegen
