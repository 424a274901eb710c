// Sums of products on tensor cores, emulated in fp64: aligns a block of products and the old sum to the largest of
// them, truncates below the leading bit, adds, and truncates the result to the accumulator's significand.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "harness/core/dtype.h"

namespace gpubench::testing {

/// One generation's adder. Xie et al., "MMA-Sim", arXiv 2511.10909.
struct TensorCore {
  int block, significand, fraction;
};
inline constexpr TensorCore ampere_16_bit{8, 24, 24};
inline constexpr TensorCore ampere_tf32{4, 24, 24};
inline constexpr TensorCore hopper_16_bit{16, 24, 25};
inline constexpr TensorCore hopper_tf32{8, 24, 25};
inline constexpr TensorCore ada_8_bit{16, 14, 13};
inline constexpr TensorCore hopper_8_bit{32, 14, 13};
inline constexpr TensorCore blackwell_8_bit{32, 24, 25};  // also for scaled blocks
inline constexpr TensorCore blackwell_4_bit{64, 24, 35};

inline double cut_to(double value, double unit) { return std::trunc(value / unit) * unit; }

inline double cut_bits(double value, int bits) {
  return value == 0.0 ? 0.0 : cut_to(value, std::exp2(std::ilogb(value) - bits + 1));
}

inline double block_step(const TensorCore& core, double old, std::span<const double> a, std::span<const double> b) {
  double largest = std::fabs(old);
  for (std::size_t k = 0; k < a.size(); ++k) largest = std::max(largest, std::fabs(a[k] * b[k]));
  if (largest == 0.0) return 0.0;
  const double unit = std::exp2(std::ilogb(largest) - core.fraction);
  double sum = cut_to(old, unit);
  for (std::size_t k = 0; k < a.size(); ++k) sum += cut_to(a[k] * b[k], unit);
  return cut_bits(sum, core.significand);
}

/// The sum of a[k] b[k]. `promote_every`: products after which the accumulator is added to an f32 sum; 0: never.
inline double tensor_core_sum(const TensorCore& core, std::span<const double> a, std::span<const double> b,
                              std::size_t promote_every = 0) {
  const auto block = static_cast<std::size_t>(core.block);
  double outer = 0.0;
  double sum = 0.0;
  for (std::size_t k = 0; k < a.size(); k += block) {
    const std::size_t size = std::min(block, a.size() - k);
    sum = block_step(core, sum, a.subspan(k, size), b.subspan(k, size));
    if (promote_every > 0 && (k + size) % promote_every == 0) {
      outer = round_to(DType::f32, outer + sum);
      sum = 0.0;
    }
  }
  return promote_every > 0 ? round_to(DType::f32, outer + sum) : sum;
}

/// The sum, rounded to `type` after each addition.
inline double rounded_sum(DType type, std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) sum = round_to(type, sum + a[k] * b[k]);
  return sum;
}

}  // namespace gpubench::testing
