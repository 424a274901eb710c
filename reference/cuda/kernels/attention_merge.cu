// A thread loads two packs of 16 bytes of each part (elements if packs do not fit) and computes the rows' weights
// meanwhile.
#include "reference/cuda/kernels/attention.h"

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int in_flight = 2;  // packs per part

__device__ __forceinline__ float log_of_one_and(float x) { return log1pf(x); }
__device__ __forceinline__ double log_of_one_and(double x) { return log1p(x); }

/// Index of the log-sum-exp of a pack's row.
__device__ __forceinline__ std::int64_t row_of(const AttentionMergeArgs& args, std::int64_t head_of_token) {
  const std::int64_t token = head_of_token / args.heads, batch = token / args.tokens;
  return (batch * args.heads + (head_of_token - token * args.heads)) * args.tokens + (token - batch * args.tokens);
}

template <class T, int N>
__global__ void __launch_bounds__(threads) merge_kernel(AttentionMergeArgs args) {
  using W = Wide<T>;
  const std::int64_t packs = args.width / N, items = args.batches * args.tokens * args.heads * packs;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads * in_flight + threadIdx.x; first < items;
       first += static_cast<std::int64_t>(gridDim.x) * threads * in_flight) {
    Loaded<T, N> a[in_flight], b[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t item = first + k * threads;
      if (item >= items) break;
      a[k] = load_pack<N>(static_cast<const T*>(args.o1) + item * N);
      b[k] = load_pack<N>(static_cast<const T*>(args.o2) + item * N);
    }
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t item = first + k * threads, head_of_token = item / packs;
      if (item >= items) break;
      const std::int64_t row = row_of(args, head_of_token);
      const W one = load(static_cast<const W*>(args.lse1) + row), other = load(static_cast<const W*>(args.lse2) + row);
      const W larger = one > other ? one : other;
      const bool sees_no_key = larger == -static_cast<W>(INFINITY);
      const W lse = sees_no_key ? larger : larger + log_of_one_and(full_exp(one > other ? other - one : one - other));
      if (item == head_of_token * packs) store(static_cast<W*>(args.lse) + row, lse);
      const W of_a = sees_no_key ? W(0) : full_exp(one - lse), of_b = sees_no_key ? W(0) : full_exp(other - lse);
      Pack<T, N> y;
#pragma unroll
      for (int i = 0; i < N; ++i) y.at[i] = narrow<T>(widen(a[k][i]) * of_a + widen(b[k][i]) * of_b);
      store_pack(static_cast<T*>(args.o) + item * N, y);
    }
  }
}

template <class T, int N>
void launch_packs(const AttentionMergeArgs& args, cudaStream_t stream) {
  const std::int64_t items = args.batches * args.tokens * args.heads * (args.width / N);
  launch(merge_kernel<T, N>, Grid{blocks_for(items, threads * in_flight), threads}, stream, args);
}

}  // namespace

void launch_attention_merge(const AttentionMergeArgs& args, cudaStream_t stream) {
  with_any_type(args.type, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int n = pack_elements<T>;
    const std::int64_t rows = args.batches * args.tokens * args.heads;
    const bool packed = args.width % n == 0 && packs_fit<T>(args.o1, rows, args.width, n) &&
                        packs_fit<T>(args.o2, rows, args.width, n) && packs_fit<T>(args.o, rows, args.width, n);
    packed ? launch_packs<T, n>(args, stream) : launch_packs<T, 1>(args, stream);
  });
}

}  // namespace gpubench::cuda
