#include "codegen/tables.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "codegen/constant_data.h"
#include "codegen/kernels/kernels.h"
#include "ir/check.h"
#include "ir/edits.h"
#include "ir/heads.h"
#include "ir/taps.h"
#include "passes/plan/cache_layout.h"
#include "runtime/plan.h"

namespace tfc::codegen {

namespace {

using llvm::Constant;

static_assert(static_cast<int>(ir::Space::Workspace) == tc::SpaceWorkspace &&
              static_cast<int>(ir::Space::Params) == tc::SpaceParams &&
              static_cast<int>(ir::Space::Grads) == tc::SpaceGrads &&
              static_cast<int>(ir::Space::Moment1) == tc::SpaceMoment1 &&
              static_cast<int>(ir::Space::Moment2) == tc::SpaceMoment2 &&
              static_cast<int>(ir::Space::Cache) == tc::SpaceCache &&
              static_cast<int>(ir::Space::Edits) == tc::SpaceEdits &&
              static_cast<int>(ir::Space::Constant) == tc::SpaceConstant &&
              static_cast<int>(ir::Space::External) == tc::SpaceExternal);
static_assert(static_cast<int>(ir::DType::F32) == tc::TypeF32 && static_cast<int>(ir::DType::F64) == tc::TypeF64 &&
              static_cast<int>(ir::DType::I32) == tc::TypeI32 && static_cast<int>(ir::DType::U8) == tc::TypeU8);
static_assert(static_cast<int64_t>(ir::DimCode::End) == tc::ExprEnd &&
              static_cast<int64_t>(ir::DimCode::Const) == tc::ExprConst &&
              static_cast<int64_t>(ir::DimCode::Symbol) == tc::ExprSymbol &&
              static_cast<int64_t>(ir::DimCode::Add) == tc::ExprAdd &&
              static_cast<int64_t>(ir::DimCode::Mul) == tc::ExprMul &&
              static_cast<int64_t>(ir::DimCode::CeilDiv) == tc::ExprCeilDiv &&
              static_cast<int64_t>(ir::DimCode::Min) == tc::ExprMin &&
              static_cast<int64_t>(ir::DimCode::Max) == tc::ExprMax);

static_assert(ir::kEditBytes == sizeof(tc::EditEntry));

struct RoleName {
  std::string_view name;
  bool is_output;
  tc::Role role;
};

/// Names of an entry's inputs and outputs in the IR, and what the run time calls them.
constexpr RoleName kRoles[] = {
    {"tokens", false, tc::RoleTokens},       {"x", false, tc::RoleX},
    {"src", false, tc::RoleSrc},             {"tgt", false, tc::RoleTgt},
    {"memory", false, tc::RoleMemory},       {"types", false, tc::RoleTypes},
    {"mask", false, tc::RoleMask},           {"src_mask", false, tc::RoleSrcMask},
    {"positions", false, tc::RolePositions}, {"documents", false, tc::RoleDocuments},
    {"prefix", false, tc::RolePrefix},       {"src_positions", false, tc::RoleSrcPositions},
    {"src_documents", false, tc::RoleSrcDocuments}, {"image", false, tc::RoleImage},
    {"offsets", false, tc::RoleOffsets},     {"mean", false, tc::RoleMean},
    {"dropout", false, tc::RoleDropout},
    {"count", false, tc::RoleCount},         {"clip", false, tc::RoleClip},
    {"hyper", false, tc::RoleHyper},         {"lr_scale", false, tc::RoleLrScale},
    {"decay", false, tc::RoleDecay},         {"grad_x", true, tc::RoleGradX},
    {"grad_src", true, tc::RoleGradSrc},     {"grad_tgt", true, tc::RoleGradTgt},
    {"grad_memory", true, tc::RoleGradMemory}, {"grad_image", true, tc::RoleGradImage},
    {"norm", true, tc::RoleNorm},
};

/// Likewise of each head: NAME, or NAME.HEAD where heads have names.
constexpr RoleName kHeadRoles[] = {
    {"targets", false, tc::RoleTargets},     {"weights", false, tc::RoleWeights},
    {"grad_output", false, tc::RoleGradOutput}, {"output", true, tc::RoleOutput},
    {"loss.sum", true, tc::RoleLossSum},     {"loss.count", true, tc::RoleLossCount},
    {"logprobs", true, tc::RoleLogprobs},
};

/// In the order of tc::EntryId.
constexpr std::array<std::string_view, tc::EntryEnd> kEntries = {"infer", "last", "loss",   "logprobs", "train",
                                                                 "vjp",   "step", "decode", "encode", "merge"};

tc::Role role_of(const ir::External& external, const std::vector<ir::HeadFacts>& heads) {
  for (const RoleName& known : kRoles) {
    if (known.name == external.name && known.is_output == external.is_output) return known.role;
  }
  for (const RoleName& known : kHeadRoles) {
    if (known.is_output != external.is_output) continue;
    if (known.name == external.name) return known.role;  // of an entry with one output
    for (size_t head = 0; head < heads.size(); ++head) {
      if (heads[head].named(std::string(known.name)) == external.name)
        return tc::head_role(known.role, static_cast<int32_t>(head));
    }
  }
  ir::compiler_fault("an entry has an unknown " + std::string(external.is_output ? "output" : "input") + " '" +
                     external.name + "'");
}

class TableWriter {
 public:
  TableWriter(llvm::Module& module, const ir::Module& planned, const Target& target)
      : data_(module),
        llvm_(module),
        module_(planned),
        heads_(ir::heads_of(planned.facts)),
        tap_names_(ir::tapped_names(planned)),
        edit_names_(ir::edited_names(planned)),
        target_(target) {}

