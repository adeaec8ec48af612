// What the tiles of a product fetch into the caches while they multiply.
#pragma once

#include "codegen/kernels/product_tile.h"

namespace tfc::codegen {

/// One stream of fetches, shared out among the calls of tiles: a matrix of groups x rows of lines that each
/// call takes the next `share` rows of, in one group after the other. Addresses and steps in bytes.
class FetchStream {
 public:
  /// Number `stream` of the words at `fetch`.
  FetchStream(KernelBuilder& k, Ptr fetch, int stream);

  /// Pieces of `rows` rows, each as long as the depth of the tiles' calls, that lie ld bytes apart.
  void along_depth(Val address, Val ld, Val rows, Val calls);

  /// The same number of bytes of each of `depth` rows, ld bytes apart, while tiles of `lines` lines are
  /// called.
  void across_depth(Val address, Val ld, Val bytes, Val depth, Val lines, Val calls);

  /// The next call's part goes into the words.
  void next();

 private:
  void begin(Val address, Val line_step, Val row_step);
  Ptr word(FetchWord which) const;

  KernelBuilder& k_;
  Ptr words_;
  Var address_, group_step_, groups_, rows_, share_;  // rows: those that are left
  Var group_, row_step_;
};

}  // namespace tfc::codegen
