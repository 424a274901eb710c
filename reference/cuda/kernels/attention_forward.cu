// Forward attention: a block per 64 queries of a head, which walks over the keys that they see and keeps the largest
// score, the sum of exponentials and the weighted sum of values of each query (online softmax: Milakov and Gimelshein,
// arXiv 1805.02867; in tiles: Dao et al., arXiv 2205.14135).
#include <cfloat>

#include "reference/cuda/kernels/attention_tiles.cuh"

namespace gpubench::cuda {
namespace {

/// Over the threads that share rows: 16 neighbours.
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

template <class T, int D, bool packs>
__global__ void __launch_bounds__(attention_threads, attention_blocks_at_once<D>)
    attention_forward_kernel(AttentionArgs args) {
  auto& memory = shared_storage<AttentionMemory>();
  const TilePlace place = tile_of_block(args.s, args.hq, args.b, true);
  const int batch = place.batch, kv_head = place.head / static_cast<int>(args.hq / args.hkv);
  const auto q = rows_from<const T, packs>(args.q, args.q_at, batch, place.head, place.first, args.s, args.d);

  // A finite start: minus infinity less minus infinity would be NaN where a query sees no key of a tile.
  const bool sinks = args.sinks != nullptr;
  const float sink = sinks ? load(args.sinks + place.head) : -FLT_MAX;
  float largest[of_thread], sum[of_thread];
#pragma unroll
  for (int i = 0; i < of_thread; ++i) {
    largest[i] = sink;
    sum[i] = 0.0F;
  }
  SumsOfThread<D> out;
  clear<D>(out);
  const IndexRange keys = put_ranges(q.rows, memory, [&](int row) { return keys_of(args, batch, place.first + row); });
  for (int key = keys.first; key < keys.end; key += attention_tile) {
    const auto k = rows_from<const T, packs>(args.k, args.k_at, batch, kv_head, key, keys.end, args.d);
    const auto v = rows_from<const T, packs>(args.v, args.v_at, batch, kv_head, key, keys.end, args.dv);
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
    add_weighted<D>(v, memory, out);
  }

  // Of the threads that share four rows, the first four have one each to take the logarithm of.
  const int chosen = first_column() / of_thread;
  float reciprocal[of_thread], most = 0.0F, all = 1.0F;
#pragma unroll
  for (int i = 0; i < of_thread; ++i) {
    const float total = sum_of_row(sum[i]) + (sinks ? full_exp(sink - largest[i]) : 0.0F);
    reciprocal[i] = 1.0F / total;
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