  llvm::GlobalVariable* write(uint64_t build_id, const std::string& architecture);

 private:
  int32_t kernel_number(const ir::KernelSpec& spec);
  tc::ArgDesc argument(const ir::Plan& plan, const ir::Arg& arg);
  tc::RecordDesc record(const ir::Record& record, size_t first_arg);
  tc::ExternalDesc external(const ir::External& external);
  tc::TapDesc tap(const ir::Plan& plan, const ir::Tap& tap);
  tc::EditDesc edit(const ir::EditedValue& edited);
  void dims(const ir::Type& type, int64_t (&programs)[4]);
  Constant* entry(std::string_view name);
  Constant* parameter(const ir::Parameter& parameter);
  Constant* head(const ir::HeadFacts& head);
  Constant* program(const ir::Dim& expression) { return data_.i64(data_.program(expression)); }
  Constant* fact(std::string_view key) { return data_.i64(module_.facts.integer(key, 0)); }
  Constant* flag(std::string_view key) { return data_.i32(module_.facts.flag(key) ? 1 : 0); }

  ConstantData data_;
  llvm::Module& llvm_;
  const ir::Module& module_;
  const std::vector<ir::HeadFacts> heads_;
  const std::vector<std::string> tap_names_, edit_names_;
  const Target& target_;
  std::unordered_map<std::string, int32_t> kernel_numbers_;  // by the spec's text
  std::vector<Constant*> kernels_, kernel_names_;
  std::vector<ir::Dim> slot_offsets_;          // of the plan being written
};

int32_t TableWriter::kernel_number(const ir::KernelSpec& spec) {
  std::string text = spec.text();
  const auto [known, added] = kernel_numbers_.emplace(std::move(text), static_cast<int32_t>(kernels_.size()));
  if (added) {
    const std::string name = "k" + std::to_string(kernels_.size()) + "." + spec.family;
    kernels_.push_back(emit_kernel(llvm_, target_, spec, name));
    kernel_names_.push_back(data_.text(known->first));
  }
  return known->second;
}

template <typename Number>
int16_t short_number(Number number) {
  TFC_CHECK(std::in_range<int16_t>(number), "a plan's table has more than 32767 of one kind");
  return static_cast<int16_t>(number);
}

tc::ArgDesc TableWriter::argument(const ir::Plan& plan, const ir::Arg& arg) {
  if (arg.kind == ir::Arg::Kind::Integer) return {tc::SpaceInteger, 0, data_.program(arg.value)};
  if (arg.index < 0) return {tc::SpaceNull, 0, data_.program(0)};
  if (arg.space != ir::Space::Workspace)
    return {static_cast<int16_t>(arg.space), short_number(arg.index), data_.program(arg.value)};
  const int slot = plan.buffers[static_cast<size_t>(arg.index)].slot;
  return {tc::SpaceWorkspace, 0, data_.program(arg.value + slot_offsets_[static_cast<size_t>(slot)])};
}

tc::RecordDesc TableWriter::record(const ir::Record& record, size_t first_arg) {
  const bool call = record.kind == ir::Record::Kind::Call;
  const ir::Dim work = call ? record.flops + ir::Dim(4) * record.bytes : ir::Dim(0);
  return {static_cast<int16_t>(record.kind), short_number(record.args.size()), static_cast<int32_t>(first_arg),
          call ? kernel_number(record.kernel) : 0, data_.program(record.tasks), data_.program(work),
          data_.string_start(record.node)};
}

tc::ExternalDesc TableWriter::external(const ir::External& external) {
  TFC_CHECK(external.type.rank() <= 4, "an input or output has more than four dimensions");
  tc::ExternalDesc result{role_of(external, heads_),
                          external.is_output,
                          static_cast<int32_t>(external.type.dtype),
                          static_cast<int32_t>(external.type.rank()),
                          {}};
  dims(external.type, result.dims);
  return result;
}

void TableWriter::dims(const ir::Type& type, int64_t (&programs)[4]) {
  for (size_t i = 0; i < 4; ++i) programs[i] = data_.program(i < type.shape.size() ? type.shape[i] : ir::Dim(1));
}

int32_t number_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<int32_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

tc::TapDesc TableWriter::tap(const ir::Plan& plan, const ir::Tap& tap) {
  TFC_CHECK(tap.type.rank() <= 4, "the tap '" + tap.name + "' has more than four dimensions");
  const int slot = plan.buffers[static_cast<size_t>(tap.buffer)].slot;
  tc::TapDesc result{number_of(tap_names_, tap.name), tap.gradient, static_cast<int32_t>(tap.type.rank()), 0, {}, 0};
  dims(tap.type, result.dims);
  result.offset = data_.program(slot_offsets_[static_cast<size_t>(slot)]);
  return result;
}

tc::EditDesc TableWriter::edit(const ir::EditedValue& edited) {
  tc::EditDesc result{number_of(edit_names_, edited.name), static_cast<int32_t>(edited.type.rank()), {}};
  dims(edited.type, result.dims);
  return result;
}

Constant* TableWriter::entry(std::string_view name) {
  const ir::Entry* entry = module_.entry(name);
  if (!entry) {
    return data_.structure({data_.i32(0), data_.i32(0), data_.i32(0), data_.i32(0), data_.null_pointer(),
                            data_.null_pointer(), data_.null_pointer(), program(0), program(0), data_.null_pointer(),
                            data_.i32(0), data_.i32(0), data_.null_pointer()});
  }
  const ir::Plan& plan = *entry->plan;
  slot_offsets_ = {ir::Dim()};
  for (const ir::Dim& bytes : plan.slots) slot_offsets_.push_back(slot_offsets_.back() + bytes);
  std::vector<tc::ExternalDesc> externals;
  std::vector<tc::RecordDesc> records;
  std::vector<tc::ArgDesc> args;
  std::vector<tc::TapDesc> taps;
  std::vector<tc::EditDesc> edits;
  for (const ir::External& e : plan.externals) externals.push_back(external(e));
  for (const ir::Record& r : plan.records) {
    records.push_back(record(r, args.size()));
    for (const ir::Arg& arg : r.args) args.push_back(argument(plan, arg));
  }
  for (const ir::Tap& t : plan.taps) taps.push_back(tap(plan, t));
  for (const ir::EditedValue& value : ir::edited_values(entry->graph)) edits.push_back(edit(value));
  const auto count = [&](const auto& list) { return data_.i32(static_cast<int64_t>(list.size())); };
  const std::string prefix(name);
  return data_.structure({data_.i32(1), count(externals), count(records), count(args),
                          data_.plain_array(prefix + ".externals", externals),
                          data_.plain_array(prefix + ".records", records),
                          data_.plain_array(prefix + ".args", args), program(plan.workspace_bytes()),
                          program(plan.scratch_bytes()), data_.plain_array(prefix + ".taps", taps), count(taps),
                          count(edits), data_.plain_array(prefix + ".edits", edits)});
}

Constant* TableWriter::parameter(const ir::Parameter& parameter) {
  std::vector<Constant*> shape;
  TFC_CHECK(parameter.shape.size() <= 4, "parameter " + parameter.name + " has more than four dimensions");
  for (int64_t n : parameter.shape) shape.push_back(data_.i64(n));
  while (shape.size() < 4) shape.push_back(data_.i64(1));
  return data_.structure({data_.text(parameter.name), data_.i64(parameter.offset), data_.i64(parameter.elements()),
                          data_.i32(static_cast<int64_t>(parameter.shape.size())), data_.i32(parameter.decayed),
                          data_.i32(parameter.frozen), data_.i32(static_cast<int>(parameter.init.kind)),
                          data_.f64(parameter.init.value), data_.array_value(shape)});
}

constexpr std::array<std::string_view, 6> kHeadTypes = {"none", "lm", "classifier", "mlm", "token_classifier",
                                                        "regression"};
constexpr std::array<std::string_view, 4> kLosses = {"none", "cross_entropy", "binary_cross_entropy", "mse"};

template <size_t n>
int64_t position(const std::array<std::string_view, n>& names, const std::string& name) {
  for (size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<int64_t>(i);
  }
  ir::compiler_fault("unknown name '" + name + "' among the module's facts");
}

Constant* TableWriter::head(const ir::HeadFacts& head) {
  return data_.structure({data_.text(head.name), data_.i32(position(kHeadTypes, head.type)),
                          data_.i32(position(kLosses, head.loss)), data_.i32(head.per_token), data_.i32(head.source),
                          data_.i64(head.out), data_.i64(head.ignore_index), data_.f64(head.weight)});
}

llvm::GlobalVariable* TableWriter::write(uint64_t build_id, const std::string& architecture) {
  constexpr std::array<std::string_view, 3> kinds = {"decoder", "encoder", "encoder-decoder"};
  std::vector<Constant*> entries, params, blobs, caches, heads, taps, edits;
  for (std::string_view name : kEntries) entries.push_back(entry(name));
  for (const ir::Parameter& p : module_.parameters) params.push_back(parameter(p));
  for (const ir::HeadFacts& h : heads_) heads.push_back(head(h));
  for (const std::string& name : tap_names_) taps.push_back(data_.text(name));
  for (const std::string& name : edit_names_) edits.push_back(data_.text(name));
  for (const ir::Constant& blob : module_.constants) blobs.push_back(data_.doubles("blob." + blob.name, blob.values));
  const passes::CacheLayout cache = passes::cache_layout(module_);
  for (const passes::CacheTensor& tensor : cache.tensors) {
    caches.push_back(data_.structure({data_.text(tensor.name), data_.i64(tensor.width),
                                      program(tensor.offset), data_.i32(tensor.cross), data_.i32(0)}));
  }
  const std::string kind = module_.facts.text("kind");
  std::vector<Constant*> members = {data_.text(module_.name),
                                    data_.text(module_.description),
                                    data_.text(architecture),
                                    data_.text(target_.cpu),
                                    data_.i64(static_cast<int64_t>(build_id)),
                                    data_.i32(static_cast<int>(module_.real)),
                                    data_.i32(position(kinds, kind)),
                                    data_.i32(target_.isa_level),
                                    data_.i32(position(kHeadTypes, module_.facts.text("head"))),
                                    fact("d_model"),
                                    fact("out_width"),
                                    fact("vocab"),
                                    fact("src_vocab"),
                                    fact("types"),
                                    fact("max_seq"),
                                    fact("classes"),
                                    fact("ignore_index"),
                                    fact("batch"),
                                    fact("seq"),
                                    fact("src_seq"),
                                    data_.array_value({fact("channels"), fact("height"), fact("width")}),
                                    flag("mask"),
                                    flag("lengths"),
                                    flag("memory_input"),
                                    data_.i32(kind != "encoder"),
                                    flag("positions"),
                                    flag("documents"),
                                    flag("prefix"),
                                    flag("weights"),
                                    fact("position_rows"),
                                    data_.i64(module_.parameter_block()),
                                    data_.i64(module_.gradient_block()),
                                    data_.i32(static_cast<int64_t>(params.size())),
                                    data_.i32(static_cast<int64_t>(kernels_.size())),
                                    data_.i32(static_cast<int64_t>(blobs.size())),
                                    data_.i32(static_cast<int64_t>(caches.size())),
                                    data_.i32(static_cast<int64_t>(heads.size())),
                                    data_.i32(std::max(0, ir::main_head(heads_))),
                                    data_.array("heads", heads),
                                    data_.array("params", params),
                                    data_.array("kernels", kernels_),
                                    data_.array("kernel_names", kernel_names_),
                                    data_.array("constants", blobs),
                                    data_.array("caches", caches),
                                    program(cache.bytes)};
  members.push_back(data_.code_array());  // no program may be added beyond this point
  members.push_back(data_.strings());
  members.push_back(data_.array("taps", taps));
  members.push_back(data_.i32(static_cast<int64_t>(taps.size())));
  members.push_back(data_.i32(static_cast<int64_t>(edits.size())));
  members.push_back(data_.array("edits", edits));
  members.push_back(data_.array_value(entries));
  Constant* value = data_.structure(members);
  TFC_CHECK(llvm_.getDataLayout().getTypeAllocSize(value->getType()) == sizeof(tc::ModelDesc),
            "the emitted tables do not have the layout of tc::ModelDesc");
  return new llvm::GlobalVariable(llvm_, value->getType(), true, llvm::GlobalValue::ExternalLinkage, value,
                                  "tc_model_desc");
}

}  // namespace

llvm::GlobalVariable* emit_tables(llvm::Module& module, const ir::Module& planned, const Target& target,
                                  uint64_t build_id, const std::string& architecture) {
  return TableWriter(module, planned, target).write(build_id, architecture);
}

}  // namespace tfc::codegen
