// Rule G, the error bound of sums of products (gemm, conv, reductions).
//
// K products p_1 ... p_K are added with unit roundoff u. C is their exact sum, Q = sqrt(sum p^2), d_k the largest size
// of a sum of neighbours that ends at k, |p_i + ... + p_k| over all i, and S = sqrt(sum d_k^2 / K):
//     T = 2 u sqrt(K) M,  M = max(|C| + Q, 2 S)
//
// Reason. In any order, each addition with result s is rounded by at most u |s|, and each product that is not fused
// into its addition by u |p|. Premise 1: these roundings are independent and about uniform (Higham and Mary, SIAM J.
// Sci. Comput. 41, 2019; Ipsen and Zhou, arXiv 1906.10465). The error then has a variance of
//     sigma^2 <= u^2 / 3 (sum of all s^2 + Q^2)
// - In order of k, and in blocks of neighbours (cache blocks, split-K, a thread's share) added in order, s is a sum of
//   neighbours that ends at k: sigma^2 <= u^2 K S^2 / 3, and Q^2 / K more if products are rounded. T is at least
//   4 u sqrt(K) S, sqrt(48) = 6.9 standard deviations, which a sum of independent uniform variables exceeds with
//   probability 2 exp(-6.9^2 / 2) = 8e-11 at most. That is for mantissas just above 1; averaged over mantissas sigma is
//   0.74 of it, and T 9.4 deviations.
// - As a tree of halves, s are sums of mostly few neighbours.
// - Interleaved (vector lanes, every n-th row per thread), premise 2: drift along k is the same in every lane. One of
//   n lanes then has 1/n of the drift and a random walk of at most Q / sqrt(n): less than in order.
// - In random order, partial sums walk to C with steps of Q / sqrt(K), which |C| + Q covers.
// S covers terms that drift along k and then cancel: sums over tokens or rows in gradients of linear layers and norms,
// whose partial sums reach several Q while C stays small. Prefix sums alone would not: where K is split between
// sequences of 64 tokens that drift apart, the second half's sums are twice as large (observed: 128 tokens, oneDNN on
// AVX2). Without drift, |C| + Q is the larger for more than half of all sums, and M is 1.12 of it on average; for terms
// of one sign, 2 S is up to 1.15 |C|.
//
// Outside of the premises: equal terms in a long sum, whose roundings all point one way, and terms whose sign changes
// with the period of the lanes. No workload has either; sums of exact data are not rounded.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/recipe.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// A number rounded to `type` on the way to a result: the middle of the possible range, and half its width.
[[nodiscard]] inline Expected rounded_to(DType type, const Expected& exact) {
  const double low = round_to(type, exact.value - exact.bound), high = round_to(type, exact.value + exact.bound);
  return low == high ? Expected{low, 0.0} : Expected{0.5 * (low + high), 0.5 * (high - low)};
}

struct ProductSum {
  double value = 0.0;
  double squares = 0.0;     ///< Q^2
  double neighbours = 0.0;  ///< K S^2: squares, summed over k, of the largest sum of neighbours that ends at k
  double terms = 0.0;       ///< K
  double lowest = 0.0;      ///< smallest prefix sum, the empty one included
  double highest = 0.0;

