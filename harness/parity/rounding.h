// Fast rounding of fp64 to a storage type, for every element of fills and checks. Equal to round_to() and store() of
// harness/core/dtype.h (a test compares them).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "harness/core/dtype.h"

namespace gpubench {

[[nodiscard]] inline bool well_inside_f32(double value) {
  const std::uint64_t exponent = (std::bit_cast<std::uint64_t>(value) >> 52U) & 0x7ffU;
  return exponent - (1023U - 126U) < 126U + 127U || value == 0.0;
}

/// round_to(DType::bf16, value) for a `value` that is well_inside_f32().
[[nodiscard]] inline double round_to_bf16(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t odd = (bits >> 45U) & 1U;  // bf16 drops 45 of fp64's 52 fraction bits
  return std::bit_cast<double>((bits + 0x0fffffffffffULL + odd) & ~0x1fffffffffffULL);
}

[[nodiscard]] inline double rounded(DType type, double value) {
  if (type == DType::f32) return static_cast<double>(static_cast<float>(value));
  if (type == DType::bf16 && well_inside_f32(value)) return round_to_bf16(value);
  return round_to(type, value);
}

/// Rounded to nearest with `bits` significant bits, for any exponent.
[[nodiscard]] inline double with_bits(int bits, double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::isfinite(value) ? std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits) : value;
}

/// The largest number of the type, by magnitude, not beyond the value.
[[nodiscard]] inline double toward_zero(DType type, double value) {
  std::array<std::byte, sizeof(double)> stored{};
  store(type, stored.data(), value);
  if (std::fabs(load(type, stored.data())) > std::fabs(value))
    store_bits(type, stored.data(), 0, load_bits(type, stored.data()) - 1);
  return load(type, stored.data());
}

class HalfUlp {
 public:
  explicit HalfUlp(DType type) : smallest_(smallest_normal(type)), unit_(unit_roundoff(type)) {}
  [[nodiscard]] double operator()(double value) const {
    if (!(unit_ > 0.0)) return 0.5;  // integers
    const std::uint64_t exponent_mask = 0x7ff0000000000000ULL;
    const std::uint64_t exponent = std::bit_cast<std::uint64_t>(value) & exponent_mask;
    if (exponent == exponent_mask) return 0.0;                                         // not a finite number
    const double half = std::max(std::bit_cast<double>(exponent), smallest_) * unit_;  // the power is 0 for subnormals
    return std::max(half, std::numeric_limits<double>::denorm_min());  // half of fp64's smallest step underflows
  }

 private:
  double smallest_;
  double unit_;
};
[[nodiscard]] inline double half_ulp(DType type, double value) { return HalfUlp(type)(value); }

}  // namespace gpubench
