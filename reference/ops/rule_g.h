// Rule G: the error bound of everything that sums products (gemm, conv, reductions).
//
// With C the exact sum, Q = sqrt(sum of squared products) and K products accumulated with unit roundoff u:
//     T = u (|C| + Q) lambda sqrt(K),  lambda = 2
// Rounding errors are u |partial sum|; for zero-mean data partial sums are about Q, for one-signed data about |C|, and
// independent errors grow as sqrt(K): Higham and Mary, SIAM J. Sci. Comput. 41 (2019); Ipsen and Zhou, arXiv
// 1906.10465. lambda = 2 is eight standard deviations for correct arithmetic, and still sees one dropped product in
// thousands.
#pragma once

#include <cmath>

#include "harness/core/recipe.h"

namespace gpubench {

/// A sum of products in fp64, with what Rule G needs to know about its terms.
struct ProductSum {
  double value = 0.0;
  double squares = 0.0;
  double terms = 0.0;

  void add(double product) {
    value += product;
    squares += product * product;
    terms += 1.0;
  }
};

/// T of the rule above for accumulation with unit roundoff `u`.
[[nodiscard]] inline double rule_g(const ProductSum& sum, double u) {
  return 2.0 * u * std::sqrt(sum.terms) * (std::fabs(sum.value) + std::sqrt(sum.squares));
}

/// Unit roundoff of the accumulator that `math` promises.
[[nodiscard]] inline double accumulator_roundoff(const Math& math) { return unit_roundoff(math.accumulate); }

}  // namespace gpubench