  /// Call in the order of k, which defines neighbours.
  void add(double product) {
    value += product;
    squares += product * product;
    terms += 1.0;
    reach(1.0);
  }
  /// Counts the largest sum of neighbours that ends here `count` times.
  void reach(double count) {
    const double largest = std::max(value - lowest, highest - value);
    neighbours += count * largest * largest;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
};

/// M of Rule G.
[[nodiscard]] inline double partial_sum_size(const ProductSum& sum) {
  const double root_mean_square = sum.terms > 0.0 ? std::sqrt(sum.neighbours / sum.terms) : 0.0;
  return std::max(std::fabs(sum.value) + std::sqrt(sum.squares), 2.0 * root_mean_square);
}

/// T of Rule G.
[[nodiscard]] inline double sum_error_bound(const ProductSum& sum, double u) {
  return 2.0 * u * std::sqrt(sum.terms) * partial_sum_size(sum);
}

/// Error bound of a variance, the mean of n squared deviations from a mean off by at most `mean_error`: 2 u sqrt(n)
/// from the sum, and mean_error^2. A running mean, as in Welford's method and Chan's merging (Chan, Golub, LeVeque
/// 1983), is rounded by u |mean| against deviations of either sign: 4 u |mean| sqrt(variance) covers any n.
[[nodiscard]] inline double variance_error_bound(double n, double mean, double mean_error, double variance, double u) {
  return 2.0 * u * std::sqrt(n) * variance + 4.0 * u * std::fabs(mean) * std::sqrt(variance) + mean_error * mean_error;
}

/// A sum of stored numbers that may have been added up before rounding to their type, of unit roundoff u. Rounding
/// moves a number r by at most e = u |r|, about uniformly, with standard deviation e / sqrt(3). The sum may move by six
/// standard deviations, but never by more than the sum of e.
class StoredSum {
 public:
  StoredSum() = default;
  /// `sums`: the type of the computation; no rounding if `stored` is not narrower.
  StoredSum(DType stored, DType sums)
      : u_(unit_roundoff(stored) > unit_roundoff(sums) ? unit_roundoff(stored) : 0.0), min_(smallest_normal(stored)) {}

  void add(double number, double factor = 1.0) {
    sum_.add(number * factor);
    // Below least_ the spacing is constant.
    const double moved = u_ * std::max(std::fabs(number), min_) * std::fabs(factor);
    max_ += moved;
    squares_ += moved * moved;
  }
  [[nodiscard]] const ProductSum& sum() const { return sum_; }
  [[nodiscard]] double moved() const { return std::min(max_, 6.0 * std::sqrt(squares_ / 3.0)); }

 private:
  double u_ = 0.0, min_ = 0.0;
  ProductSum sum_;
  double max_ = 0.0;
  double squares_ = 0.0;
};

[[nodiscard]] inline double accumulator_roundoff(const Math& math) { return unit_roundoff(math.accumulate); }

/// Sum of a[i] b[i], one term per element. Adds eight products at a time, for vector registers; the order depends only
/// on the length, so that results are reproducible. Beyond 64 products, sums of neighbours are taken at every eighth
/// one; in between they move by sqrt(8) times the eight products' Q at most.
[[nodiscard]] inline ProductSum dot(std::span<const double> a, std::span<const double> b) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> product{};
  std::array<double, lanes> squares{};
  const std::size_t whole = a.size() <= 64 ? 0 : a.size() - a.size() % lanes;
  ProductSum sum;
  for (std::size_t k = 0; k < whole; k += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      product[lane] = a[k + lane] * b[k + lane];
      squares[lane] += product[lane] * product[lane];
    }
    sum.value += ((product[0] + product[1]) + (product[2] + product[3])) +
                 ((product[4] + product[5]) + (product[6] + product[7]));
    sum.reach(static_cast<double>(lanes));
  }
  for (const double of_lane : squares) sum.squares += of_lane;
  for (std::size_t k = whole; k < a.size(); ++k) sum.add(a[k] * b[k]);
  sum.terms = static_cast<double>(a.size());
  return sum;
}

/// dot() for judging results that were summed in fp64: sums in long double, whose 64 bits (x86) leave an error far
/// below the bound.
[[nodiscard]] inline ProductSum wide_dot(std::span<const double> a, std::span<const double> b) {
  ProductSum sum;
  long double value = 0.0L;
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum.add(a[k] * b[k]);
    value += static_cast<long double>(a[k]) * static_cast<long double>(b[k]);
  }
  sum.value = static_cast<double>(value);
  return sum;
}

/// wide_dot() if the arithmetic accumulates in f64, else dot().
[[nodiscard]] inline ProductSum product_sum(const Math& math, std::span<const double> a, std::span<const double> b) {
  return math.accumulate == DType::f64 ? wide_dot(a, b) : dot(a, b);
}

inline constexpr std::string_view exact_bound = "exact, bitwise";

inline constexpr std::string_view partial_sum_text = "max(|C| + Q, 2 S)";

