// Shared parts of the attention kernels: 64 x 64 tiles of scores with 4 x 4 per thread, their products, and masks.
//
// Operands pass through shared memory as f32, 8 KiB at a time; the next stage loads during the multiplication. The f32
// FMAs bound the kernels (2 d per score), not memory. A thread has the same rows in the scores and in the sums made
// from them, so that a row's factors stay in its registers.
#pragma once

#include "reference/cuda/kernels/attention.h"
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/reduce.cuh"

namespace gpubench::cuda {

inline constexpr int attention_tile = 64;
inline constexpr int attention_threads = 256;
inline constexpr int attention_sides = 16;  // threads per tile side
inline constexpr int of_thread = 4;         // rows, and columns, per thread
inline constexpr int attention_depth = 16;  // products per stage
static_assert(attention_sides * attention_sides == attention_threads && attention_sides * of_thread == attention_tile);

/// Blocks per multiprocessor that the registers must allow if a thread sums D / 4 elements.
template <int D>
inline constexpr int attention_blocks_at_once = D > 128 ? 1 : 2;

struct AttentionMemory {
  alignas(16) Shared<float> stage[2 * attention_depth * attention_tile];
  alignas(16) Shared<float> weights[attention_tile * attention_tile];  // [columns of scores, rows], by cell_of()
  // Per row, for lack of registers.
  Shared<int> first[attention_tile], end[attention_tile];
  Shared<float> lse[attention_tile], delta[attention_tile];
  PerWarp<int> counts;
};

/// Position of `line` in row `deep` of a staged tile. Groups of four lines are permuted every four rows, so that stores
/// of four elements of a line, or of a column of weights, have no bank conflicts.
__device__ __forceinline__ int cell_of(int deep, int line) {
  return deep * attention_tile + (line ^ (deep & (attention_tile - 4)));
}

/// Consecutive rows of one head. `packs`: four adjacent elements may be moved at once.
template <class T, bool packs>
struct HeadRows {
  T* data;
  int stride, rows, columns;
};
template <class T, bool packs, class V>
__device__ __forceinline__ HeadRows<T, packs> rows_from(V* data, const HeadStrides& at, std::int64_t batch,
                                                        std::int64_t head, std::int64_t first, std::int64_t end,
                                                        std::int64_t columns) {
  return {static_cast<T*>(data) + batch * at.sequence + head * at.head + first * at.token, static_cast<int>(at.token),
          static_cast<int>(end - first), static_cast<int>(columns)};
}

template <class T>
using Four = Loaded<std::remove_const_t<T>, 4>;

/// Elements [column, column + 4) of a row; 0 beyond its end.
template <class T, bool packs>
__device__ __forceinline__ Four<T> load_four(const HeadRows<T, packs>& from, int row, int column) {
  using Element = std::remove_const_t<T>;
  const int left = row < from.rows ? from.columns - column : 0;
  const Element* at = from.data + static_cast<std::int64_t>(row) * from.stride + column;
  if constexpr (packs) {
    return left > 0 ? load_pack<4>(at) : Four<T>{};
  } else {
    Pack<Element, 4> pack;
#pragma unroll
    for (int i = 0; i < 4; ++i) pack.at[i] = i < left ? load(at + i) : Element{};
    return as_loaded(pack);
  }
}

template <class T, bool packs>
__device__ __forceinline__ void store_four(const HeadRows<T, packs>& to, int row, int column,
                                           const float (&values)[4]) {
  const int left = row < to.rows ? to.columns - column : 0;
  T* at = to.data + static_cast<std::int64_t>(row) * to.stride + column;
  Pack<T, 4> pack;
#pragma unroll
  for (int i = 0; i < 4; ++i) pack.at[i] = narrow<T>(values[i]);
  if constexpr (packs) {
    if (left > 0) store_pack(at, pack);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < left) store(at + i, pack.at[i]);
    }
  }
}

__device__ __forceinline__ int first_row() { return static_cast<int>(threadIdx.x) / attention_sides * of_thread; }
__device__ __forceinline__ int first_column() { return static_cast<int>(threadIdx.x) % attention_sides * of_thread; }

/// One thread's share of a tile's lines from element `first` on, while they load.
template <class T>
struct LinesInFlight {
  static constexpr int packs_per_line = attention_depth / 4;
  static constexpr int turns = attention_tile * packs_per_line / attention_threads;
  Four<T> packs[turns];

  template <bool of_packs>
  __device__ __forceinline__ void fetch(const HeadRows<T, of_packs>& from, int first) {
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      const int pack = turn * attention_threads + static_cast<int>(threadIdx.x);
      packs[turn] = load_four(from, pack / packs_per_line, first + pack % packs_per_line * 4);
    }
  }
  /// Stores as [depth, lines].
  __device__ __forceinline__ void put(Shared<float>* to) const {
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      const int pack = turn * attention_threads + static_cast<int>(threadIdx.x);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        to[cell_of(pack % packs_per_line * 4 + i, pack / packs_per_line)] = widen(packs[turn][i]);
    }
  }
};

using TileOfThread = float[of_thread][of_thread];

