#include "codegen/kernels/product_tile.h"

#include <algorithm>

namespace tfc::codegen {

namespace {

std::string form_name(LeftOperand form) {
  return form == LeftOperand::Rows ? "tc.tile_rows" : "tc.tile_panel";
}

/// `full` where all of a panel's columns exist, else `masked` with the masks of its two vectors.
void by_columns(KernelBuilder& k, const TileShape& shape, Val columns, const std::function<void()>& full,
                const std::function<void(Val mask0, Val mask1)>& masked) {
  k.if_(columns >= shape.columns, full, [&] {
    masked(k.first_lanes_mask(columns, shape.lanes), k.first_lanes_mask(columns - shape.lanes, shape.lanes));
  });
}

struct TileEmitter {
  KernelBuilder& k;
  LeftOperand form;
  int height;
  TileShape shape;
  Ptr a, b, c, start, fetch;
  Val lda, ldb, ldc, depth, columns;
  std::vector<Var> sums;  // a row's two vectors, row after row

  TileEmitter(KernelBuilder& builder, LeftOperand left, int rows)
      : k(builder),
        form(left),
        height(rows),
        shape(tile_shape(k.target(), k.real())),
        a(k.pointer(0)),
        b(k.pointer(2)),
        c(k.pointer(4)),
        start(k.pointer(6)),
        fetch{k.pointer(9).base, k.ir().getInt64Ty()},
        lda(k.integer(1)),
        ldb(k.integer(3)),
        ldc(k.integer(5)),
        depth(k.integer(7)),
        columns(k.integer(8)) {
    const Val zeros = k.splat(k.number(0.0), shape.lanes);
    for (int i = 0; i < 2 * height; ++i) sums.push_back(k.var(zeros));
  }

  void each_sum(const std::function<void(Var& sum, int row, int half)>& body) {
    for (int row = 0; row < height; ++row) {
      for (int half = 0; half < 2; ++half) body(sums[static_cast<size_t>(2 * row + half)], row, half);
    }
  }

  /// One step of depth: a row of B, and the element of A for each row: one load for both halves, if from one pointer.
  void multiply(Ptr right, const std::function<Val(int row, int half)>& left) {
    const Val vectors[] = {k.load_vector(right, k.index(0), shape.lanes),
                           k.load_vector(right, k.index(shape.lanes), shape.lanes)};
    each_sum([&](Var& sum, int row, int half) {
      sum.set(k.fma(k.splat(left(row, half), shape.lanes), vectors[half], sum.get()));
    });
  }

  /// Row of C: it is written, and for the most part read, when the sums are complete.
  void fetch_row_of_c(Val row) {
    const int line = static_cast<int>(kLineBytes / ir::dtype_bytes(k.real()));
    for (int at = 0; at < shape.columns; at += line) k.prefetch(c, ldc * row + at);
    k.prefetch(c, ldc * row + (shape.columns - 1));
  }

  /// One line of depth's share of what is fetched ahead: in forms nt and nn into the first-level cache, where the next
  /// tile reads its rows; in form tn, which fetches more than that cache holds, into the second.
  void fetch_ahead(Val line) {
    const int locality = form == LeftOperand::Rows ? 3 : 2;
    const Ptr memory{llvm::ConstantPointerNull::get(k.ir().getPtrTy()), k.ir().getInt8Ty()};
    for (int64_t stream = 0; stream < kFetchStreams; ++stream) {
      const auto word = [&](FetchWord which) { return k.load(fetch, k.index(stream * kFetchWords + which)); };
      const Val first = word(kFetchAddress) + line * word(kFetchLineStep), step = word(kFetchRowStep);
      k.loop("fetch", k.index(0), word(kFetchRows), kFetchRowsAtOnce, [&](Val row) {
        for (int i = 0; i < kFetchRowsAtOnce; ++i) k.prefetch(memory, first + (row + i) * step, locality);
      });
    }
  }

  /// A pointer that walks along the depth. LLVM may not know how those of one tile are related, nor how one is before
  /// and after a step: it would keep one, or an index, and compute or reload the others in each turn.
  Var walker(Ptr from) { return k.var(unrelated(from)); }
  Val unrelated(Ptr p) { return k.wrap(k.ir().CreateLaunderInvariantGroup(p.base)); }
  static Ptr place(const Var& walker, Ptr matrix) { return {walker.get().raw(), matrix.element}; }
  void advance(Var& walker, Ptr matrix, Val elements) {
    walker.set(unrelated(k.at(place(walker, matrix), elements)));
  }

