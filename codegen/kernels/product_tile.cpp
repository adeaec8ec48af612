#include "codegen/kernels/product_tile.h"

#include <algorithm>

namespace tfc::codegen {

namespace {

std::string form_name(LeftOperand form) {
  return form == LeftOperand::Rows ? "tc.tile_rows" : "tc.tile_panel";
}

struct Accumulators {
  KernelBuilder& k;
  TileShape shape;
  int height;
  std::vector<Var> vars;

  Accumulators(KernelBuilder& builder, TileShape tile, int rows) : k(builder), shape(tile), height(rows) {
    Val zeros = k.splat(k.number(0.0), shape.lanes);
    for (int i = 0; i < 2 * height; ++i) vars.push_back(k.var(zeros));
  }
  Var& at(int row, int half) { return vars[static_cast<size_t>(2 * row + half)]; }

  void each(const std::function<void(Var& accumulator, int row, int half)>& body) {
    for (int row = 0; row < height; ++row) {
      for (int half = 0; half < 2; ++half) body(at(row, half), row, half);
    }
  }
};

/// `full` where all of a panel's columns exist, else `masked` with the masks of its two vectors.
void by_columns(KernelBuilder& k, const TileShape& shape, Val columns, const std::function<void()>& full,
                const std::function<void(Val mask0, Val mask1)>& masked) {
  k.if_(columns >= shape.columns, full, [&] {
    masked(k.first_lanes_mask(columns, shape.lanes), k.first_lanes_mask(columns - shape.lanes, shape.lanes));
  });
}

/// One line of depth's share of what is fetched ahead.
void emit_fetch(KernelBuilder& k, Ptr fetch, Val line) {
  const Ptr memory{llvm::ConstantPointerNull::get(k.ir().getPtrTy()), k.ir().getInt8Ty()};
  for (int64_t stream = 0; stream < kFetchStreams; ++stream) {
    const auto word = [&](FetchWord which) { return k.load(fetch, k.index(stream * kFetchWords + which)); };
    const Val first = word(kFetchAddress) + line * word(kFetchLineStep), step = word(kFetchRowStep);
    k.loop("fetch", k.index(0), word(kFetchRows), kFetchRowsAtOnce, [&](Val row) {
      for (int i = 0; i < kFetchRowsAtOnce; ++i) k.prefetch(memory, first + (row + i) * step, /*locality=*/2);
    });
  }
}

void emit_tile(KernelBuilder& k, LeftOperand form, int height) {
  const TileShape shape = tile_shape(k.target(), k.real());
  const Ptr a = k.pointer(0), b = k.pointer(2), c = k.pointer(4), start = k.pointer(6),
            fetch{k.pointer(9).base, k.ir().getInt64Ty()};
  const Val lda = k.integer(1), ldb = k.integer(3), ldc = k.integer(5), depth = k.integer(7),
            columns = k.integer(8);
  const int n = shape.columns, lanes = shape.lanes;
  auto element = [&](int row, int half) { return ldc * row + half * lanes; };

  Accumulators sums(k, shape, height);
  const Val continues = k.is_null(start);
  k.if_(!continues, [&] {
    sums.each([&](Var& sum, int, int half) { sum.set(k.load_vector(start, k.index(half * lanes), lanes)); });
  });

  const auto multiply = [&](Val d) {
    const Val b0 = k.load_vector(b, d * ldb, lanes), b1 = k.load_vector(b, d * ldb + lanes, lanes);
    for (int row = 0; row < height; ++row) {
      const Val at = form == LeftOperand::Panel ? d * shape.panel_rows + row : lda * row + d;
      const Val x = k.splat(k.load(a, at), lanes);
      sums.at(row, 0).set(k.fma(x, b0, sums.at(row, 0).get()));
      sums.at(row, 1).set(k.fma(x, b1, sums.at(row, 1).get()));
    }
  };
  const auto fetch_row_of_c = [&](Val row) {  // it is written, and for the most part read, when the sums are complete
    for (int at : {0, lanes, n - 1}) k.prefetch(c, ldc * row + at);
  };
  if (!shape.fetches) {
    for (int row = 0; row < height; ++row) fetch_row_of_c(k.index(row));
    // With several steps at a time most addresses become offsets, and a third of the instructions are saved, which
    // counts where two threads share a core's decoders. Without fma a product needs the register that this takes.
    k.unrolled_loop("depth", k.index(0), depth, k.target().fma ? 4 : 1, multiply);
  } else {
    // One step of depth at a time: with several, LLVM schedules the addresses of A's rows ahead of the
    // multiplications and spills accumulators.
    const int64_t line = kLineBytes / ir::dtype_bytes(k.real());
    k.loop("line", k.index(0), depth, line, [&](Val first) {
      const Val number = first / line;
      emit_fetch(k, fetch, number);
      fetch_row_of_c(number);
      k.loop("depth", first, k.min(first + line, depth), 1, multiply);
    });
  }

  // Element by element, so that no sum waits for its turn in memory.
  auto finish = [&](const std::function<Val(Val at, int half)>& load,
                    const std::function<void(Val at, int half, Val)>& store) {
    k.if_(
        continues,
        [&] {
          sums.each([&](Var& sum, int row, int half) {
            store(element(row, half), half, load(element(row, half), half) + sum.get());
          });
        },
        [&] { sums.each([&](Var& sum, int row, int half) { store(element(row, half), half, sum.get()); }); });
  };
  by_columns(
      k, shape, columns,
      [&] {
        finish([&](Val at, int) { return k.load_vector(c, at, lanes); },
               [&](Val at, int, Val value) { k.store(c, at, value); });
      },
      [&](Val mask0, Val mask1) {
        auto mask = [&](int half) { return half ? mask1 : mask0; };
        finish([&](Val at, int half) { return k.load_vector(c, at, lanes, mask(half)); },
               [&](Val at, int half, Val value) { k.store_vector(c, at, value, mask(half)); });
      });
}

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

void emit_pack_rows(KernelBuilder& k, int width) {
  const TileShape shape = tile_shape(k.target(), k.real());
  const int lanes = shape.lanes;
  const Ptr source = k.pointer(0), panel = k.pointer(2);
  const Val ld = k.integer(1), columns = k.integer(3), depth = k.integer(4);
  const int64_t next = std::max(width, static_cast<int>(kLineBytes / ir::dtype_bytes(k.real())));  // strip, or line
  const auto copy = [&](Val d, const std::function<Val(Val from, int first)>& load) {
    for (int first = 0; first < width; first += lanes)
      k.store(panel, d * width + first, load(d * ld + first, first));
  };
  k.if_(
      columns >= width,
      [&] {
        k.unrolled_loop("depth", k.index(0), depth, 4, [&](Val d) {
          copy(d, [&](Val from, int) { return k.load_vector(source, from, lanes); });
          if (!shape.fetches) k.prefetch(source, d * ld + next, /*locality=*/2);
        });
      },
      [&] {
        std::vector<Val> masks;
        for (int first = 0; first < width; first += lanes)
          masks.push_back(k.first_lanes_mask(columns - first, lanes));
        k.loop("depth", depth, [&](Val d) {
          copy(d, [&](Val from, int first) {
            return k.load_vector(source, from, lanes, masks[static_cast<size_t>(first / lanes)]);
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
                         [&](KernelBuilder& helper) { emit_tile(helper, form, height); });
}

llvm::Value* tile_table(KernelBuilder& k, LeftOperand form) {
  return function_table(k, form_name(form) + "s", tile_shape(k.target(), k.real()).rows,
                        [&](int height) { return tile_function(k, form, height); });
}

llvm::Function* pack_rows_function(KernelBuilder& k, int width) {
  return shared_function(k, "tc.pack_rows." + std::to_string(width), "pipii",
                         [&](KernelBuilder& helper) { emit_pack_rows(helper, width); });
}

llvm::Function* copy_rows_function(KernelBuilder& k) {
  return shared_function(k, "tc.copy_rows", "pipiii", emit_copy_rows);
}

llvm::Function* pack_transposed_function(KernelBuilder& k, int width) {
  return shared_function(k, "tc.pack_transposed." + std::to_string(width), "pipii",
                         [&](KernelBuilder& helper) { emit_pack_transposed(helper, width); });
}

}  // namespace tfc::codegen