/// Whether multiplying by it, or its negative, is exact.
[[nodiscard]] bool is_power_of_two(double value);

/// At most six digits: "0.125", "1e-08".
[[nodiscard]] std::string number_text(double value);
/// "2^-24"; "0" for 0.
[[nodiscard]] std::string power_text(double power_of_two);
/// The smallest normal number of the arithmetic, below which results may be flushed: "2^-126".
[[nodiscard]] std::string flushed_text(const Math& math);
/// `rule` with the value of its u: "u |y|, u = 2^-24".
[[nodiscard]] std::string bound_text(std::string rule, const Math& math);
/// "2 u sqrt(768) max(|C| + Q, 2 S)" for 768 terms.
[[nodiscard]] std::string sum_error_text(std::int64_t terms);
/// For elements that are all sums of `terms` terms: "Rule G: 2 u sqrt(768) max(|C| + Q, 2 S), u = 2^-24".
[[nodiscard]] std::string sum_error_bound_text(std::int64_t terms, const Math& math);
/// For elements that differ in their terms; `terms` describes K: "Rule G: 2 u sqrt(K) max(|C| + Q, 2 S), K <= 147, u =
/// 2^-24".
[[nodiscard]] std::string sum_error_bound_text(std::string_view terms, const Math& math);
/// Error from rounding a factor to the arithmetic type: " + 2.9e-09 |x|"; empty if 0.
[[nodiscard]] std::string lost_factor_text(double lost, std::string_view operand);

// Rule G for matrix units: gemm, convolution, products of attention.
//
// Tensor cores add a block of products at once and truncate below a fixed number of bits, so errors point one way and
// grow with K. They may round their inputs (tf32), keep fewer bits than f32 (8-bit types), and pass a split sum through
// the output's type:
//     T = u M (2 sqrt(K) + beta K / block) + inputs + split,  M = max(|C| + Q, 2 S)
// Each term is derived where it is computed. Sources: measurements (Fasi, Higham, Mikaitis, Pranesh, "Numerical
// behavior of NVIDIA tensor cores", PeerJ CS 7:e330, 2021) and a bit-accurate model (Xie et al., "MMA-Sim", arXiv
// 2511.10909). The loosest generation from sm_80 on counts, so that a case's bound is the same on every machine.
// Processors, which round each sum, use less of it.

struct ContractionRule {
  double u = 0x1p-24;        ///< half a unit in the last place of the accumulator
  int block = 0;             ///< products added at once and truncated; 0: one by one, rounded to nearest
  double beta = 0.0;         ///< loss of one such step, in u of the final sum
  int chunk = 0;             ///< products after which the accumulator is added to an f32 sum; 0: never
  double inputs = 0.0;       ///< relative spacing of the type that inputs are truncated or rounded to; 0: unchanged
  double split_u = 0.0;      ///< unit roundoff of the type of stored partial sums; 0: none are stored
  double least = 0.0;        ///< smallest normal number of the accumulator, below which spacing is constant
  double split_least = 0.0;  ///< the same for stored partial sums

  /// T of a sum of K = sum.terms products.
  [[nodiscard]] double bound(const ProductSum& sum) const;
  /// bound() in words; `terms` is K, a number or a letter: "2 u sqrt(768) max(|C| + Q, 2 S)".
  [[nodiscard]] std::string formula(std::string_view terms) const;
  [[nodiscard]] std::string formula(std::int64_t terms) const { return formula(std::to_string(terms)); }
};

inline constexpr ContractionRule exact_sums_rule{.u = 0.0};

/// The rule for products of types `a` and `b` whose sum is stored as `out`. `blocks`: products of elements scaled in
/// blocks along k.
[[nodiscard]] ContractionRule contraction_rule(const Math& math, DType a, DType b, DType out, bool blocks = false);
/// For an op that multiplies its first two inputs; exact_sums_rule for operands whose sums are exact.
[[nodiscard]] ContractionRule contraction_rule(const CallSpecs& op, bool blocks = false);
[[nodiscard]] ContractionRule contraction_rule(const Operands& operands, bool blocks = false);

}  // namespace gpubench
