// A thread per pack of 16 bytes of a head, or per element where these don't fit. Each computes the weights of its row:
// two exponentials beside the loads.
#include "reference/cuda/kernels/attention_merge.h"

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;

template <class T, int N>
__global__ void __launch_bounds__(threads) merge_kernel(AttentionMergeArgs args) {
  using W = Wide<T>;
  const std::int64_t packs = args.width / N, items = args.batches * args.tokens * args.heads * packs;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; item < items;
       item += static_cast<std::int64_t>(gridDim.x) * threads) {
    const std::int64_t head_of_token = item / packs, token = head_of_token / args.heads;
    const std::int64_t row =
        (token / args.tokens * args.heads + head_of_token % args.heads) * args.tokens + token % args.tokens;
    const Loaded<T, N> a = load_pack<N>(static_cast<const T*>(args.o1) + item * N);
    const Loaded<T, N> b = load_pack<N>(static_cast<const T*>(args.o2) + item * N);
    const auto first = static_cast<double>(load(static_cast<const W*>(args.lse1) + row));
    const auto second = static_cast<double>(load(static_cast<const W*>(args.lse2) + row));
    const double lse = (first > second ? first : second) + log1p(full_exp(-fabs(first - second)));
    if (item % packs == 0) store(static_cast<W*>(args.lse) + row, static_cast<W>(lse));
    const auto of_a = static_cast<W>(full_exp(first - lse)), of_b = static_cast<W>(full_exp(second - lse));
    Pack<T, N> y;
#pragma unroll
    for (int i = 0; i < N; ++i) y.at[i] = narrow<T>(widen(a[i]) * of_a + widen(b[i]) * of_b);
    store_pack(static_cast<T*>(args.o) + item * N, y);
  }
}

template <class T, int N>
void launch_packs(const AttentionMergeArgs& args, cudaStream_t stream) {
  const std::int64_t items = args.batches * args.tokens * args.heads * (args.width / N);
  launch(merge_kernel<T, N>, Grid{blocks_for(items, threads), threads}, stream, args);
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
