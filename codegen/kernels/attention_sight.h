// Who sees whom in attention, as ir/ops.def defines it, for the forward and backward kernels: keys of an interval
// that moves on with the query, of these the ones of its document; and what distance takes from a score.
#pragma once

#include <optional>

#include "codegen/kernels/attention_parts.h"

namespace tfc::codegen {

struct SightSettings {
  bool causal, prefix, documents, alibi, positions;
  int64_t window, after;
  explicit SightSettings(const ir::Attributes& attributes);

  bool interval() const { return causal || window > 0; }  // which keys depends on the query's place
  bool partial() const { return interval() || documents; }  // queries of a tile may see different keys of a block
  bool marks() const { return documents || alibi; }       // queries and keys carry numbers that are compared
  bool plain() const { return window == 0 && !prefix && !marks(); }  // no slots of its own
};

/// What every kernel of attention is told: the base of its emitter. A setting that its spec lacks is off.
struct AttentionSettings {
  const int64_t H, G, E;
  const double scale;
  const bool masked, offset;  // keys have a mask; queries stand behind what is cached
  const SightSettings set;
  explicit AttentionSettings(const ir::Attributes& attributes);

  Val group_of(Val head) const { return head / (H / G); }
};

/// As passes/lower/attention.cpp: what a record ends with unless its sight is plain.
enum SightSlot { kPrefix, kDocuments, kKeyDocuments, kPositions, kKeyPositions, kKeyMarks, kSlopes, kSightSlots };

/// One tile of queries. `first_slot`: where the record's SightSlots begin.
class Sight {
 public:
  /// `marks`: i32 of kSightMarks elements, unless the settings have none.
  Sight(KernelBuilder& k, const SightSettings& set, int first_slot, Ptr marks);

  struct Tile {
    Val b, head, q0, queries, T;
    Val own;   // the key that query q0 itself stands at; where needs_own()
    Val end;   // of the keys that every query sees, without an interval
    Val keys;  // how many there are: S
  };
  bool needs_own() const { return set.interval() || set.alibi; }
  void begin_tile(const Tile& tile);

  Val begin(Val query) const;  // keys [begin, limit) of the tile's query; begin is not cut to `keys`
  Val limit(Val query) const;
  Val first_block(int64_t block_keys) const;  // where the tile's first block begins

  /// Runs `body` unless no query of the tile is in a document of the block.
  void in_block(const KeyBlock& block, const std::function<void()>& body);
  /// How many of the block's first rows are left when those past the last query's limit are nobody's.
  Val rows_in_sight(const KeyBlock& block, Val last_query) const;
  /// How many of the block's first `count` rows all queries from one to another see for certain: those of no other row
  /// need to be asked for each lane.
  Val rows_all_see(const KeyBlock& block, Val count, Val first_query, Val last_query) const;

  // Of queries first_query.. as lanes, and one row of the block:
  Val lanes_see(const KeyBlock& block, Val row, Val first_query, int lanes) const;
  Val with_distance(Val scores, Val row, Val first_query, int lanes) const;
  // Of one query, and rows row.. of the block as lanes; what the interval leaves out is not asked here:
  Val rows_in_document(Val row, Val query, int lanes) const;
  Val with_distance_of_rows(Val scores, Val row, Val query, int lanes) const;

  const SightSettings set;

 private:
  Val rows_below(const KeyBlock& block, Val count, Val end, Val otherwise) const;
  Ptr mark(Ptr base, int64_t first) const { return k_.at(base, k_.index(first)); }
  Val narrow(Val number) const;
  Val lane_constants(int lanes, int64_t first) const;
  Val penalised(Val scores, Val distance) const;

  KernelBuilder& k_;
  const int first_slot_;
  Ptr query_documents_, query_positions_, key_documents_, key_positions_;  // i32, by query and by row of the block
  Val own_, first_limit_, keys_, prefix_, slope_;  // first_limit_: of query 0, before it is cut to keys_
  Ptr documents_of_keys_, positions_of_keys_;
  std::optional<Var> least_, greatest_;  // of the tile's documents
  std::optional<Var> whole_;             // the block and the tile are of one document
};

inline constexpr int64_t kSightMarks = 2 * (kTileQueries + kMostBlockKeys);

}  // namespace tfc::codegen
