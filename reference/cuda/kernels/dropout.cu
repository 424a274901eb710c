// As pointwise.cu, with a mask per thread: one counter per four elements. Packs start at multiples of four; unaligned
// elements draw their own words.
#include "reference/cuda/kernels/elements.h"

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int in_flight = 4;
constexpr int words_of_group = 4;

/// Philox4x32-10 (Salmon et al., SC 2011) of counter (group, offset).
__device__ __forceinline__ void draw(std::uint64_t group, const std::uint32_t* offset, const std::uint32_t* seed,
                                     std::uint32_t* words) {
  std::uint32_t c0 = static_cast<std::uint32_t>(group), c1 = static_cast<std::uint32_t>(group >> 32);
  std::uint32_t c2 = offset[0], c3 = offset[1], k0 = seed[0], k1 = seed[1];
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53U} * c0, right = std::uint64_t{0xCD9E8D57U} * c2;
    c0 = static_cast<std::uint32_t>(right >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(right);
    c2 = static_cast<std::uint32_t>(left >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(left);
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

/// words[i] without indexed access, which would need an address.
__device__ __forceinline__ std::uint32_t one_of(const std::uint32_t* words, int i) {
  const std::uint32_t low = i % 2 == 0 ? words[0] : words[1];
  const std::uint32_t high = i % 2 == 0 ? words[2] : words[3];
  return i < 2 ? low : high;
}

template <class A, int N>
__global__ void __launch_bounds__(threads) dropout_kernel(DropoutArgs args) {
  const std::uint32_t seed[2] = {load(args.seed), load(args.seed + 1)};
  const std::uint32_t offset[2] = {load(args.offset), load(args.offset + 1)};
  const auto factor = static_cast<Wide<A>>(args.factor);
  const std::int64_t packs_per_row = (args.columns + N - 1) / N;
  const std::int64_t packs = packs_per_row * args.rows;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads * in_flight;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads * in_flight + threadIdx.x; first < packs;
       first += step) {
    Loaded<A, N> loaded[in_flight];
    PackPlace places[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t pack = first + static_cast<std::int64_t>(k) * threads;
      if (pack >= packs) break;
      places[k] = place_of(pack, packs_per_row, args.rows, N);
      const A* x = static_cast<const A*>(args.x) + places[k].row * args.x_stride;
      loaded[k] = load_part<N>(x + places[k].column, args.columns - places[k].column, A{});
    }
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t pack = first + static_cast<std::int64_t>(k) * threads;
      if (pack >= packs) break;
      const std::int64_t index = places[k].row * args.columns + places[k].column;
      const auto group = static_cast<std::uint64_t>(index) / words_of_group;
      Pack<A, N> result;
#pragma unroll
      for (int i = 0; i < N; i += words_of_group) {
        std::uint32_t words[words_of_group];
        draw(group + static_cast<std::uint64_t>(i / words_of_group), offset, seed, words);
#pragma unroll
        for (int j = 0; j < words_of_group; ++j) {
          if (i + j >= N) break;
          const std::uint32_t word = N == 1 ? one_of(words, static_cast<int>(index % words_of_group)) : words[j];
          const auto x = static_cast<Wide<A>>(widen(loaded[k][i + j]));
          result.at[i + j] = narrow<A>(word < args.least ? Wide<A>(0) : factor * x);
        }
      }
      A* y = static_cast<A*>(args.y) + places[k].row * args.y_stride;
      store_part(y + places[k].column, args.columns - places[k].column, result);
    }
  }
}

template <class A>
void launch_typed(const DropoutArgs& args, cudaStream_t stream) {
  constexpr int n = pack_elements<A> < words_of_group ? words_of_group : pack_elements<A>;
  const bool wide = packs_fit<A>(args.x, args.rows, args.x_stride, n) &&
                    packs_fit<A>(args.y, args.rows, args.y_stride, n) &&
                    (args.rows == 1 || args.columns % words_of_group == 0);
  const std::int64_t packs = wide ? (args.columns + n - 1) / n * args.rows : args.columns * args.rows;
  const Grid grid{blocks_for(packs, threads * in_flight), threads};
  if (wide) {
    launch(dropout_kernel<A, n>, grid, stream, args);
  } else {
    launch(dropout_kernel<A, 1>, grid, stream, args);
  }
}

}  // namespace

void launch_dropout(const DropoutArgs& args, cudaStream_t stream) {
  with_any_type(args.data, [&](auto type) { launch_typed<typename decltype(type)::type>(args, stream); });
}

}  // namespace gpubench::cuda
