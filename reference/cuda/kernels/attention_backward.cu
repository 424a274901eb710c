// Attention's gradient from saved o and log-sum-exp (Dao et al., arXiv 2205.14135, appendix B).
//
// Deterministic: one block sums each result, 64 queries for dq, and 64 keys for dk and dv over all query heads that
// share them. Hence scores are computed twice.
#include "reference/cuda/kernels/attention_tiles.cuh"

namespace gpubench::cuda {
namespace {

constexpr int delta_warps = attention_threads / warp_lanes;

/// delta = sum of do o; a warp per query of a head.
template <class T, bool packs>
__global__ void __launch_bounds__(attention_threads) attention_delta_kernel(AttentionArgs args) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * delta_warps + threadIdx.x / warp_lanes;
  if (row >= args.b * args.hq * args.s) return;
  const std::int64_t query = row % args.s, head = row / args.s % args.hq, batch = row / args.s / args.hq;
  const auto o = rows_from<const T, packs>(args.o, args.o_at, batch, head, query, args.s, args.dv);
  const auto d_o = rows_from<const T, packs>(args.d_o, args.d_o_at, batch, head, query, args.s, args.dv);
  float sum = 0.0F;
  for (int column = static_cast<int>(threadIdx.x) % warp_lanes * 4; column < o.columns; column += warp_lanes * 4) {
    const Four<const T> x = load_four(o, 0, column), y = load_four(d_o, 0, column);
#pragma unroll
    for (int i = 0; i < 4; ++i) sum += widen(x[i]) * widen(y[i]);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % warp_lanes == 0) store(args.delta + row, sum);
}

/// dsink = -sum of exp(sink - lse) delta over all queries of a head; a block per head.
__global__ void __launch_bounds__(attention_threads) attention_sinks_kernel(AttentionArgs args) {
  const std::int64_t head = blockIdx.x;
  const float sink = load(args.sinks + head);
  float sum = 0.0F;
  for (std::int64_t i = threadIdx.x; i < args.b * args.s; i += attention_threads) {
    const std::int64_t row = (i / args.s * args.hq + head) * args.s + i % args.s;
    sum += full_exp(sink - load(args.lse + row)) * load(args.delta + row);
  }
  sum = block_sum(sum, shared_storage<PerWarp<float>>());
  if (threadIdx.x == 0) store(args.d_sinks + head, -sum);
}

/// Stores log-sum-exp and delta of the tile's `rows` queries from element `first` on. Call after a barrier behind the
/// last reads; read after the next barrier.
__device__ __forceinline__ void put_statistics(const AttentionArgs& args, std::int64_t first, int rows,
                                               AttentionMemory& memory) {
  const int row = static_cast<int>(threadIdx.x);
  if (row >= attention_tile) return;
  memory.lse[row] = row < rows ? load(args.lse + first + row) : 0.0F;
  memory.delta[row] = row < rows ? load(args.delta + first + row) : 0.0F;
}

template <class T, int D, bool packs>
__global__ void __launch_bounds__(attention_threads, attention_blocks_at_once<D>)
    attention_query_gradient_kernel(AttentionArgs args) {
  auto& memory = shared_storage<AttentionMemory>();
  const TilePlace place = tile_of_block(args.s, args.hq, args.b, true);
  const int batch = place.batch, kv_head = place.head / static_cast<int>(args.hq / args.hkv);
  const auto q = rows_from<const T, packs>(args.q, args.q_at, batch, place.head, place.first, args.s, args.d);
  const auto d_o = rows_from<const T, packs>(args.d_o, args.d_o_at, batch, place.head, place.first, args.s, args.dv);
  const IndexRange keys = put_ranges(q.rows, memory, [&](int row) { return keys_of(args, batch, place.first + row); });
  put_statistics(args, (batch * args.hq + place.head) * args.s + place.first, q.rows, memory);
  SumsOfThread<D> out;
  clear<D>(out);
  for (int key = keys.first; key < keys.end; key += attention_tile) {
    const auto k = rows_from<const T, packs>(args.k, args.k_at, batch, kv_head, key, keys.end, args.d);
    const auto v = rows_from<const T, packs>(args.v, args.v_at, batch, kv_head, key, keys.end, args.dv);
    TileOfThread ds;
    multiply(d_o, v, memory, ds);
    put_weights(ds, memory);  // registers hold one tile only
    multiply(q, k, memory, ds);
#pragma unroll
    for (int i = 0; i < of_thread; ++i) {
      const int row = first_row() + i;
      const IndexRange seen{memory.first[row], memory.end[row]};
      const float lse = memory.lse[row], delta = memory.delta[row];
#pragma unroll
      for (int j = 0; j < of_thread; ++j) {
        const CappedScore score = score_of(args, ds[i][j]);
        const float dp = own_weight(memory, i, j);
        const bool sees = seen.contains(key + first_column() + j);
        ds[i][j] = sees ? full_exp(score.value - lse) * (dp - delta) * score.slope : 0.0F;
      }
    }
    put_weights(ds, memory);
    add_weighted<D>(k, memory, out);
  }
  const float scale[of_thread] = {args.scale, args.scale, args.scale, args.scale};
  store_sums<D>(rows_from<T, packs>(args.dq, args.dq_at, batch, place.head, place.first, args.s, args.d), scale, out);
}

/// Rows of a tile are keys here, columns queries.
template <class T, int D, bool packs>
__global__ void __launch_bounds__(attention_threads, attention_blocks_at_once<2 * D>)
    attention_key_gradient_kernel(AttentionArgs args) {
  auto& memory = shared_storage<AttentionMemory>();
  const TilePlace place = tile_of_block(args.t, args.hkv, args.b, false);
  const int batch = place.batch, group = static_cast<int>(args.hq / args.hkv);
  const auto k = rows_from<const T, packs>(args.k, args.k_at, batch, place.head, place.first, args.t, args.d);
  const auto v = rows_from<const T, packs>(args.v, args.v_at, batch, place.head, place.first, args.t, args.dv);
  const IndexRange queries =
      put_ranges(k.rows, memory, [&](int row) { return queries_of(args, batch, place.first + row); });
  SumsOfThread<D> dk, dv;
  clear<D>(dk);
  clear<D>(dv);
  for (int head = place.head * group; head < (place.head + 1) * group; ++head) {
    const std::int64_t row_of_head = (batch * args.hq + head) * args.s;
    for (int query = queries.first; query < queries.end; query += attention_tile) {
      const auto q = rows_from<const T, packs>(args.q, args.q_at, batch, head, query, queries.end, args.d);
      const auto d_o = rows_from<const T, packs>(args.d_o, args.d_o_at, batch, head, query, queries.end, args.dv);
      put_statistics(args, row_of_head + query, q.rows, memory);  // for the columns
      TileOfThread p, ds;
      multiply(v, d_o, memory, p);
      put_weights(p, memory);
      multiply(k, q, memory, p);
#pragma unroll
      for (int j = 0; j < of_thread; ++j) {
        const int column = first_column() + j;
#pragma unroll
        for (int i = 0; i < of_thread; ++i) {
          const IndexRange seeing{memory.first[first_row() + i], memory.end[first_row() + i]};
          const CappedScore score = score_of(args, p[i][j]);
          p[i][j] = seeing.contains(query + column) ? full_exp(score.value - memory.lse[column]) : 0.0F;
          ds[i][j] = p[i][j] * (own_weight(memory, i, j) - memory.delta[column]) * score.slope;
        }
      }
      put_weights(p, memory);
      add_weighted<D>(d_o, memory, dv);
      put_weights(ds, memory);
      add_weighted<D>(q, memory, dk);
    }
  }
  const float scale[of_thread] = {args.scale, args.scale, args.scale, args.scale};
  const float one[of_thread] = {1.0F, 1.0F, 1.0F, 1.0F};
  store_sums<D>(rows_from<T, packs>(args.dk, args.dk_at, batch, place.head, place.first, args.t, args.d), scale, dk);
  store_sums<D>(rows_from<T, packs>(args.d_v, args.dv_at, batch, place.head, place.first, args.t, args.dv), one, dv);
}

}  // namespace

