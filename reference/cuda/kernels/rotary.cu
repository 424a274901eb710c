// A thread rotates the same pairs of several heads of a token, so that it loads their cosines and sines once. Those
// heads are in flight together; neighbouring threads have neighbouring packs. Unaligned pairs are rotated one by one.
#include "reference/cuda/kernels/attention.h"

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int in_flight = 4;  // heads per thread

template <class T, int P>
struct PairPack {
  Pack<T, P> first, second;
};

/// Loaded pairs whose elements are `pairs` apart.
template <class T, int P>
struct ApartPairs {
  Loaded<T, P> firsts, seconds;
  [[nodiscard]] __device__ __forceinline__ T first(int i) const { return firsts[i]; }
  [[nodiscard]] __device__ __forceinline__ T second(int i) const { return seconds[i]; }
};

/// Loaded pairs of adjacent elements.
template <class T, int P>
struct AdjacentPairs {
  Loaded<T, 2 * P> both;
  [[nodiscard]] __device__ __forceinline__ T first(int i) const { return both[2 * i]; }
  [[nodiscard]] __device__ __forceinline__ T second(int i) const { return both[2 * i + 1]; }
};

/// Pair i is elements i and i + pairs.
template <class T>
struct Halves {
  static constexpr int count = pack_elements<T>;
  using Pairs = ApartPairs<T, count>;
  static __device__ __forceinline__ Pairs get(const T* head, std::int64_t pair, const RotaryArgs& args) {
    return {load_pack<count>(head + pair), load_pack<count>(head + args.pairs + pair)};
  }
  static __device__ __forceinline__ void put(T* head, std::int64_t pair, const RotaryArgs& args,
                                             const PairPack<T, count>& turned) {
    store_pack(head + pair, turned.first);
    store_pack(head + args.pairs + pair, turned.second);
  }
};

/// Pair i is elements 2i and 2i + 1.
template <class T>
struct Neighbours {
  static constexpr int count = pack_elements<T> / 2;
  using Pairs = AdjacentPairs<T, count>;
  static __device__ __forceinline__ Pairs get(const T* head, std::int64_t pair, const RotaryArgs& /*args*/) {
    return {load_pack<2 * count>(head + 2 * pair)};
  }
  static __device__ __forceinline__ void put(T* head, std::int64_t pair, const RotaryArgs& /*args*/,
                                             const PairPack<T, count>& turned) {
    Pack<T, 2 * count> both;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      both.at[2 * i] = turned.first.at[i];
      both.at[2 * i + 1] = turned.second.at[i];
    }
    store_pack(head + 2 * pair, both);
  }
};

/// Either layout, one pair at a time.
template <class T>
struct Singles {
  static constexpr int count = 1;
  using Pairs = ApartPairs<T, 1>;
  static __device__ __forceinline__ std::int64_t first(std::int64_t pair, const RotaryArgs& args) {
    return args.interleaved ? 2 * pair : pair;
  }
  static __device__ __forceinline__ std::int64_t second(std::int64_t pair, const RotaryArgs& args) {
    return args.interleaved ? 2 * pair + 1 : pair + args.pairs;
  }
  static __device__ __forceinline__ Pairs get(const T* head, std::int64_t pair, const RotaryArgs& args) {
    return {load_pack<1>(head + first(pair, args)), load_pack<1>(head + second(pair, args))};
  }
  static __device__ __forceinline__ void put(T* head, std::int64_t pair, const RotaryArgs& args,
                                             const PairPack<T, 1>& turned) {
    store(head + first(pair, args), turned.first.at[0]);
    store(head + second(pair, args), turned.second.at[0]);
  }
};

template <class T, int P, class Pairs>
__device__ __forceinline__ PairPack<T, P> turn(const Pairs& x, const Pack<Wide<T>, P>& cos,
                                               const Pack<Wide<T>, P>& sin) {
  PairPack<T, P> y;
#pragma unroll
  for (int i = 0; i < P; ++i) {
    const Wide<T> a = widen(x.first(i));
    const Wide<T> b = widen(x.second(i));
    y.first.at[i] = narrow<T>(a * cos.at[i] - b * sin.at[i]);
    y.second.at[i] = narrow<T>(b * cos.at[i] + a * sin.at[i]);
  }
  return y;
}

