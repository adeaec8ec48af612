// Random edits of every value that a model lets callers change: as the library takes them, and whole for the
// interpreter.
#pragma once

#include <string>
#include <vector>

#include "ir/interpreter.h"
#include "tools/loaded_library.h"

namespace tfc::tools {

struct RandomEdit {
  std::string name;
  int how;  // TC_EDIT_...
  ir::Tensor value,
      where;      // repeated over tokens, so that they fit decoding; a `where` without elements is everywhere
  ir::Type type;  // of what is edited
};

/// Replaced rows and columns, sums of all or some elements, one after the other. Some of every value is left.
std::vector<RandomEdit> random_edits(const ir::Module& module, const ir::Point& point);

void set_edits(const LoadedModel& model, const std::vector<RandomEdit>& edits);
void set_edits(ir::Interpreter& interpreter, const std::vector<RandomEdit>& edits);

}  // namespace tfc::tools
