// bf16 as kernels read and write it: the upper half of an f32, rounded to nearest, ties to even, NaN kept.
#pragma once

#include <bit>
#include <cstdint>

namespace gpubench::cpu {

/// One stored bf16 number. A type of its own, so that kernels are templates over {float, bf16}.
struct bf16 {
  std::uint16_t bits;
};

inline float widen(float value) { return value; }
inline float widen(bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U); }

template <class T>
T narrow(float value);
template <>
inline float narrow<float>(float value) {
  return value;
}
/// Without branches, so that loops over it become vector code.
template <>
inline bf16 narrow<bf16>(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  const std::uint32_t quiet_nan = (bits >> 16U) | 0x40U;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded)};
}

}  // namespace gpubench::cpu
