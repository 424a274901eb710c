// A row's softmax with its bound, for ops that are made of it.
//
// With D_i = m - x_i >= 0: the difference and the product with log2(e) within exp cost u 2 D_i, and exp three ulps
// (OpenCL's table), 6 u. These errors of all terms reach y_i through the sum, weighted by y_j; adding n positive terms
// costs 2 u sqrt(n), and a quotient, or a product with a rounded reciprocal, 2 u:
//     T_i = y_i u (2 D_i + 6 + sum y_j (2 D_j + 6) + 2 sqrt(n) + 2) + t
// t, the smallest normal number, is what an exp may flush.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reference/ops/definition.h"

namespace gpubench {

/// u (2 D + 6), a term's relative error; D as above.
[[nodiscard]] inline double exp_error(double distance, double u) { return u * (2.0 * distance + 6.0); }

/// One element per element of x. `tiny`: t above.
void judge_softmax(std::span<const double> x, double u, double tiny, std::span<Expected> y);

/// The rule in words, for rows of n elements.
[[nodiscard]] std::string softmax_rule(std::int64_t n, const Math& math);

}  // namespace gpubench