  /// Few instructions beside the multiplications, which counts where two threads share a core: several steps at a time
  /// from pointers that reach three rows each (x86 adds none, one or two lda). Without fma a product needs the register
  /// that more than one step takes. With AVX-512 a multiply-add loads and broadcasts by itself, if only it needs the
  /// element: where an address is a pointer alone, both halves of a row do, each from a pointer of its own, for LLVM
  /// makes one load of two alike. Not for all rows of a panel: a core has two loads in a cycle, as many as multiply-adds.
  struct Walk {
    TileEmitter& tile;
    int64_t together, a_step;
    int reach;
    std::vector<Var> lefts, lefts_again;
    Var right;

    explicit Walk(TileEmitter& t)
        : tile(t),
          together(t.k.target().fma ? 4 : 1),
          a_step(t.form == LeftOperand::Panel ? t.shape.panel_rows : 1),
          reach(t.form == LeftOperand::Panel ? t.height : 3),
          right(t.walker(t.b)) {
      for (int row = 0; row < t.height; row += reach) {
        const Ptr first = t.k.at(t.a, t.lda * row);
        lefts.push_back(t.walker(first));
        if (t.shape.fetches) lefts_again.push_back(t.walker(first));
      }
    }

    bool loads_twice(int row) const {
      return !lefts_again.empty() && (tile.form == LeftOperand::Panel ? row < tile.height / 2 : row % reach == 0);
    }

    Val left(int row, int half, int64_t d) const {
      const auto& pointers = half == 1 && loads_twice(row) ? lefts_again : lefts;
      const Ptr from = tile.k.at(place(pointers[static_cast<size_t>(row / reach)], tile.a), tile.k.index(d * a_step));
      return tile.k.load(from, tile.form == LeftOperand::Panel ? tile.k.index(row) : tile.lda * (row % reach));
    }

    void steps(int64_t count) {
      for (int64_t d = 0; d < count; ++d) {
        tile.multiply(tile.k.at(place(right, tile.b), tile.rows_of_b(d)),
                      [&](int row, int half) { return left(row, half, d); });
      }
      for (auto* pointers : {&lefts, &lefts_again}) {
        for (Var& pointer : *pointers) tile.advance(pointer, tile.a, tile.k.index(count * a_step));
      }
      tile.advance(right, tile.b, tile.rows_of_b(count));
    }

    void along(Val depth) {
      const Val whole = depth / together * together;
      tile.k.loop("depth", tile.k.index(0), whole, together, [&](Val) { steps(together); });
      if (together > 1) tile.k.loop("rest", whole, depth, 1, [&](Val) { steps(1); });
    }
  };

  /// So many rows of B, in elements: where tiles do not fetch, B is always a panel.
  Val rows_of_b(int64_t rows) { return shape.fetches ? ldb * rows : k.index(rows * shape.columns); }

  void walk_and_fetch() {
    const int64_t line = kLineBytes / ir::dtype_bytes(k.real());
    Walk walk(*this);
    k.loop("line", k.index(0), depth, line, [&](Val first) {
      const Val number = first / line;
      fetch_ahead(number);
      fetch_row_of_c(number);
      walk.along(k.min(k.index(line), depth - first));
    });
  }

  void walk_alone() {
    for (int row = 0; row < height; ++row) fetch_row_of_c(k.index(row));
    Walk(*this).along(depth);
  }

  /// Element by element, so that no sum waits for its turn in memory.
  void store_sums(Val continues, const std::function<Val(Val at, int half)>& load,
                  const std::function<void(Val at, int half, Val)>& store) {
    const auto element = [&](int row, int half) { return ldc * row + half * shape.lanes; };
    k.if_(
        continues,
        [&] {
          each_sum([&](Var& sum, int row, int half) {
            store(element(row, half), half, load(element(row, half), half) + sum.get());
          });
        },
        [&] { each_sum([&](Var& sum, int row, int half) { store(element(row, half), half, sum.get()); }); });
  }

