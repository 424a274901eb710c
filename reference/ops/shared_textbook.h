// What textbooks share: parts of an op that others are made of, with their bounds.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/ops/definition.h"
#include "reference/ops/pointwise.h"

namespace gpubench {

// GELU: values, slopes and error bounds, for the op itself and for the epilogues of gemm.

/// gelu(x), and how far arithmetic of unit roundoff `u` may be off: six ulps of the result, three of the input, and the
/// cancellation of 1 + tanh. `tanh_error`: what the tanh itself may be off by beyond that, relative to its value.
[[nodiscard]] Expected gelu_value(GeluForm form, double x, double u, double tanh_error = 0.0);
/// gelu'(x) and its bound.
[[nodiscard]] Expected gelu_slope(GeluForm form, double x, double u, double tanh_error = 0.0);

/// What `math` declares of the tanh: 2^-11 with Math::approximate_tanh, the largest relative error that the PTX manual
/// gives for tanh.approx.f32; else 0.
[[nodiscard]] double tanh_error_of(const Math& math);

/// The bounds of both in words, for OpDefinition::bound(); `x` names the argument, y is gelu of it.
[[nodiscard]] std::string gelu_value_text(GeluForm form, const std::string& x, const Math& math);
[[nodiscard]] std::string gelu_slope_text(GeluForm form, const std::string& x, const Math& math);

// A row's softmax with its bound, for ops that are made of it.
//
// With D_i = m - x_i >= 0: the difference and the product with log2(e) within exp cost u 2 D_i, and exp three ulps
// (OpenCL's table), 6 u. These errors of all terms reach y_i through the sum, weighted by y_j; adding n positive terms
// costs 2 u sqrt(n), and a quotient, or a product with a rounded reciprocal, 2 u:
//     T_i = y_i u (2 D_i + 6 + sum y_j (2 D_j + 6) + 2 sqrt(n) + 2) + t
// t, the smallest normal number, is what an exp may flush.

/// u (2 D + 6), a term's relative error; D as above.
[[nodiscard]] inline double exp_error(double distance, double u) { return u * (2.0 * distance + 6.0); }

/// One element per element of x. `tiny`: t above.
void judge_softmax(std::span<const double> x, double u, double tiny, std::span<Expected> y);

/// The rule in words, for rows of n elements.
[[nodiscard]] std::string softmax_rule(std::int64_t n, const Math& math);

// Batch norm of statistics that were not taken of x but summed up where x was made, for ops that do both.

/// Judges an output of `norm`, a batch_norm_forward or batch_norm_relu_forward whose statistics are made of the sums of
/// x's elements and of their squares, each taken before or after the element was rounded to `stored`.
void judge_batch_norm_of_sums(const Operands& norm, DType stored, int output, std::span<const std::int64_t> wanted,
                              std::span<Expected> judged);
/// The rule behind that bound, as OpDefinition::bound().
[[nodiscard]] std::string batch_norm_of_sums_bound(const CallSpecs& norm, int output);

// The random numbers of dropout, for the test that compares them with published ones.

/// Philox4x32-10 (Salmon et al., SC 2011).
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                                         std::array<std::uint32_t, 2> key);

}  // namespace gpubench