void launch_attention_backward(const AttentionArgs& args, cudaStream_t stream) {
  with_float_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    const bool packs =
        packs_fit_heads<T>(args.q, args.q_at, args.d) && packs_fit_heads<T>(args.k, args.k_at, args.d) &&
        packs_fit_heads<T>(args.v, args.v_at, args.dv) && packs_fit_heads<T>(args.o, args.o_at, args.dv) &&
        packs_fit_heads<T>(args.d_o, args.d_o_at, args.dv) && packs_fit_heads<T>(args.dq, args.dq_at, args.d) &&
        packs_fit_heads<T>(args.dk, args.dk_at, args.d) && packs_fit_heads<T>(args.d_v, args.dv_at, args.dv);
    const auto start = [&](void (*kernel)(AttentionArgs), std::int64_t blocks) {
      launch(kernel, Grid{blocks, attention_threads}, stream, args);
    };
    with_attention_shape(args, packs, [&](auto shape) {
      start(attention_delta_kernel<T, shape.packs>, (args.b * args.hq * args.s + delta_warps - 1) / delta_warps);
      if (args.sinks != nullptr) start(attention_sinks_kernel, args.hq);
      start(attention_query_gradient_kernel<T, shape.D, shape.packs>, attention_blocks(args.s, args.hq, args.b));
      start(attention_key_gradient_kernel<T, shape.D, shape.packs>, attention_blocks(args.t, args.hkv, args.b));
    });
  });
}

}  // namespace gpubench::cuda