  void emit() {
    const Val continues = k.is_null(start);
    k.if_(!continues, [&] {
      each_sum([&](Var& sum, int, int half) {
        sum.set(k.load_vector(start, k.index(half * shape.lanes), shape.lanes));
      });
    });
    shape.fetches ? walk_and_fetch() : walk_alone();
    by_columns(
        k, shape, columns,
        [&] {
          store_sums(continues, [&](Val at, int) { return k.load_vector(c, at, shape.lanes); },
                     [&](Val at, int, Val value) { k.store(c, at, value); });
        },
        [&](Val mask0, Val mask1) {
          const auto mask = [&](int half) { return half ? mask1 : mask0; };
          store_sums(continues, [&](Val at, int half) { return k.load_vector(c, at, shape.lanes, mask(half)); },
                     [&](Val at, int half, Val value) { k.store_vector(c, at, value, mask(half)); });
        });
  }
};

void emit_pack_transposed(KernelBuilder& k, int width) {
  const TileShape shape = tile_shape(k.target(), k.real());
  const int lanes = shape.lanes;
  const Ptr source = k.pointer(0), panel = k.pointer(2);
  const Val ld = k.integer(1), columns = k.integer(3), depth = k.integer(4);
  k.loop("group", k.index(0), k.index(width), lanes, [&](Val first) {
    std::vector<Ptr> column;
    for (int j = 0; j < lanes; ++j) column.push_back(k.at(source, k.min(first + j, columns - 1) * ld));
    auto block = [&](Val d, const std::function<Val(Ptr)>& load) {
      std::vector<Val> vectors;
      for (Ptr p : column) {
        vectors.push_back(load(p));
        if (!shape.fetches) k.prefetch(p, ld * width + d, /*locality=*/2);  // for the next strip
      }
      vectors = transpose(k, vectors);
      for (int j = 0; j < lanes; ++j)
        k.store(panel, (d + j) * width + first, vectors[static_cast<size_t>(j)]);
    };
    const Val whole = depth / lanes * lanes;
    k.loop("depth", k.index(0), whole, lanes,
           [&](Val d) { block(d, [&](Ptr p) { return k.load_vector(p, d, lanes); }); });
    k.if_(whole < depth, [&] {
      const Val mask = k.first_lanes_mask(depth - whole, lanes);
      block(whole, [&](Ptr p) { return k.load_vector(p, whole, lanes, mask); });
    });
  });
}

/// One row of a panel: `width` elements of the source, zeros past its columns.
struct RowCopy {
  KernelBuilder& k;
  int width, lanes;
  Ptr source, panel;
  Val ld, columns;

  RowCopy(KernelBuilder& builder, int panel_width)
      : k(builder),
        width(panel_width),
        lanes(tile_shape(k.target(), k.real()).lanes),
        source(k.pointer(0)),
        panel(k.pointer(2)),
        ld(k.integer(1)),
        columns(k.integer(3)) {}

  void copy(Val from, Val to, const std::vector<Val>& masks) {
    for (int first = 0; first < width; first += lanes) {
      const Val at = from * ld + first;
      k.store(panel, to * width + first,
              masks.empty() ? k.load_vector(source, at, lanes)
                            : k.load_vector(source, at, lanes, masks[static_cast<size_t>(first / lanes)]));
    }
  }

