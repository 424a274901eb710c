// Forward attention: a block per 64 queries of a head. It loops over their keys and keeps each query's largest score,
// sum of exponentials, and weighted sum of values.
// Online softmax: Milakov and Gimelshein, arXiv 1805.02867; in tiles: Dao et al., arXiv 2205.14135.
#include <cfloat>
#include <type_traits>

#include "reference/cuda/kernels/attention_tiles.cuh"

namespace gpubench::cuda {
namespace {

/// Over the 16 neighbouring threads that share rows.
__device__ __forceinline__ float largest_of_row(float value) {
#pragma unroll
  for (int offset = attention_sides / 2; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(whole_warp, value, offset);
    value = other > value ? other : value;
  }
  return value;
}
__device__ __forceinline__ float sum_of_row(float value) {
#pragma unroll
  for (int offset = attention_sides / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(whole_warp, value, offset);
  return value;
}

__device__ __forceinline__ bool masks(const AttentionArgs& args) {
  return args.causal || args.window > 0 || args.boundaries > 0;
}

/// 0 times NaN or infinity is NaN.
template <int D>
__device__ __forceinline__ bool all_finite(const SumsOfThread<D>& sums) {
  float probe = 0.0F;
#pragma unroll
  for (const auto& row : sums) {
#pragma unroll
    for (const auto& group : row) {
#pragma unroll
      for (const float x : group) probe += 0.0F * x;
    }
  }
  return probe == 0.0F;
}

/// As add_weighted(), but only for the keys that each query sees; `key`: first key of the tile.
template <int D, class T, bool packs>
__device__ __forceinline__ void add_seen(const HeadRows<T, packs>& v, int key, AttentionMemory& memory,
                                         SumsOfThread<D>& sums) {
  __syncthreads();  // the weights are stored
  const int rows = v.rows < attention_tile ? v.rows : attention_tile;
#pragma unroll 1
  for (int row = 0; row < rows; ++row) {
    const Shared<float>* weights = memory.weights + cell_of(row, first_row());
#pragma unroll
    for (int i = 0; i < of_thread; ++i) {
      const IndexRange seen{memory.first[first_row() + i], memory.end[first_row() + i]};
      if (!seen.contains(key + row)) continue;
      const float weight = weights[i];
#pragma unroll
      for (int group = 0; group < D / attention_tile; ++group) {
        const Four<T> values = load_four(v, row, group * attention_tile + first_column());
#pragma unroll
        for (int c = 0; c < 4; ++c) sums[i][group][c] += weight * widen(values[c]);
      }
    }
  }
}

template <class T, int D, bool packs>
__global__ void __launch_bounds__(attention_threads, attention_blocks_at_once<D>)
    attention_forward_kernel(AttentionArgs args) {
  auto& memory = shared_storage<AttentionMemory>();
  const TilePlace place = tile_of_block(args.s, args.hq, args.b, true);
  const int batch = place.batch, kv_head = place.head / static_cast<int>(args.hq / args.hkv);
  const auto q = rows_from<const T, packs>(args.q, args.q_at, batch, place.head, place.first, args.s, args.d);

  float largest[of_thread], sum[of_thread];
  SumsOfThread<D> out;
  (void)put_ranges(q.rows, memory, [&](int row) { return keys_of(args, batch, place.first + row); });
  // Starts from a finite maximum, as a query may see no key of a tile, and -inf - -inf is NaN. Reloaded at each use,
  // for lack of registers.
  const auto sink = [&] { return args.sinks != nullptr ? load(args.sinks + place.head) : -FLT_MAX; };
  __syncthreads();
  const auto walk = [&](auto only_seen) {
#pragma unroll
    for (int i = 0; i < of_thread; ++i) {
      largest[i] = sink();
      sum[i] = 0.0F;
    }
    clear<D>(out);
    const int keys_end = memory.end[(q.rows < attention_tile ? q.rows : attention_tile) - 1];
    for (int key = memory.first[0]; key < keys_end; key += attention_tile) {
      const auto k = rows_from<const T, packs>(args.k, args.k_at, batch, kv_head, key, keys_end, args.d);
      const auto v = rows_from<const T, packs>(args.v, args.v_at, batch, kv_head, key, keys_end, args.dv);
      TileOfThread p;
      multiply(q, k, memory, p);
#pragma unroll
      for (int i = 0; i < of_thread; ++i) {
        const IndexRange seen{memory.first[first_row() + i], memory.end[first_row() + i]};
        float most = largest[i];
#pragma unroll
        for (int j = 0; j < of_thread; ++j) {
          p[i][j] = seen.contains(key + first_column() + j) ? score_of(args, p[i][j]).value : -INFINITY;
          most = p[i][j] > most ? p[i][j] : most;
        }
        most = largest_of_row(most);
        const float factor = full_exp(largest[i] - most);
        largest[i] = most;
        sum[i] *= factor;
#pragma unroll
        for (int j = 0; j < of_thread; ++j) {
          p[i][j] = full_exp(p[i][j] - most);
          sum[i] += p[i][j];
        }
#pragma unroll
        for (auto& group : out[i]) {
#pragma unroll
          for (float& x : group) x *= factor;
        }
      }
      put_weights(p, memory);
      if constexpr (only_seen.value) {
        add_seen<D>(v, key, memory, out);
      } else {
        add_weighted<D>(v, memory, out);
      }
    }
  };
  // Tile products multiply masked values by 0. If that may have caused a NaN, the block repeats without them.
  walk(std::false_type{});
  if (masks(args) && block_sum(all_finite<D>(out) ? 0 : 1, memory.counts) > 0) walk(std::true_type{});

  // Four threads share four rows: each takes the logarithm of one.
  const int chosen = first_column() / of_thread;
  float reciprocal[of_thread], most = 0.0F, all = 1.0F;
#pragma unroll
  for (int i = 0; i < of_thread; ++i) {
    const float total = sum_of_row(sum[i]) + (args.sinks != nullptr ? full_exp(sink() - largest[i]) : 0.0F);
    const bool sees = args.sinks != nullptr || memory.first[first_row() + i] < memory.end[first_row() + i];
    reciprocal[i] = sees ? 1.0F / total : 0.0F;
    if (i == chosen) {
      most = largest[i];
      all = total;
    }
  }
  const int row = first_row() + chosen;
  if (chosen < of_thread && row < q.rows) {
    const double lse = static_cast<double>(most) + log(static_cast<double>(all));
    store(args.lse + (batch * args.hq + place.head) * args.s + place.first + row, static_cast<float>(lse));
  }
  store_sums<D>(rows_from<T, packs>(args.o, args.o_at, batch, place.head, place.first, args.s, args.dv), reciprocal,
                out);
}

}  // namespace

void launch_attention_forward(const AttentionArgs& args, cudaStream_t stream) {
  with_float_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    const bool packs = packs_fit_heads<T>(args.q, args.q_at, args.d) && packs_fit_heads<T>(args.k, args.k_at, args.d) &&
                       packs_fit_heads<T>(args.v, args.v_at, args.dv) && packs_fit_heads<T>(args.o, args.o_at, args.dv);
    with_attention_shape(args, packs, [&](auto shape) {
      launch(attention_forward_kernel<T, shape.D, shape.packs>,
             Grid{attention_blocks(args.s, args.hq, args.b), attention_threads}, stream, args);
    });
  });
}

}  // namespace gpubench::cuda