/// products = a b^T over all columns; rows of a by rows of b. All threads of the block must call it.
template <class T, bool packs>
__device__ __forceinline__ void multiply(const HeadRows<T, packs>& a, const HeadRows<T, packs>& b,
                                         AttentionMemory& memory, TileOfThread& products) {
  constexpr int half = attention_depth * attention_tile;
#pragma unroll
  for (auto& row : products) {
#pragma unroll
    for (float& product : row) product = 0.0F;
  }
  LinesInFlight<T> next_a, next_b;
  next_a.fetch(a, 0);
  next_b.fetch(b, 0);
  for (int first = 0; first < a.columns; first += attention_depth) {
    next_a.put(memory.stage);
    next_b.put(memory.stage + half);
    __syncthreads();
    if (first + attention_depth < a.columns) {
      next_a.fetch(a, first + attention_depth);
      next_b.fetch(b, first + attention_depth);
    }
#pragma unroll 1
    for (int deep = 0; deep < attention_depth; deep += 4) {
      const Shared<float>* left = memory.stage + cell_of(deep, first_row());
      const Shared<float>* right = memory.stage + half + cell_of(deep, first_column());
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float x[of_thread], y[of_thread];
#pragma unroll
        for (int i = 0; i < of_thread; ++i) {
          x[i] = left[k * attention_tile + i];
          y[i] = right[k * attention_tile + i];
        }
#pragma unroll
        for (int i = 0; i < of_thread; ++i) {
#pragma unroll
          for (int j = 0; j < of_thread; ++j) products[i][j] += x[i] * y[j];
        }
      }
    }
    __syncthreads();
  }
}

/// A thread's sums of D columns: four of each 64, in its rows of the tile.
template <int D>
using SumsOfThread = float[of_thread][D / attention_tile][4];

template <int D>
__device__ __forceinline__ void clear(SumsOfThread<D>& sums) {
#pragma unroll
  for (auto& row : sums) {
#pragma unroll
    for (auto& group : row) {
#pragma unroll
      for (float& x : group) x = 0.0F;
    }
  }
}

/// Stores the thread's weights for add_weighted(), which has the barrier.
__device__ __forceinline__ void put_weights(const TileOfThread& weights, AttentionMemory& memory) {
#pragma unroll
  for (int j = 0; j < of_thread; ++j) {
    Shared<float>* to = memory.weights + cell_of(first_column() + j, first_row());
#pragma unroll
    for (int i = 0; i < of_thread; ++i) to[i] = weights[i][j];
  }
}

/// A weight that this thread stored; needs no barrier.
__device__ __forceinline__ float own_weight(const AttentionMemory& memory, int i, int j) {
  return memory.weights[cell_of(first_column() + j, first_row()) + i];
}

/// sums += weights b, where row j of b belongs to column j of the weights. All threads of the block must call it.
template <int D, class T, bool packs>
__device__ __forceinline__ void add_weighted(const HeadRows<T, packs>& b, AttentionMemory& memory,
                                             SumsOfThread<D>& sums) {
  constexpr int at_once = 2 * attention_depth * attention_tile / D;  // rows per stage
  constexpr int per_row = D / 4, turns = at_once * per_row / attention_threads;
  const int rows = b.rows < attention_tile ? b.rows : attention_tile;
  Four<T> next[turns];
  const auto fetch = [&](int first) {
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      const int pack = turn * attention_threads + static_cast<int>(threadIdx.x);
      next[turn] = load_four(b, first + pack / per_row, pack % per_row * 4);
    }
  };
  fetch(0);
  for (int first = 0; first < rows; first += at_once) {
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      const int pack = turn * attention_threads + static_cast<int>(threadIdx.x);
#pragma unroll
      for (int i = 0; i < 4; ++i) memory.stage[pack * 4 + i] = widen(next[turn][i]);
    }
    __syncthreads();
    if (first + at_once < rows) fetch(first + at_once);
#pragma unroll 1
    for (int row = 0; row < at_once; row += 4) {
      const Shared<float>* weights = memory.weights + cell_of(first + row, first_row());
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float weight[of_thread];
#pragma unroll
        for (int i = 0; i < of_thread; ++i) weight[i] = weights[k * attention_tile + i];
#pragma unroll
        for (int group = 0; group < D / attention_tile; ++group) {
          const Shared<float>* values = memory.stage + (row + k) * D + group * attention_tile + first_column();
          float value[4];
#pragma unroll
          for (int c = 0; c < 4; ++c) value[c] = values[c];
#pragma unroll
          for (int i = 0; i < of_thread; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c) sums[i][group][c] += weight[i] * value[c];
          }
        }
      }
    }
    __syncthreads();
  }
}

/// Stores rows of the tile, each multiplied by `factor[i]`.
template <int D, class T, bool packs>
__device__ __forceinline__ void store_sums(const HeadRows<T, packs>& to, const float (&factor)[of_thread],
                                           const SumsOfThread<D>& sums) {
#pragma unroll
  for (int i = 0; i < of_thread; ++i) {
#pragma unroll
    for (int group = 0; group < D / attention_tile; ++group) {
      float values[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) values[c] = sums[i][group][c] * factor[i];
      store_four(to, first_row() + i, group * attention_tile + first_column(), values);
    }
  }
}

