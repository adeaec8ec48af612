// Where the tensors of the key/value cache lie, for the plans and for the generated tables.
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"

namespace tfc::passes {

struct CacheTensor {
  std::string name;    // "layers.0.attn.k"
  int64_t width = 0;
  bool cross = false;  // [B,S,width], filled by `encode`; else [B,C,width] or a ring [B,min(C,slots),width]
  ir::Dim bytes;
  ir::Dim offset;      // bytes from the start of the cache, a multiple of 64
};

struct CacheLayout {
  std::vector<CacheTensor> tensors;  // by name
  ir::Dim bytes;
  const CacheTensor* find(std::string_view name) const;  // null when there is none
};

/// A function of the module's cache states alone, so a module read back from a dump has the same layout.
CacheLayout cache_layout(const ir::Module& module);

}  // namespace tfc::passes
