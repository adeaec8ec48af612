// The tables that codegen writes into a generated library and the run time walks. All constant data; plain structs
// of fixed layout, offsets in 64-bit. This is the one header that the compiler and the run time share.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace tc {

/// slots: one 8-byte word per argument, a pointer or an integer, in the order of the record's arguments.
/// Runs tasks first..last-1. scratch: this thread's own memory, 64-byte aligned.
using Kernel = void (*)(const int64_t* slots, int64_t first, int64_t last, void* scratch);

/// Postfix programs over int64: [op, operand?]..., ended by End. Symbols: index into {B, T, S, C, I}. Each word is a
/// signed LEB128 number (DWARF 5, 7.6): a byte for nearly all of them, where eight would be most of a library.
enum ExprOp : int64_t { ExprEnd, ExprConst /*value*/, ExprSymbol /*index*/, ExprAdd, ExprMul, ExprCeilDiv /*divisor*/,
                        ExprMin, ExprMax };

/// As ir::Space.
enum SpaceId : int32_t { SpaceWorkspace, SpaceParams, SpaceGrads, SpaceMoment1, SpaceMoment2, SpaceCache, SpaceEdits,
                         SpaceConstant, SpaceExternal, SpaceNull /* a null pointer */, SpaceInteger /* not a pointer: the value itself */ };

struct ArgDesc {
  int16_t space;
  int16_t index;     // External: which; Constant: which
  int32_t value;     // start of the program in ModelDesc::code: byte offset (workspace: from its start), or the integer
};

enum RecordKind : int32_t { RecordCall, RecordLoopBegin, RecordLoopEnd };

struct RecordDesc {
  int16_t kind;
  int16_t arg_count;
  int32_t first_arg;   // in EntryDesc::args
  int32_t kernel;      // index into ModelDesc::kernels
  int32_t tasks;       // program
  int32_t work;        // program: flops + 4 * bytes, to keep small records on one thread
  int32_t node;        // where its name starts in ModelDesc::strings, for profiles
};

/// What an input or output of an entry is. The names are those of the IR's inputs and outputs. Those of the heads come
/// last, and again for each further head: see head_role.
enum Role : int32_t {
  RoleTokens, RoleX, RoleSrc, RoleTgt, RoleMemory, RoleTypes, RoleMask, RoleSrcMask,
  RolePositions, RoleDocuments, RolePrefix, RoleSrcPositions, RoleSrcDocuments, RoleImage,
  RoleOffsets /* cache lengths i32[B] */, RoleMean, RoleDropout /* i32[5]: seed, call, whether */,
  RoleCount, RoleClip, RoleHyper, RoleLrScale, RoleDecay,                       // step
  RoleGradX, RoleGradSrc, RoleGradTgt, RoleGradMemory, RoleGradImage, RoleNorm,
  RoleHeads,
  RoleTargets = RoleHeads, RoleWeights, RoleGradOutput,
  RoleOutput, RoleLossSum, RoleLossCount, RoleLogprobs,
  RoleSecondHead
};
constexpr int32_t kMostHeads = 16;
constexpr int32_t kHeadRoles = RoleSecondHead - RoleHeads;
constexpr int32_t RoleEnd = RoleHeads + kMostHeads * kHeadRoles;

/// A head's role, of those from RoleHeads on.
constexpr Role head_role(Role role, int32_t head) { return static_cast<Role>(role + head * kHeadRoles); }

enum DTypeId : int32_t { TypeF32, TypeF64, TypeI32, TypeU8 };

struct ExternalDesc {
  int32_t role;
  int32_t is_output;
  int32_t dtype;
  int32_t rank;
  int64_t dims[4];     // programs
};

/// A value that an entry leaves in its workspace: which of the model's taps, and where.
struct TapDesc {
  int32_t tap;         // index into ModelDesc::taps
  int32_t gradient;    // 1: its gradient
  int32_t rank, reserved;
  int64_t dims[4];     // programs
  int64_t offset;      // program: bytes from the start of the plan's buffers
};

/// A value that an entry lets the caller change on its way: which of the model's edits, and its shape.
struct EditDesc {
  int32_t edit;        // index into ModelDesc::edits
  int32_t rank;
  int64_t dims[4];     // programs
};