struct IndexRange {
  int first, end;
  [[nodiscard]] __device__ __forceinline__ bool contains(int index) const { return first <= index && index < end; }
  __device__ __forceinline__ void cut(int from, int to) {
    first = from > first ? from : first;
    end = to < end ? to : end;
  }
};

/// Restricts the range to the document of `index`.
__device__ __forceinline__ void cut_to_document(const AttentionArgs& args, int batch, int index, IndexRange& range) {
  for (std::int64_t i = 0; i < args.boundaries; ++i) {
    const int boundary = load(args.documents + batch * args.boundaries + i);
    if (boundary <= index) {
      range.cut(boundary, range.end);
    } else {
      range.cut(range.first, boundary);
    }
  }
}

/// Keys visible to a query; empty if end <= first. Neither bound decreases with the query.
__device__ __forceinline__ IndexRange keys_of(const AttentionArgs& args, int batch, int query) {
  const int end = args.causal ? query + static_cast<int>(args.t - args.s) + 1 : static_cast<int>(args.t);
  IndexRange range{0, end};
  if (args.window > 0) range.cut(end - static_cast<int>(args.window), end);
  cut_to_document(args, batch, query, range);
  return range;
}

/// Queries that see a key.
__device__ __forceinline__ IndexRange queries_of(const AttentionArgs& args, int batch, int key) {
  IndexRange range{0, static_cast<int>(args.s)};
  const int own = key - static_cast<int>(args.t - args.s);  // the first query that sees it
  if (args.causal) range.cut(own, range.end);
  if (args.window > 0) range.cut(own, own + static_cast<int>(args.window));
  cut_to_document(args, batch, key, range);
  return range;
}

/// Stores the range of each of the tile's `rows` rows and returns their union. Other threads may read them after the
/// next barrier.
template <class RangeOf>
__device__ __forceinline__ IndexRange put_ranges(int rows, AttentionMemory& memory, const RangeOf& range_of) {
  const int row = static_cast<int>(threadIdx.x);
  if (row < attention_tile) {
    const IndexRange range = row < rows ? range_of(row) : IndexRange{0, 0};
    memory.first[row] = range.first;
    memory.end[row] = range.end;
  }
  const int last = rows < attention_tile ? rows - 1 : attention_tile - 1;
  return {range_of(0).first, range_of(last).end};
}

/// A score and its derivative with respect to the product of q and k.
struct CappedScore {
  float value, slope;
};
__device__ __forceinline__ CappedScore score_of(const AttentionArgs& args, float product) {
  const float scaled = args.scale * product;
  if (args.softcap == 0.0F) return {scaled, 1.0F};
  const float t = full_tanh(scaled / args.softcap);
  return {args.softcap * t, 1.0F - t * t};
}

/// A block's tile and head. Tiles with most work come first: later queries, or earlier keys.
struct TilePlace {
  int batch, head, first;
};
__device__ __forceinline__ TilePlace tile_of_block(std::int64_t rows, std::int64_t heads, std::int64_t batches,
                                                   bool last_first) {
  const std::int64_t tiles = (rows + attention_tile - 1) / attention_tile, of_all = heads * batches;
  const std::int64_t turn = blockIdx.x / of_all, one = blockIdx.x % of_all;
  const std::int64_t tile = last_first ? tiles - 1 - turn : turn;
  return {static_cast<int>(one / heads), static_cast<int>(one % heads), static_cast<int>(tile * attention_tile)};
}

/// Kernel variants: a width that holds both head sizes, and whether packs fit. Without packs, which is rare, there is
/// only one width.
template <int width, bool fit>
struct AttentionShape {
  static constexpr int D = width;
  static constexpr bool packs = fit;
};

template <class LaunchWith>
void with_attention_shape(const AttentionArgs& args, bool packs, const LaunchWith& launch_with) {
  const std::int64_t widest = args.d > args.dv ? args.d : args.dv;
  if (widest > max_attention_head) throw std::logic_error("tiled attention: the head is too wide");
  if (!packs) return launch_with(AttentionShape<max_attention_head, false>{});
  if (widest <= 64) return launch_with(AttentionShape<64, true>{});
  if (widest <= 128) return launch_with(AttentionShape<128, true>{});
  launch_with(AttentionShape<max_attention_head, true>{});
}

[[nodiscard]] inline std::int64_t attention_blocks(std::int64_t rows, std::int64_t heads, std::int64_t batches) {
  return (rows + attention_tile - 1) / attention_tile * heads * batches;
}

/// Whether packs of four fit every row of `columns` elements.
template <class T>
[[nodiscard]] bool packs_fit_heads(const void* data, const HeadStrides& at, std::int64_t columns) {
  return columns % 4 == 0 && packs_fit<T>(data, 2, at.sequence, 4) && packs_fit<T>(data, 2, at.token, 4) &&
         packs_fit<T>(data, 2, at.head, 4);
}

}  // namespace gpubench::cuda
