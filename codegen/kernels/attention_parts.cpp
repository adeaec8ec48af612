#include "codegen/kernels/attention_parts.h"

#include <algorithm>
#include <utility>

#include "codegen/kernels/product_tile.h"

namespace tfc::codegen {

AttentionTile attention_tile(const Target& target, ir::DType real) {
  const int lanes = target.vector_bytes / static_cast<int>(ir::dtype_bytes(real));
  const int rows = target.registers >= 32 ? 14 : 6;
  return {rows, lanes, kMostBlockKeys / rows * rows};
}

void tile_product(KernelBuilder& k, const std::string& name, Val depth, int unroll, const TileProduct& tile) {
  std::vector<Var> sums;
  for (int row = 0; row < tile.rows; ++row) {
    for (int v = 0; v < tile.vectors; ++v) {
      sums.push_back(k.var(tile.start ? tile.start(row, v) : k.splat(k.number(0), tile.lanes)));
    }
  }
  auto at = [&](int row, int v) -> Var& { return sums[static_cast<size_t>(row * tile.vectors + v)]; };
  k.unrolled_loop(name, k.index(0), depth, unroll, [&](Val d) {
    std::vector<Val> right, guard;
    for (int v = 0; v < tile.vectors; ++v) {
      right.push_back(tile.right(d, v));
      if (tile.guard) guard.push_back(tile.guard(d, v));
    }
    for (int row = 0; row < tile.rows; ++row) {
      const Val left = k.splat(tile.left(d, row), tile.lanes);
      for (int v = 0; v < tile.vectors; ++v) {
        const Val old = at(row, v), sum = k.fma(left, right[static_cast<size_t>(v)], old);
        at(row, v).set(tile.guard ? k.select(guard[static_cast<size_t>(v)], sum, old) : sum);
      }
    }
  });
  for (int row = 0; row < tile.rows; ++row) {
    for (int v = 0; v < tile.vectors; ++v) tile.finish(row, v, at(row, v));
  }
}

void for_row_groups(KernelBuilder& k, int64_t count, int most, const std::function<void(Val, int)>& body) {
  const int64_t groups = (count + most - 1) / most, low = count / groups, higher = count % groups;
  auto groups_of = [&](int64_t first, int64_t number, int64_t height) {
    if (number == 0) return;
    if (number == 1) return body(k.index(first), static_cast<int>(height));
    k.loop("rows", k.index(first), k.index(first + number * height), height,
           [&](Val at) { body(at, static_cast<int>(height)); });
  };
  groups_of(0, higher, low + 1);
  groups_of(higher * (low + 1), groups - higher, low);
}

void for_columns(KernelBuilder& k, Val count, int lanes, const std::function<void(Val, int)>& body) {
  const auto known = count.constant();
  if (known && *known <= lanes) return body(k.index(0), 1);
  const Val pairs = (count + (lanes - 1)) / (2 * lanes) * (2 * lanes);  // up to here two vectors each
  k.loop("columns", k.index(0), pairs, 2 * lanes, [&](Val first) { body(first, 2); });
  if (known && *known % (2 * lanes) > lanes) return;
  if (known && *known % (2 * lanes) == 0) return;
  k.if_(pairs < count, [&] { body(pairs, 1); });
}

namespace {

/// e = 0, lanes, 2 lanes, ... below E, with the mask of the last one where it is partial.
void for_vectors(KernelBuilder& k, int64_t E, int lanes, const std::function<void(Val e, Val mask)>& body) {
  const int64_t whole = E / lanes * lanes;
  if (whole > 0) k.loop("e", k.index(0), k.index(whole), lanes, [&](Val e) { body(e, {}); });
  if (whole < E) body(k.index(whole), k.first_lanes_mask(k.index(E - whole), lanes));
}

}  // namespace

void transpose_in(KernelBuilder& k, Ptr to, Ptr from, Val stride, int64_t E, Val count, int lanes,
                  double factor) {
  k.loop("group", k.index(0), count, lanes, [&](Val first) {
    std::vector<Ptr> rows;
    for (int i = 0; i < lanes; ++i) rows.push_back(k.at(from, k.min(first + i, count - 1) * stride));
    for_vectors(k, E, lanes, [&](Val e, Val mask) {
      std::vector<Val> square;
      for (Ptr row : rows)
        square.push_back(mask ? k.load_vector(row, e, lanes, mask) : k.load_vector(row, e, lanes));
      square = transpose(k, std::move(square));
      for (int i = 0; i < lanes; ++i) {
        const Val column = square[static_cast<size_t>(i)];
        k.store(to, (e + i) * kTileQueries + first, factor == 1.0 ? column : column * factor);
      }
    });
  });
}

void transpose_out(KernelBuilder& k, Ptr to, Val stride, Ptr from, Ptr rows, int64_t E, Val count, int lanes,
                   const std::function<Val(Val first, Val vector)>& factor) {
  const int64_t width = padded(E);
  k.loop("group", k.index(0), count, lanes, [&](Val first) {
    for_vectors(k, E, lanes, [&](Val e, Val) {
      std::vector<Val> square;
      for (int i = 0; i < lanes; ++i) {
        square.push_back(factor(first, k.load_vector(from, (e + i) * kTileQueries + first, lanes)));
      }
      square = transpose(k, std::move(square));
      for (int i = 0; i < lanes; ++i) k.store(rows, (first + i) * width + e, square[static_cast<size_t>(i)]);
    });
  });
  k.loop("query", count, [&](Val query) {
    const Ptr row = k.at(to, query * stride);
    k.vector_loop("e", k.index(E), [&](Lane e) { k.store(row, e, k.load(k.at(rows, query * width), e)); });
  });
}

KeyBlock gather_keys(KernelBuilder& k, Val first, Val range, Ptr mask, Ptr numbers, bool masked) {
  if (!masked) return {k, first, range, numbers, false};
  Var count = k.var(k.index(0));
  k.loop("real", range, [&](Val i) {
    k.store(numbers, count, first + i);
    count.set(count.get() + k.select(k.load(mask, first + i) != 0, k.index(1), k.index(0)));
  });
  return {k, first, count, numbers, true};
}

void pack_keys(KernelBuilder& k, const KeyBlock& block, Ptr to, const KeyRows& from, int64_t E) {
  k.loop("pack", block.count, [&](Val row) {
    const Ptr source = from(block.key(row)), target = k.at(to, row * E);
    k.vector_loop("e", k.index(E), [&](Lane e) { k.store(target, e, k.load(source, e)); });
  });
}

void transpose_keys(KernelBuilder& k, const KeyBlock& block, Ptr to, const KeyRows& from, int64_t E,
                    int lanes) {
  k.loop("group", k.index(0), block.count, lanes, [&](Val first) {
    std::vector<Ptr> rows;
    for (int i = 0; i < lanes; ++i) {
      rows.push_back(from(block.key(k.min(first + i, block.count - 1))));
    }
    for_vectors(k, E, lanes, [&](Val e, Val mask) {
      std::vector<Val> square;
      for (Ptr row : rows)
        square.push_back(mask ? k.load_vector(row, e, lanes, mask) : k.load_vector(row, e, lanes));
      square = transpose(k, std::move(square));
      const int64_t columns = mask ? E % lanes : lanes;
      for (int i = 0; i < columns; ++i) {
        k.store(to, (e + i) * kMostBlockKeys + first, square[static_cast<size_t>(i)]);
      }
    });
  });
}

}  // namespace tfc::codegen