struct Split {
  std::int64_t outer, rest;
};

__device__ __forceinline__ Split split(std::int64_t index, std::int64_t extent) {
  const std::int64_t outer = index <= 0xFFFFFFFF && extent <= 0xFFFFFFFF
                                 ? static_cast<unsigned>(index) / static_cast<unsigned>(extent)
                                 : index / extent;
  return {outer, index - outer * extent};
}

/// A thread has head `slot` and every `slots`th after it.
__device__ __host__ __forceinline__ std::int64_t slots_of(const RotaryArgs& args) {
  return (args.heads + in_flight - 1) / in_flight;
}

template <class T, class Access>
__global__ void __launch_bounds__(threads) rotary_kernel(RotaryArgs args) {
  constexpr int P = Access::count;
  const std::int64_t packs = args.pairs / P;
  const std::int64_t slots = slots_of(args);
  const std::int64_t items = args.sequences * args.tokens * slots * packs;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; item < items; item += step) {
    const Split by_pack = split(item, packs);
    const Split by_slot = split(by_pack.outer, slots);
    const Split by_token = split(by_slot.outer, args.tokens);
    const std::int64_t pair = by_pack.rest * P;
    const std::int64_t entry = by_token.rest * args.pairs + pair;
    const auto cos = load_pack<P>(static_cast<const Wide<T>*>(args.cos) + entry).unpacked();
    auto sin = load_pack<P>(static_cast<const Wide<T>*>(args.sin) + entry).unpacked();
    if (args.inverse) {
#pragma unroll
      for (int i = 0; i < P; ++i) sin.at[i] = -sin.at[i];
    }
    const T* x =
        static_cast<const T*>(args.x) + by_token.outer * args.x_strides.sequence + by_token.rest * args.x_strides.token;
    T* y = static_cast<T*>(args.y) + by_token.outer * args.y_strides.sequence + by_token.rest * args.y_strides.token;
    typename Access::Pairs loaded[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t head = by_slot.rest + k * slots;
      if (head >= args.heads) break;
      loaded[k] = Access::get(x + head * args.x_strides.head, pair, args);
    }
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t head = by_slot.rest + k * slots;
      if (head >= args.heads) break;
      Access::put(y + head * args.y_strides.head, pair, args, turn<T, P>(loaded[k], cos, sin));
    }
  }
}

/// Whether every 16-byte access within heads at `head` is aligned.
template <class T>
bool heads_fit(const void* head, const HeadStrides& strides, const RotaryArgs& args) {
  constexpr int n = pack_elements<T>;
  return packs_fit<T>(head, args.sequences, strides.sequence, n) && packs_fit<T>(head, args.tokens, strides.token, n) &&
         packs_fit<T>(head, args.heads, strides.head, n);
}

template <class T, class Access>
bool fits(const RotaryArgs& args) {
  const bool tables = packs_fit<Wide<T>>(args.cos, args.tokens, args.pairs, Access::count) &&
                      packs_fit<Wide<T>>(args.sin, args.tokens, args.pairs, Access::count);
  return args.pairs % Access::count == 0 && tables && heads_fit<T>(args.x, args.x_strides, args) &&
         heads_fit<T>(args.y, args.y_strides, args);
}

template <class T, class Access>
void launch_with(const RotaryArgs& args, cudaStream_t stream) {
  const std::int64_t items = args.sequences * args.tokens * slots_of(args) * (args.pairs / Access::count);
  launch(rotary_kernel<T, Access>, Grid{blocks_for(items, threads), threads}, stream, args);
}

}  // namespace

void launch_rotary(const RotaryArgs& args, cudaStream_t stream) {
  with_any_type(args.type, [&](auto type) {
    using T = typename decltype(type)::type;
    if (!args.interleaved && fits<T, Halves<T>>(args)) return launch_with<T, Halves<T>>(args, stream);
    if (args.interleaved && fits<T, Neighbours<T>>(args)) return launch_with<T, Neighbours<T>>(args, stream);
    launch_with<T, Singles<T>>(args, stream);
  });
}

}  // namespace gpubench::cuda