/// What is done with an element: nothing, replaced, added to.
enum EditHow : uint8_t { EditKeep, EditReplace, EditAdd };

/// What kernels read of an edit that is set: addresses of the caller's elements and of what is done with each (EditHow),
/// with strides in elements over the value's leading dimensions, 0 where an array repeats. All zero: nothing is set.
/// Rows of both are as wide as the value. The space Edits is a table of these, one for each of ModelDesc::edits.
struct EditEntry {
  int64_t value, how;
  int64_t value_strides[3], how_strides[3];
};

enum EntryId : int32_t { EntryInfer, EntryLast, EntryLoss, EntryLogprobs, EntryTrain, EntryVjp, EntryStep, EntryDecode,
                         EntryEncode, EntryMerge, EntryEnd };

struct EntryDesc {
  int32_t present;     // 0: the model has no such entry; all else is zero
  int32_t external_count, record_count, arg_count;
  const ExternalDesc* externals;
  const RecordDesc* records;
  const ArgDesc* args;
  int64_t workspace;   // program: bytes without scratch, multiple of 64
  int64_t scratch;     // program: bytes per thread, multiple of 64
  const TapDesc* taps;
  int32_t tap_count, edit_count;
  const EditDesc* edits;
};

enum InitKind : int32_t { InitConstant, InitNormal, InitUniform };

struct ParamDesc {
  const char* name;
  int64_t offset;      // elements
  int64_t elements;
  int32_t rank;
  int32_t decayed, frozen;
  int32_t init;
  double init_value;
  int64_t shape[4];
};

/// A tensor of the key/value cache, [B, C, width] (self) or [B, S, width] (cross: filled by the encode entry).
struct CacheDesc {
  const char* name;
  int64_t width;
  int64_t offset;      // program: bytes from the cache's start
  int32_t cross;
  int32_t reserved;
};

/// An output of the model with its loss. Types and losses are numbered as TC_HEAD_... and TC_LOSS_....
struct HeadDesc {
  const char* name;    // of [head.NAME]; "" the only one, of [head]
  int32_t type, loss;
  int32_t per_token;   // 1: rows are tokens; 0: sequences
  int32_t source;      // 1: of the source's tokens [B,S]
  int64_t out_width, ignore_index;
  double loss_weight;
};

struct ModelDesc {
  const char* name;
  const char* description;   // resolved TOML
  const char* architecture;  // lines "key = value": what weights must agree on besides names and shapes
  const char* target;        // "x86-64-v4": what the CPU must have
  uint64_t build_id;
  int32_t real;              // TypeF32 | TypeF64
  int32_t kind;              // 0 decoder, 1 encoder, 2 encoder-decoder
  int32_t isa;               // 2, 3, 4: x86-64 level that is checked at creation
  int32_t head;              // TC_HEAD_...: type of the main head, whose are out_width, classes, ignore_index
  int64_t d_model, out_width, vocab, src_vocab, types, max_seq, classes, ignore_index;
  int64_t fixed_batch, fixed_seq, fixed_src_seq;   // 0: free
  int64_t image[3];          // channels, height, width; 0: no images
  int32_t has_mask, has_lengths, memory_input, causal;
  int32_t has_positions, has_documents, has_prefix, has_weights;
  int64_t position_rows;     // of a learned table in which positions are looked up, or 0
  int64_t parameter_block;   // elements, with padding
  int64_t gradient_block;    // elements of the gradients and of each moment: parameters that move come first
  int32_t param_count, kernel_count, constant_count, cache_count;
  int32_t head_count;
  int32_t main_head;         // its number: the language model's where there is one, else the first
  const HeadDesc* heads;
  const ParamDesc* params;
  const Kernel* kernels;
  const char* const* kernel_names;
  const double* const* constants;
  const CacheDesc* caches;
  int64_t cache_bytes;       // program
  const uint8_t* code;       // all programs
  const char* strings;       // names of nodes, each ended by a zero
  const char* const* taps;   // names of the values that entries show
  int32_t tap_count, edit_count;
  const char* const* edits;  // names of the values that callers may change
  EntryDesc entries[EntryEnd];
};

}  // namespace tc

/// Defined by the generated module.
extern "C" const tc::ModelDesc tc_model_desc;
