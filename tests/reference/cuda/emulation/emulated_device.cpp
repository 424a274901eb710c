#include "tests/reference/cuda/emulation/emulated_device.h"

#include <algorithm>
#include <limits>

#include "tests/reference/ops/tensor_core.h"

gpubench::cuda::emulation::Dimensions threadIdx, blockIdx, blockDim, gridDim;

namespace gpubench::cuda::emulation {
namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float number(std::uint32_t x) { return std::bit_cast<float>(x); }

// If x is not a float, the neighbouring float with an odd last bit: rounding it to 16 bits then gives the right result.
float rounded_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  if (!(static_cast<double>(nearest) != x) || std::isnan(x) || (bits(nearest) & 1U) != 0) return nearest;
  const bool below = std::fabs(static_cast<double>(nearest)) < std::fabs(x);
  return number(below ? bits(nearest) + 1 : bits(nearest) - 1);
}

}  // namespace

float tensor_core_sum_of_16(float old, const double* a, const double* b) {
  return static_cast<float>(testing::block_step(testing::hopper_16_bit, old, {a, 16}, {b, 16}));
}

int lane() { return static_cast<int>(threadIdx.x % 32U); }

float within(float ulps, float value) {
  if (!std::isfinite(value) || value == 0.0F) return value;
  const std::uint32_t hash = (bits(value) * 2654435761U) >> 8U;  // 24 bits
  const float share = static_cast<float>(hash) * 0x1p-23F - 1.0F;
  const float ulp = std::nextafter(std::fabs(value), std::numeric_limits<float>::infinity()) - std::fabs(value);
  return value + ulps * share * ulp;
}

double within(double ulps, double value) {
  if (!std::isfinite(value) || value == 0.0) return value;
  const std::uint64_t hash = (std::bit_cast<std::uint64_t>(value) * 0x9E3779B97F4A7C15U) >> 11U;  // 53 bits
  const double share = static_cast<double>(hash) * 0x1p-52 - 1.0;
  const double ulp = std::nextafter(std::fabs(value), std::numeric_limits<double>::infinity()) - std::fabs(value);
  return value + ulps * share * ulp;
}

// NaN becomes the conversion instruction's NaN.
std::uint16_t bf16_bits(float x) {
  if (std::isnan(x)) return 0x7FFF;
  return static_cast<std::uint16_t>((bits(x) + 0x7FFFU + (bits(x) >> 16U & 1U)) >> 16U);
}

std::uint16_t f16_bits(float x) {
  if (std::isnan(x)) return 0x7FFF;
  const std::uint32_t sign = bits(x) >> 16U & 0x8000U;
  const std::uint32_t magnitude = bits(x) & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude >= 0x477FF000U) {  // 65520, halfway beyond the largest
    half = 0x7C00U;
  } else if (magnitude < 0x38800000U) {  // subnormal: multiples of 2^-24, the last bit of 0.5
    half = bits(number(magnitude) + 0.5F) - 0x3F000000U;
  } else {
    half = (magnitude + 0xFFFU + (magnitude >> 13U & 1U) - 0x38000000U) >> 13U;
  }
  return static_cast<std::uint16_t>(sign | half);
}

std::uint16_t bf16_bits(double x) { return bf16_bits(rounded_to_odd(x)); }
std::uint16_t f16_bits(double x) { return f16_bits(rounded_to_odd(x)); }

namespace {

// An 8-bit format with `bias` and `fraction` bits; larger values become `largest`.
std::uint8_t eight_bits(float x, int bias, int fraction, std::uint8_t largest) {
  const std::uint32_t sign = bits(x) >> 24U & 0x80U;
  if (std::isnan(x)) return static_cast<std::uint8_t>(sign | 0x7FU);
  const float magnitude = std::fabs(x);
  std::uint32_t code = 0;
  const int exponent = magnitude == 0.0F ? -bias : std::max(std::ilogb(magnitude), 1 - bias);
  if (exponent > bias + 1 || std::isinf(magnitude)) return static_cast<std::uint8_t>(sign | largest);
  if (magnitude > 0.0F) {
    // In units of the last bit; a carry out of the fraction increments the exponent.
    const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, fraction - exponent)));
    code = (static_cast<std::uint32_t>(exponent + bias - 1) << static_cast<unsigned>(fraction)) + steps;
  }
  return static_cast<std::uint8_t>(sign | std::min<std::uint32_t>(code, largest));
}

}  // namespace

std::uint8_t e4m3_bits(float x, bool saturate) { return eight_bits(x, 7, 3, saturate ? 0x7E : 0x7F); }
std::uint8_t e5m2_bits(float x, bool saturate) { return eight_bits(x, 15, 2, saturate ? 0x7B : 0x7C); }

float float_of_bf16(std::uint16_t x) { return number(static_cast<std::uint32_t>(x) << 16U); }

float float_of_f16(std::uint16_t x) {
  const std::uint32_t sign = (x & 0x8000U) << 16U;
  const std::uint32_t exponent = x >> 10U & 0x1FU;
  const std::uint32_t fraction = x & 0x3FFU;
  if (exponent == 0) return number(sign | bits(static_cast<float>(fraction) * 0x1p-24F));
  if (exponent == 31) return number(sign | 0x7F800000U | fraction << 13U);
  return number(sign | ((exponent + 112U) << 23U) | fraction << 13U);
}

}  // namespace gpubench::cuda::emulation
