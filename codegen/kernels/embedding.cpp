// From ids to rows and back, and what positions add or turn (Vaswani et al. 2017; Su et al. 2021).
#include "codegen/kernels/kernels.h"
#include "codegen/math.h"

namespace tfc::codegen {

namespace {

using ir::DType;

void for_rows_of_task(KernelBuilder& k, Val task, int64_t chunk, Val rows,
                      const std::function<void(Val row)>& body) {
  k.loop("row", task * chunk, k.min((task + 1) * chunk, rows), 1, body);
}

void copy_row(KernelBuilder& k, Ptr to, Ptr from, Val width) {
  k.vector_loop("copy", width, [&](Lane lane) { k.store(to, lane, k.load(from, lane)); });
}

/// Is row r a real token? A null mask: all are.
Val is_real(KernelBuilder& k, int mask_slot, Val row) {
  const Ptr mask = k.pointer(mask_slot, DType::U8);
  Var real = k.var(k.index(1));
  k.if_(!k.is_null(mask), [&] { real.set(k.to_index(k.load(mask, row))); });
  return real.get() != 0;
}

/// Position of row (b,t) of rows counted through the batch: t, plus offsets[b] where there are offsets.
Val position(KernelBuilder& k, int offsets_slot, Val row, Val T) {
  const Ptr offsets = k.pointer(offsets_slot, DType::I32);
  Var result = k.var(row % T);
  k.if_(!k.is_null(offsets), [&] { result.set(result.get() + k.to_index(k.load(offsets, row / T))); });
  return result;
}

/// embedding {width = D, scale, chunk}   slots: rows, out, ids, table, mask (or null), stride of out
/// A masked row is zeros and its id is not read.
llvm::Function* emit_embedding(KernelBuilder& k, const ir::KernelSpec& spec) {
  const double scale = spec.attributes.real("scale");
  const Val D = k.index(spec.attributes.integer("width"));
  k.for_tasks([&](Val task) {
    for_rows_of_task(k, task, spec.attributes.integer("chunk"), k.integer(0), [&](Val row) {
      const Ptr out = k.at(k.pointer(1), row * k.integer(5));
      k.if_(
          is_real(k, 4, row),
          [&] {
            const Ptr vector = k.at(k.pointer(3), k.to_index(k.load(k.pointer(2, DType::I32), row)) * D);
            k.vector_loop("d", D, [&](Lane d) {
              const Val value = k.load(vector, d);
              k.store(out, d, scale == 1.0 ? value : value * scale);
            });
          },
          [&] { k.zero(out, D); });
    });
  });
  return k.finish();
}

/// embedding_grad {width = D, rows = V, scale, columns, kept}
/// slots: dtable, dy, ids, mask (or null), tokens, stride of dy
/// A task is a stripe of `columns` columns: zeroes it unless what it holds is `kept`, then adds every token's
/// row in order.
llvm::Function* emit_embedding_grad(KernelBuilder& k, const ir::KernelSpec& spec) {
  const double scale = spec.attributes.real("scale");
  const int64_t D = spec.attributes.integer("width"), columns = spec.attributes.integer("columns");
  k.for_tasks([&](Val task) {
    const Val first = task * columns, width = k.min(k.index(columns), k.index(D) - first);
    const Ptr stripe = k.at(k.pointer(0), first), dy = k.at(k.pointer(1), first);
    if (!spec.attributes.flag("kept")) {
      k.loop("row", k.index(spec.attributes.integer("rows")),
             [&](Val row) { k.zero(k.at(stripe, row * D), width); });
    }
    k.loop("token", k.integer(4), [&](Val token) {
      k.if_(is_real(k, 3, token), [&] {
        const Ptr out = k.at(stripe, k.to_index(k.load(k.pointer(2, DType::I32), token)) * D);
        const Ptr in = k.at(dy, token * k.integer(5));
        k.vector_loop("d", width, [&](Lane d) {
          const Val value = k.load(in, d);
          k.store(out, d, k.load(out, d) + (scale == 1.0 ? value : value * scale));
        });
      });
    });
  });
  return k.finish();
}

/// position_rows {width = D, rows = P, chunk}   slots: rows, out, table, offsets (or null), T, stride of out
/// Past the table's end its last row.
llvm::Function* emit_position_rows(KernelBuilder& k, const ir::KernelSpec& spec) {
  const int64_t D = spec.attributes.integer("width"), P = spec.attributes.integer("rows");
  k.for_tasks([&](Val task) {
    for_rows_of_task(k, task, spec.attributes.integer("chunk"), k.integer(0), [&](Val row) {
      const Val place = k.min(position(k, 3, row, k.integer(4)), k.index(P - 1));
      copy_row(k, k.at(k.pointer(1), row * k.integer(5)), k.at(k.pointer(2), place * D), k.index(D));
    });
  });
  return k.finish();
}

/// position_rows_grad {width = D, rows = P, chunk}   slots: out, drows, T, stride of drows
/// The first T rows, then zeros.
llvm::Function* emit_position_rows_grad(KernelBuilder& k, const ir::KernelSpec& spec) {
  const Val D = k.index(spec.attributes.integer("width")), P = k.index(spec.attributes.integer("rows"));
  k.for_tasks([&](Val task) {
    for_rows_of_task(k, task, spec.attributes.integer("chunk"), P, [&](Val row) {
      const Ptr out = k.at(k.pointer(0), row * D);
      k.if_(
          row < k.integer(2), [&] { copy_row(k, out, k.at(k.pointer(1), row * k.integer(3)), D); },
          [&] { k.zero(out, D); });
    });
  });
  return k.finish();
}

/// angles {kind = sinusoid | rope, width, chunk, positions}
/// slots: rows, out, frequencies f64, offsets (or null), T; positions: in place of offsets the position of each row
/// Angle = position * frequency, in double. sinusoid: a frequency for each column, even columns sin, odd ones
/// cos. rope: a frequency for each pair, cosines in the first half of the row, sines in the second.
llvm::Function* emit_angles(KernelBuilder& k, const ir::KernelSpec& spec) {
  const bool rope = spec.attributes.text("kind") == "rope";
  const int64_t width = spec.attributes.integer("width");
  const Val even = (k.lane_numbers() & k.splat(k.index(1))) == k.splat(k.index(0));
  k.for_tasks([&](Val task) {
    for_rows_of_task(k, task, spec.attributes.integer("chunk"), k.integer(0), [&](Val row) {
      const Ptr out = k.at(k.pointer(1), row * width);
      const Val place = k.to_double(spec.attributes.flag("positions") ? k.load(k.pointer(3, DType::I32), row)
                                                                       : position(k, 3, row, k.integer(4)));
      k.vector_loop("angle", k.index(rope ? width / 2 : width), [&](Lane i) {
        const SinCos turn = sin_cos(place * k.load(k.pointer(2, DType::F64), i));
        if (rope) {
          k.store(out, i, k.to_real(turn.cos));
          k.store(k.at(out, k.index(width / 2)), i, k.to_real(turn.sin));
        } else {
          k.store(out, i, k.to_real(k.select(even, turn.sin, turn.cos)));
        }
      });
    });
  });
  return k.finish();
}

/// Pairs (i, i + E/2): first * cos - second * sin, second * cos + first * sin.
void rotate_halves(KernelBuilder& k, Ptr y, Ptr x, Ptr table, int64_t E, double direction) {
  const Val half = k.index(E / 2);
  k.vector_loop("pair", half, [&](Lane i) {
    const Val first = k.load(x, i), second = k.load(k.at(x, half), i);
    const Val cosine = k.load(table, i), sine = k.load(k.at(table, half), i) * direction;
    k.store(y, i, first * cosine - second * sine);
    k.store(k.at(y, half), i, fma(second, cosine, first * sine));
  });
}

/// Pairs (2i, 2i+1), eight in a vector: each lane needs its neighbour, and the pair's angle twice.
void rotate_neighbours(KernelBuilder& k, Ptr y, Ptr x, Ptr table, int64_t E, double direction) {
  std::vector<int> swap, twice;
  std::vector<llvm::Constant*> signs;
  for (int lane = 0; lane < kLanes; ++lane) {
    swap.push_back(lane ^ 1);
    twice.push_back(lane / 2);
    signs.push_back(llvm::ConstantFP::get(k.real_type(), lane % 2 ? direction : -direction));
  }
  const Val sign = k.wrap(llvm::ConstantVector::get(signs));
  k.vector_loop("pair", k.index(E), [&](Lane e) {
    const Val pair = e.start / 2;
    const Val mask = e.mask ? k.first_lanes_mask(k.index(E / 2) - pair, kLanes / 2) : Val{};
    auto angle = [&](Ptr p) {
      const Val eight = mask ? k.load_vector(p, pair, kLanes / 2, mask) : k.load_vector(p, pair, kLanes / 2);
      return k.shuffle(eight, eight, twice);
    };
    const Val own = k.load(x, e), other = k.shuffle(own, own, swap);
    k.store(y, e, fma(own, angle(table), other * (angle(k.at(table, k.index(E / 2))) * sign)));
  });
}

/// rope {heads, head_dim = E, style = half | interleaved, inverse, own, chunk}
/// slots: rows, y, x, table, T, strides of y, of x. own: the table has a row for each (b,t), not for t alone.
llvm::Function* emit_rope(KernelBuilder& k, const ir::KernelSpec& spec) {
  const ir::Attributes& a = spec.attributes;
  const int64_t E = a.integer("head_dim");
  const double direction = a.flag("inverse") ? -1 : 1;
  k.for_tasks([&](Val task) {
    for_rows_of_task(k, task, a.integer("chunk"), k.integer(0), [&](Val row) {
      const Ptr table = k.at(k.pointer(3), (a.flag("own") ? row : row % k.integer(4)) * E);
      const Ptr y = k.at(k.pointer(1), row * k.integer(5)), x = k.at(k.pointer(2), row * k.integer(6));
      k.loop("head", k.index(a.integer("heads")), [&](Val head) {
        const auto rotate = a.text("style") == "half" ? rotate_halves : rotate_neighbours;
        rotate(k, k.at(y, head * E), k.at(x, head * E), table, E, direction);
      });
    });
  });
  return k.finish();
}

}  // namespace

std::vector<KernelFamily> embedding_kernels() {
  return {{"embedding", emit_embedding},
          {"embedding_grad", emit_embedding_grad},
          {"position_rows", emit_position_rows},
          {"position_rows_grad", emit_position_rows_grad},
          {"angles", emit_angles},
          {"rope", emit_rope}};
}

}  // namespace tfc::codegen