  /// `body` with the masks of a row's vectors: none where all columns exist.
  void by_masks(const std::function<void(const std::vector<Val>& masks)>& body) {
    k.if_(columns >= width, [&] { body({}); }, [&] {
      std::vector<Val> masks;
      for (int first = 0; first < width; first += lanes) masks.push_back(k.first_lanes_mask(columns - first, lanes));
      body(masks);
    });
  }
};

void emit_pack_rows(KernelBuilder& k, int width) {
  const bool fetches = tile_shape(k.target(), k.real()).fetches;
  RowCopy row(k, width);
  const Val depth = k.integer(4);
  const int64_t next = std::max(width, static_cast<int>(kLineBytes / ir::dtype_bytes(k.real())));  // strip, or line
  row.by_masks([&](const std::vector<Val>& masks) {
    k.unrolled_loop("depth", k.index(0), depth, masks.empty() ? 4 : 1, [&](Val d) {
      row.copy(d, d, masks);
      if (!fetches && masks.empty()) k.prefetch(row.source, d * row.ld + next, /*locality=*/2);
    });
  });
}

void emit_pack_real_rows(KernelBuilder& k, int width) {
  RowCopy row(k, width);
  const Ptr mask = k.pointer(5, ir::DType::U8);
  row.by_masks([&](const std::vector<Val>& masks) {
    Var to = k.var(k.index(0));
    k.loop("depth", k.integer(4), [&](Val d) {
      k.if_(k.load(mask, d) != 0, [&] {
        row.copy(d, to.get(), masks);
        to.set(to.get() + 1);
      });
    });
  });
}

void emit_copy_rows(KernelBuilder& k) {
  const Ptr source = k.pointer(0), copy = k.pointer(2);
  const Val ld = k.integer(1), rows = k.integer(3), depth = k.integer(4), stride = k.integer(5);
  k.loop("row", rows, [&](Val row) {
    k.vector_loop("depth", depth, [&](Lane lane) {
      k.store(k.at(copy, row * stride), lane, k.load(k.at(source, row * ld), lane));
    });
  });
}

}  // namespace

llvm::Function* shared_function(KernelBuilder& k, const std::string& name, const std::string& signature,
                                const std::function<void(KernelBuilder&)>& emit) {
  llvm::Module& module = *k.function()->getParent();
  const std::string full = name + "." + std::string(ir::dtype_name(k.real()));
  if (llvm::Function* known = module.getFunction(full)) return known;
  KernelBuilder helper(module, k.target(), full, k.real(), signature);
  emit(helper);
  return helper.finish();
}

llvm::Value* function_table(KernelBuilder& k, const std::string& name, int count,
                            const std::function<llvm::Function*(int height)>& function) {
  llvm::Module& module = *k.function()->getParent();
  const std::string full = name + "." + std::string(ir::dtype_name(k.real()));
  if (llvm::GlobalVariable* known = module.getNamedGlobal(full)) return known;
  std::vector<llvm::Constant*> functions;
  for (int height = 1; height <= count; ++height) functions.push_back(function(height));
  auto* type = llvm::ArrayType::get(k.ir().getPtrTy(), functions.size());
  return new llvm::GlobalVariable(module, type, /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
                                  llvm::ConstantArray::get(type, functions), full);
}

/// At distance d, the lanes whose index has bit d clear stay in the upper vector of each pair (i, i + d), the
/// others move to the lower one.
std::vector<Val> transpose(KernelBuilder& k, std::vector<Val> rows) {
  const int n = static_cast<int>(rows.size());
  for (int d = 1; d < n; d *= 2) {
    std::vector<int> upper, lower;
    for (int j = 0; j < n; ++j) {
      upper.push_back(j & d ? n + j - d : j);
      lower.push_back(j & d ? n + j : j + d);
    }
    for (int i = 0; i < n; ++i) {
      if (i & d) continue;
      const Val a = rows[static_cast<size_t>(i)], b = rows[static_cast<size_t>(i + d)];
      rows[static_cast<size_t>(i)] = k.shuffle(a, b, upper);
      rows[static_cast<size_t>(i + d)] = k.shuffle(a, b, lower);
    }
  }
  return rows;
}

Val depth_step(KernelBuilder& k, Val depth, int64_t greatest) {
  constexpr int64_t multiple = 16;  // a vector of any target, and a line of cache
  const Val blocks = k.max((depth + (greatest - 1)) / greatest, k.index(1));
  return (depth + (blocks * multiple - 1)) / (blocks * multiple) * multiple;
}

TileShape tile_shape(const Target& target, ir::DType real) {
  TileShape shape{};
  shape.rows = target.registers >= 32 ? 14 : 6;
  shape.lanes = target.vector_bytes / static_cast<int>(ir::dtype_bytes(real));
  shape.columns = 2 * shape.lanes;
  shape.fetches = target.registers >= 32;
  shape.panel_rows = (shape.rows + shape.lanes - 1) / shape.lanes * shape.lanes;
  return shape;
}

llvm::Function* tile_function(KernelBuilder& k, LeftOperand form, int height) {
  return shared_function(k, form_name(form) + "." + std::to_string(height), "pipipipiip",
                         [&](KernelBuilder& helper) { TileEmitter(helper, form, height).emit(); });
}

llvm::Value* tile_table(KernelBuilder& k, LeftOperand form) {
  return function_table(k, form_name(form) + "s", tile_shape(k.target(), k.real()).rows,
                        [&](int height) { return tile_function(k, form, height); });
}

llvm::Function* pack_rows_function(KernelBuilder& k, int width) {
  return shared_function(k, "tc.pack_rows." + std::to_string(width), "pipii",
                         [&](KernelBuilder& helper) { emit_pack_rows(helper, width); });
}

llvm::Function* pack_real_rows_function(KernelBuilder& k, int width) {
  return shared_function(k, "tc.pack_real_rows." + std::to_string(width), "pipiip",
                         [&](KernelBuilder& helper) { emit_pack_real_rows(helper, width); });
}

llvm::Function* copy_rows_function(KernelBuilder& k) {
  return shared_function(k, "tc.copy_rows", "pipiii", emit_copy_rows);
}

llvm::Function* pack_transposed_function(KernelBuilder& k, int width) {
  return shared_function(k, "tc.pack_transposed." + std::to_string(width), "pipii",
                         [&](KernelBuilder& helper) { emit_pack_transposed(helper, width); });
}

}  // namespace tfc::codegen
