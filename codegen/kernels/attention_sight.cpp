#include "codegen/kernels/attention_sight.h"

#include <limits>

namespace tfc::codegen {

using ir::DType;

SightSettings::SightSettings(const ir::Attributes& a)
    : causal(a.flag("causal")),
      prefix(a.flag("prefix")),
      documents(a.flag("documents")),
      alibi(a.flag("alibi")),
      positions(a.flag("positions")),
      window(a.integer("window", 0)),
      after(a.integer("after", 0)) {}

AttentionSettings::AttentionSettings(const ir::Attributes& a)
    : H(a.integer("heads")),
      G(a.integer("kv_heads")),
      E(a.integer("head_dim")),
      scale(a.real("scale")),
      masked(a.flag("mask")),
      offset(a.flag("offsets")),
      set(a) {}

Sight::Sight(KernelBuilder& k, const SightSettings& settings, int first_slot, Ptr marks)
    : set(settings), k_(k), first_slot_(first_slot) {
  if (!set.marks()) return;
  query_documents_ = marks;
  query_positions_ = mark(marks, kTileQueries);
  key_documents_ = mark(marks, 2 * kTileQueries);
  key_positions_ = mark(marks, 2 * kTileQueries + kMostBlockKeys);
}

Val Sight::narrow(Val number) const { return k_.wrap(k_.ir().CreateTrunc(number.raw(), k_.ir().getInt32Ty())); }

/// <lanes x i32>: first, first + 1, ...
Val Sight::lane_constants(int lanes, int64_t first) const {
  std::vector<llvm::Constant*> numbers;
  for (int i = 0; i < lanes; ++i) numbers.push_back(k_.ir().getInt32(static_cast<uint32_t>(first + i)));
  return lanes == 1 ? k_.wrap(numbers[0]) : k_.wrap(llvm::ConstantVector::get(numbers));
}

void Sight::begin_tile(const Tile& tile) {
  own_ = tile.own;
  first_limit_ = set.interval() ? own_ + 1 : tile.end;
  keys_ = tile.keys;
  if (set.prefix) prefix_ = k_.to_index(k_.load(k_.pointer(first_slot_ + kPrefix, DType::I32), tile.b));
  if (!set.marks()) return;
  const Val first_query = tile.b * tile.T + tile.q0, first_key = tile.b * k_.integer(first_slot_ + kKeyMarks);
  auto queries_of = [&](int slot) { return k_.at(k_.pointer(first_slot_ + slot, DType::I32), first_query); };
  auto keys_of = [&](int slot) { return k_.at(k_.pointer(first_slot_ + slot, DType::I32), first_key); };
  if (set.alibi) slope_ = -k_.to_real(k_.load(k_.pointer(first_slot_ + kSlopes, DType::F64), tile.head));
  if (set.documents) {
    documents_of_keys_ = keys_of(kKeyDocuments);
    least_.emplace(k_.var(k_.constant(DType::I32, std::numeric_limits<int32_t>::max())));
    greatest_.emplace(k_.var(k_.constant(DType::I32, std::numeric_limits<int32_t>::min())));
    whole_.emplace(k_.var(k_.wrap(k_.ir().getFalse())));
  }
  if (set.positions) positions_of_keys_ = keys_of(kKeyPositions);
  k_.loop("mark_queries", k_.index(kTileQueries), [&](Val lane) {  // past the last query its marks again
    const Val query = k_.min(lane, tile.queries - 1);
    if (set.documents) {
      const Val document = k_.load(queries_of(kDocuments), query);
      k_.store(query_documents_, lane, document);
      least_->set(k_.min(least_->get(), document));
      greatest_->set(k_.max(greatest_->get(), document));
    }
    if (set.alibi) {
      k_.store(query_positions_, lane,
               set.positions ? k_.load(queries_of(kPositions), query) : narrow(own_ + query));
    }
  });
}

Val Sight::begin(Val query) const {
  return set.window > 0 ? k_.max(first_limit_ + query - set.window, k_.index(0)) : k_.index(0);
}

Val Sight::limit(Val query) const {
  Val end = set.interval() ? first_limit_ + query : first_limit_;
  if (set.prefix) {
    end = k_.max(end, set.window > 0 ? k_.min(prefix_, end + (set.window - 1)) : prefix_);
  } else if (set.after > 0) {
    end = end + set.after;
  }
  return k_.max(k_.min(end, keys_), k_.index(0));
}

Val Sight::first_block(int64_t block_keys) const {
  return set.window > 0 ? begin(k_.index(0)) / block_keys * block_keys : k_.index(0);
}

void Sight::in_block(const KeyBlock& block, const std::function<void()>& body) {
  if (!set.marks()) return body();
  std::optional<Var> least, greatest;
  if (set.documents) {
    least.emplace(k_.var(k_.constant(DType::I32, std::numeric_limits<int32_t>::max())));
    greatest.emplace(k_.var(k_.constant(DType::I32, std::numeric_limits<int32_t>::min())));
  }
  k_.loop("mark_keys", block.count, [&](Val row) {
    const Val key = block.key(row);
    if (set.documents) {
      const Val document = k_.load(documents_of_keys_, key);
      k_.store(key_documents_, row, document);
      least->set(k_.min(least->get(), document));
      greatest->set(k_.max(greatest->get(), document));
    }
    if (set.alibi) k_.store(key_positions_, row, set.positions ? k_.load(positions_of_keys_, key) : narrow(key));
  });
  if (!set.documents) return body();
  const Val first = least->get(), last = greatest->get();
  whole_->set((first == last) & (first == least_->get()) & (last == greatest_->get()));
  k_.if_((first <= greatest_->get()) & (last >= least_->get()), body);
}

/// Of the first `count` rows those whose key is below `end`; `otherwise` where the block's keys have gaps and not all are.
Val Sight::rows_below(const KeyBlock& block, Val count, Val end, Val otherwise) const {
  const Val none = k_.index(0), last = block.key(k_.max(count - 1, none));
  const Val rows = k_.max(k_.min(end - block.first, count), none);
  return k_.select(last - block.first == count - 1, rows, k_.select(last < end, count, otherwise));
}

Val Sight::rows_in_sight(const KeyBlock& block, Val last_query) const {
  return set.interval() ? rows_below(block, block.count, limit(last_query), block.count) : block.count;
}

Val Sight::rows_all_see(const KeyBlock& block, Val count, Val first_query, Val last_query) const {
  const Val none = k_.index(0);
  Val rows = set.interval() ? rows_below(block, count, limit(first_query), none) : count;
  if (set.window > 0) rows = k_.select(block.key(none) >= begin(last_query), rows, none);
  if (set.documents) rows = k_.select(whole_->get(), rows, none);
  return rows;
}

Val Sight::lanes_see(const KeyBlock& block, Val row, Val first_query, int lanes) const {
  Val seen;
  if (set.interval()) {
    // key < first_limit + query and the like, in 32 bits: sizes are far below
    const Val key = block.key(row);
    const Val distance = k_.splat(narrow(key - first_limit_ - first_query), lanes);
    seen = distance < lane_constants(lanes, set.after);
    if (set.prefix) {
      Val inside = k_.splat(key < prefix_, lanes);
      if (set.window > 0) inside = inside & (distance < lane_constants(lanes, set.window - 1));
      seen = seen | inside;
    }
    if (set.window > 0) seen = seen & (distance >= lane_constants(lanes, -set.window));
  }
  if (set.documents) {
    const Val same = k_.load_vector(query_documents_, first_query, lanes) ==
                     k_.splat(k_.load(key_documents_, row), lanes);
    seen = seen ? seen & same : same;
  }
  return seen;
}

Val Sight::penalised(Val scores, Val difference) const {
  const Val distance = k_.to_real(k_.max(difference, -difference));
  return k_.fma(distance, slope_, scores);
}

Val Sight::with_distance(Val scores, Val row, Val first_query, int lanes) const {
  if (!set.alibi) return scores;
  return penalised(scores, k_.load_vector(query_positions_, first_query, lanes) -
                               k_.splat(k_.load(key_positions_, row), lanes));
}

Val Sight::rows_in_document(Val row, Val query, int lanes) const {
  return k_.load_vector(key_documents_, row, lanes) == k_.splat(k_.load(query_documents_, query), lanes);
}

Val Sight::with_distance_of_rows(Val scores, Val row, Val query, int lanes) const {
  if (!set.alibi) return scores;
  return penalised(scores, k_.splat(k_.load(query_positions_, query), lanes) -
                               k_.load_vector(key_positions_, row, lanes));
}

}  // namespace tfc::codegen
