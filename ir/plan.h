// The plan of one entry: buffers, and the records that the run time walks. Made by passes (lower,
// plan-memory), printed and read with the graph, turned into constant tables by codegen.
#pragma once

#include <string>
#include <vector>

#include "ir/attributes.h"
#include "ir/type.h"

namespace tfc::ir {

/// Where memory lives. Values match runtime/plan.h. Workspace arguments name a buffer, External ones an input
/// or output of the entry, Constant ones a blob of Module::constants; the others are whole blocks.
enum class Space : uint8_t { Workspace, Params, Grads, Moment1, Moment2, Cache, Edits, Constant, External };
std::string_view space_name(Space space);  // "ws" "params" "grads" "moment1" "moment2" "cache" "edits" "const" "ext"

/// One piece of workspace. Lifetimes are in records; buffers that do not overlap in time may share a slot.
struct Buffer {
  std::string name;  // of the value or temporary, for dumps
  Dim bytes;         // what it needs; placed at multiples of 64 bytes
  int first = 0,
      last = 0;   // records (indices into Plan::records) that touch it, widened over enclosing loops
  int slot = -1;  // set by plan-memory
};

/// An argument of a kernel call, in one 8-byte slot.
struct Arg {
  enum class Kind : uint8_t { Pointer, Integer } kind = Kind::Integer;
  Space space = Space::Workspace;  // Pointer
  int index = 0;  // Pointer: buffer, external or constant number; 0 for whole blocks; -1: null pointer
  Dim value;      // Pointer: offset in bytes; Integer: the number
};

/// Which code runs: family ("product", "layer_norm"), the compile-time settings that specialise it. Two
/// records with equal specs share one kernel. codegen/kernels/<family>.cpp emits it.
struct KernelSpec {
  std::string family;
  Attributes attributes;     // static sizes, eps, activation, ...; the element type is `f` = "f32" | "f64"
  std::string text() const;  // family + attributes.print()
  friend bool operator==(const KernelSpec&, const KernelSpec&) = default;
};

/// A kernel call over tasks 0..tasks-1 (independent of each other, cut by shapes alone), or the borders of a
/// loop whose index is Symbol::I inside (loops do not nest).
struct Record {
  enum class Kind : uint8_t { Call, LoopBegin, LoopEnd } kind = Kind::Call;
  std::string node;       // the node it came from, for dumps and profiles
  KernelSpec kernel;      // Call
  Dim tasks;              // Call: how many; LoopBegin: iterations
  std::vector<Arg> args;  // Call
  Dim scratch;            // Call: bytes that each thread needs for itself, besides (multiple of 64)
  Dim flops, bytes;       // Call: work and traffic, for reports and to keep small records serial
};

struct External {
  std::string name;  // the input's or output's name in the graph
  bool is_output = false;
  Type type;
};

/// A value that the entry leaves in its workspace for whoever looks: a buffer of its own, dense, alive to the end.
struct Tap {
  std::string name;
  bool gradient = false;
  Type type;
  int buffer = 0;
};

struct Plan {
  std::vector<External> externals;
  std::vector<Buffer> buffers;
  std::vector<Tap> taps;
  std::vector<Dim> slots;  // bytes of each slot, multiples of 64; offsets are running sums
  std::vector<Record> records;
  Dim workspace_bytes() const;  // all slots, without the threads' scratch
  Dim slot_offset(int slot) const;
  Dim scratch_bytes() const;  // greatest of the records', per thread
};

}  // namespace tfc::ir
