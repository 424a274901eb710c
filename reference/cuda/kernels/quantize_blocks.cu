// A lane loads 16 bytes; the neighbouring lanes of a block combine their largest magnitudes.
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/quantize.h"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int in_flight = 4;
constexpr std::uint32_t infinity_bits = 0x7F800000U;

/// NaN becomes +6; larger magnitudes become 6 with their sign. Below 1, adding 2^23 rounds to halves.
__device__ __forceinline__ std::uint8_t e2m1_bits(float x) {
  const std::uint32_t magnitude = magnitude_bits(x);
  const std::uint32_t normal = ((magnitude + 0x1FFFFFU + ((magnitude >> 22) & 1U)) >> 22) - (126U << 1);
  const std::uint32_t halves = magnitude_bits(float_of_bits(magnitude) * 2.0F + 0x1p23F) & 0xFFU;
  const std::uint32_t number = magnitude < 0x3F800000U ? halves : normal;
  if (magnitude > infinity_bits) return 7;
  return static_cast<std::uint8_t>((number < 7U ? number : 7U) | bits_of_float(x) >> 31 << 3);
}

__device__ __forceinline__ float e4m3_value(std::uint32_t bits) {
  if (bits < 8U) return static_cast<float>(bits) * 0x1p-9F;
  return float_of_bits(((bits >> 3) + 120U) << 23 | (bits & 7U) << 20);
}

template <BlockType to>
__device__ __forceinline__ std::uint8_t code_of(float x) {
  if (to == BlockType::mxfp8_e4m3) return e4m3_bits(x);
  if (to == BlockType::mxfp8_e5m2) return e5m2_bits(x);
  return e2m1_bits(x);
}

/// A block's stored scale, and the factor and divisor of its elements; reference/ops/quantize.h.
struct BlockScale {
  std::uint8_t stored;
  float factor, divisor;
};

template <BlockType to>
__device__ __forceinline__ BlockScale scale_of(std::uint32_t largest, float tensor_scale, bool covers) {
  if (to == BlockType::nvfp4) {
    if (largest >= infinity_bits) return {0x7F, float_of_bits(0x7FC00000U), 1.0F};
    const std::uint8_t stored = e4m3_bits(float_of_bits(largest) * tensor_scale / 6.0F);
    const float divisor = e4m3_value(stored);
    return divisor == 0.0F ? BlockScale{stored, 0.0F, 1.0F} : BlockScale{stored, tensor_scale, divisor};
  }
  if (largest >= infinity_bits) return {0xFF, float_of_bits(0x7FC00000U), 1.0F};
  // Exponent and fraction of the type's largest number: 1.75 * 2^8, 1.75 * 2^15, 1.5 * 2^2.
  constexpr int of_type = to == BlockType::mxfp8_e4m3 ? 8 : to == BlockType::mxfp8_e5m2 ? 15 : 2;
  constexpr std::uint32_t fraction = to == BlockType::mxfp4 ? 0x400000U : 0x600000U;
  const int above = covers && (largest & 0x7FFFFFU) > fraction ? 1 : 0;
  const int exponent = static_cast<int>(largest >> 23) - of_type + above;
  const int kept = exponent > 0 ? exponent : 0;
  // 2^(127 - kept) is normal: kept is at most 253.
  return {static_cast<std::uint8_t>(kept), float_of_bits(static_cast<std::uint32_t>(254 - kept) << 23), 1.0F};
}

template <class T, BlockType to, bool wide>
__global__ void __launch_bounds__(threads) quantize_blocks_kernel(QuantizeBlocksArgs args) {
  constexpr int n = pack_elements<T>;
  constexpr int lanes = (to == BlockType::nvfp4 ? 16 : 32) / n;
  constexpr bool halves = to == BlockType::mxfp4 || to == BlockType::nvfp4;
  const auto* x = static_cast<const T*>(args.x);
  const float tensor_scale = to == BlockType::nvfp4 ? load(args.scale) : 1.0F;
  const std::int64_t packs = args.elements / n;
  // All lanes of a warp loop equally often, since all take part in the shuffles.
  const std::int64_t warp_first = threadIdx.x / warp_lanes * warp_lanes;
  const std::int64_t lane = threadIdx.x % warp_lanes;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads * in_flight;
  for (std::int64_t start = static_cast<std::int64_t>(blockIdx.x) * threads * in_flight + warp_first; start < packs;
       start += step) {
    Loaded<T, n> loaded[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t pack = start + lane + static_cast<std::int64_t>(k) * threads;
      if (pack >= packs) break;
      if constexpr (wide) {
        loaded[k] = load_pack<n>(x + pack * n);
      } else {
        Pack<T, n> single;
#pragma unroll
        for (int i = 0; i < n; ++i) single.at[i] = load(x + pack * n + i);
        loaded[k] = as_loaded(single);
      }
    }
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t pack = start + lane + static_cast<std::int64_t>(k) * threads;
      const bool there = pack < packs;
      std::uint32_t largest = 0;
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const std::uint32_t magnitude = there ? magnitude_bits(widen(loaded[k][i])) : 0U;
        largest = magnitude > largest ? magnitude : largest;
      }
#pragma unroll
      for (int offset = lanes / 2; offset > 0; offset /= 2) {
        const std::uint32_t other = __shfl_xor_sync(whole_warp, largest, offset);
        largest = other > largest ? other : largest;
      }
      if (!there) continue;
      const BlockScale scale = scale_of<to>(largest, tensor_scale, args.covers);
      std::uint8_t codes[n];
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const float value = widen(loaded[k][i]) * scale.factor;
        codes[i] = code_of<to>(to == BlockType::nvfp4 ? value / scale.divisor : value);
      }
      constexpr int per_byte = halves ? 2 : 1;
      Pack<std::uint8_t, n / per_byte> out;
#pragma unroll
      for (int i = 0; i < n / per_byte; ++i) {
        const int second = halves ? codes[per_byte * i + per_byte - 1] << 4 : 0;
        out.at[i] = static_cast<std::uint8_t>(codes[per_byte * i] | second);
      }
      store_pack(args.values + pack * (n / per_byte), out);
      if (pack % lanes == 0) store(args.scales + pack / lanes, scale.stored);
    }
  }
}

template <class T, BlockType to>
void launch_typed(const QuantizeBlocksArgs& args, cudaStream_t stream) {
  if (packs_fit<T>(args.x, 1, 0, pack_elements<T>)) {
    launch(quantize_blocks_kernel<T, to, true>, Grid{args.blocks, threads}, stream, args);
  } else {
    launch(quantize_blocks_kernel<T, to, false>, Grid{args.blocks, threads}, stream, args);
  }
}

}  // namespace

void launch_quantize_blocks(const QuantizeBlocksArgs& args, cudaStream_t stream) {
  with_float_type(args.from, [&](auto type) {
    using T = typename decltype(type)::type;
    switch (args.to) {
      case BlockType::mxfp8_e4m3: return launch_typed<T, BlockType::mxfp8_e4m3>(args, stream);
      case BlockType::mxfp8_e5m2: return launch_typed<T, BlockType::mxfp8_e5m2>(args, stream);
      case BlockType::mxfp4: return launch_typed<T, BlockType::mxfp4>(args, stream);
      case BlockType::nvfp4: return launch_typed<T, BlockType::nvfp4>(args, stream);
    }
  });
}

}  // namespace gpubench::cuda
