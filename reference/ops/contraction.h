// Rule G for units that multiply matrices: gemm, convolution, the products of attention.
//
// sum_error_bound.h is about sums whose every addition is rounded to nearest. Tensor cores add a block of products at
// once and cut off what lies below a fixed number of bits, so that errors point one way and grow with K itself; they
// may round what they multiply (tf32), keep fewer bits than f32 (8-bit types), and a split sum may pass through the
// output's type.
//     T = u M (2 sqrt(K) + beta K / block) + inputs + split,  M = max(|C| + Q, 2 S)
// Each term is derived where it is computed. What a unit does is in part measured by others and in part emulated
// (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ CS 7:e330, 2021; the
// bit-accurate model of Xie et al., "MMA-Sim", arXiv 2511.10909). Where generations differ the loosest from sm_80 on is
// taken: a case's bound is the same on every machine. Processors, which round each sum, use less of it.
#pragma once

#include <string>
#include <string_view>

#include "harness/core/recipe.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {

/// How far a sum of products may lie from the exact one, by what multiplies and what adds.
struct ContractionRule {
  double u = 0x1p-24;    ///< half a unit in the last place of the register that sums are kept in
  int block = 0;         ///< products that are added at once, cut off, not rounded; 0: one by one, rounded to nearest
  double beta = 0.0;     ///< what one such step loses, in u of the final sum
  int chunk = 0;         ///< products after which the register is emptied into an f32 sum; 0: never
  double inputs = 0.0;   ///< spacing of the type that inputs are cut or rounded to, relative; 0: read as they are
  double split_u = 0.0;  ///< unit roundoff of the type that partial sums are stored in; 0: they are not
  double least = 0.0;    ///< smallest normal number of the accumulator: below it the spacing stays the same
  double split_least = 0.0;  ///< the same of the type that partial sums are stored in

  /// T of a sum of K = sum.terms products.
  [[nodiscard]] double bound(const ProductSum& sum) const;
  /// bound() in words; `terms` is K, as a number or a letter: "2 u sqrt(768) max(|C| + Q, 2 S)".
  [[nodiscard]] std::string formula(std::string_view terms) const;
  [[nodiscard]] std::string formula(std::int64_t terms) const { return formula(std::to_string(terms)); }
};

/// The rule for products of elements of types `a` and `b` under `math`, whose sum is stored as `out`.
[[nodiscard]] ContractionRule contraction_rule(const Math& math, DType a, DType b, DType out);

}  // namespace gpubench
