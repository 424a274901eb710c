// The error bound of everything that sums products (gemm, conv, reductions), called Rule G.
//
// K products p_1 ... p_K are added with unit roundoff u. C is their exact sum, Q = sqrt(sum p^2), d_k the largest size
// of a sum of neighbours that ends at k, |p_i + ... + p_k| over all i, and S = sqrt(sum d_k^2 / K):
//     T = 2 u sqrt(K) M,  M = max(|C| + Q, 2 S)
//
// Why. Whatever the order, each addition is rounded by at most u |s|, s being its result, and each product that is not
// fused into its addition by u |p|. Premise 1: these roundings are independent, each as good as uniform (Higham and
// Mary, SIAM J. Sci. Comput. 41, 2019; Ipsen and Zhou, arXiv 1906.10465). Then the error is the sum of independent
// variables of standard deviation u |s| / sqrt(3) at most, and
//     sigma^2 <= u^2 / 3 (sum of all s^2 + Q^2)
// - In order of k, and in blocks of neighbours (cache blocks, split-K, a thread's share) whose sums are then added in
//   order, s is a sum of neighbours that ends at k: sigma^2 <= u^2 K S^2 / 3, and more by Q^2 / K where products are
//   rounded. T is at least 4 u sqrt(K) S, which is sqrt(48) = 6.9 standard deviations: a sum of independent uniform
//   variables exceeds it with a probability of at most 2 exp(-6.9^2 / 2) = 8e-11. That is for mantissas all just above
//   1. Rounding is relative to the power of two below s: over all mantissas sigma is 0.74 of it, and T 9.4 deviations.
// - As a tree of halves, s are sums of neighbours too, most of them of few.
// - Interleaved (vector lanes, every n-th row to one thread), premise 2: drift along k is the same in every
//   lane. Then a lane of n has 1/n of the drift and a random walk of at most Q / sqrt(n): less than in order.
// - In random order, partial sums are a random walk to C with steps of Q / sqrt(K), which |C| + Q covers.
// S is what |C| + Q misses where terms drift along k and then cancel: sums over tokens or rows in the gradients of
// linear layers and norms, whose partial sums reach several Q while C stays small. Partial sums in order of k are not
// enough for that: where sequences of 64 tokens drift apart, and K is split between them, the second half's are twice
// as large as those in order (observed: 128 tokens, oneDNN on AVX2).
// Where terms do not drift, |C| + Q is the larger one for more than half of all sums, and M is 1.12 of it on average;
// where they have one sign, 2 S is up to 1.15 |C|.
//
// Outside of the premises: equal terms in a long sum, whose roundings all point one way, and terms whose sign changes
// with the period of the lanes. No workload has either; exact data has sums that are not rounded at all.
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

/// A number that is rounded to `type` on the way to a result: the middle of what it may become, and half the width.
[[nodiscard]] inline Expected rounded_to(DType type, const Expected& exact) {
  const double low = round_to(type, exact.value - exact.bound), high = round_to(type, exact.value + exact.bound);
  return low == high ? Expected{low, 0.0} : Expected{0.5 * (low + high), 0.5 * (high - low)};
}

/// A sum of products in fp64, with what its error bound needs to know about its terms.
struct ProductSum {
  double value = 0.0;
  double squares = 0.0;     ///< Q^2
  double neighbours = 0.0;  ///< K S^2: the largest sum of neighbours that ends at k, squared and summed over k
  double terms = 0.0;       ///< K
  double lowest = 0.0;      ///< of the sums of the first k terms, none of them included
  double highest = 0.0;

  /// Terms are to be added in the order of k: that is what neighbours are about.
  void add(double product) {
    value += product;
    squares += product * product;
    terms += 1.0;
    reach(1.0);
  }
  /// Counts the largest sum of neighbours that ends here for `count` terms.
  void reach(double count) {
    const double largest = std::max(value - lowest, highest - value);
    neighbours += count * largest * largest;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
};

/// M of the rule above: the size of a partial sum.
[[nodiscard]] inline double partial_sum_size(const ProductSum& sum) {
  const double root_mean_square = sum.terms > 0.0 ? std::sqrt(sum.neighbours / sum.terms) : 0.0;
  return std::max(std::fabs(sum.value) + std::sqrt(sum.squares), 2.0 * root_mean_square);
}

/// T of the rule above for accumulation with unit roundoff `u`.
[[nodiscard]] inline double sum_error_bound(const ProductSum& sum, double u) {
  return 2.0 * u * std::sqrt(sum.terms) * partial_sum_size(sum);
}

/// How far a variance, the mean of n squared deviations, may be off where the mean may be off by `mean_error`: its sum
/// by 2 u sqrt(n), and by the error of what deviations are taken from. Where that is one mean, squared; where it moves
/// along, as in Welford's method and in Chan's of merging parts (Chan, Golub, LeVeque 1983), its roundings, u |mean|
/// each, meet deviations of either sign: 4 u |mean| sqrt(variance) leaves room for them at any n.
[[nodiscard]] inline double variance_error_bound(double n, double mean, double mean_error, double variance, double u) {
  return 2.0 * u * std::sqrt(n) * variance + 4.0 * u * std::fabs(mean) * std::sqrt(variance) + mean_error * mean_error;
}

/// A sum of numbers as stored, which may have been added up before they were rounded to their type. What rounding moved
/// a number r by is at most e = u |r|, u being its type's unit roundoff, and as good as uniform: its standard deviation
/// is e / sqrt(3). The sum may have moved by six standard deviations, and never by more than the sum of e.
class StoredSum {
 public:
  /// Of numbers that were not rounded.
  StoredSum() = default;
  /// `sums`: the type that they were computed in, whose numbers are rounded no more if `stored` is no narrower.
  StoredSum(DType stored, DType sums)
      : u_(unit_roundoff(stored) > unit_roundoff(sums) ? unit_roundoff(stored) : 0.0),
        least_(smallest_normal(stored)) {}

  void add(double number, double factor = 1.0) {
    sum_.add(number * factor);
    // Below least_ the spacing stays the same.
    const double moved = u_ * std::max(std::fabs(number), least_) * std::fabs(factor);
    most_ += moved;
    squares_ += moved * moved;
  }
  [[nodiscard]] const ProductSum& sum() const { return sum_; }
  [[nodiscard]] double moved() const { return std::min(most_, 6.0 * std::sqrt(squares_ / 3.0)); }

 private:
  double u_ = 0.0, least_ = 0.0;
  ProductSum sum_;
  double most_ = 0.0;
  double squares_ = 0.0;
};

/// Unit roundoff of the accumulator that `math` promises.
[[nodiscard]] inline double accumulator_roundoff(const Math& math) { return unit_roundoff(math.accumulate); }

// The inner loop of contractions in the textbook.

/// Sum of a[i] b[i] and of their squares, with one term per element. Eight products at a time, so that the compiler can
/// use vector registers; the order depends on the length only, so that a unit always has the same value. In sums of
/// more than 64 products the sums of neighbours are taken at every eighth one only; in between they move by sqrt(8) of
/// the eight products' Q at most.
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

/// The same where what is judged was itself summed in fp64: the value is summed in long double, whose 64 bits (x86)
/// leave an error far below the bound.
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

/// wide_dot() where the arithmetic accumulates in f64, else dot().
[[nodiscard]] inline ProductSum product_sum(const Math& math, std::span<const double> a, std::span<const double> b) {
  return math.accumulate == DType::f64 ? wide_dot(a, b) : dot(a, b);
}

// The rules above in words, for OpDefinition::bound().

/// The bound of outputs that only select elements of their inputs.
inline constexpr std::string_view exact_bound = "exact, bitwise";

/// M of Rule G: the size of a partial sum.
inline constexpr std::string_view partial_sum_text = "max(|C| + Q, 2 S)";

/// Whether multiplying by it rounds nothing; of either sign.
[[nodiscard]] bool is_power_of_two(double value);

/// Six digits at most: "0.125", "1e-08".
[[nodiscard]] std::string number_text(double value);
/// "2^-24"; "0" for 0.
[[nodiscard]] std::string power_text(double power_of_two);
/// The smallest normal number of the arithmetic, which results below it may lose to a flush: "2^-126".
[[nodiscard]] std::string flushed_text(const Math& math);
/// `rule`, and the number that its u stands for: "u |y|, u = 2^-24".
[[nodiscard]] std::string bound_text(std::string rule, const Math& math);
/// "2 u sqrt(768) max(|C| + Q, 2 S)" for a sum of 768 terms.
[[nodiscard]] std::string sum_error_text(std::int64_t terms);
/// Of a sum whose every element has `terms` terms: "Rule G: 2 u sqrt(768) max(|C| + Q, 2 S), u = 2^-24".
[[nodiscard]] std::string sum_error_bound_text(std::int64_t terms, const Math& math);
/// Of a sum whose elements differ in their number of terms: "Rule G: 2 u sqrt(K) max(|C| + Q, 2 S), K <= 147, u =
/// 2^-24", where `terms` describes K.
[[nodiscard]] std::string sum_error_bound_text(std::string_view terms, const Math& math);
/// " + 2.9e-09 |x|": what a factor loses when it is rounded to the arithmetic type; empty for nothing.
[[nodiscard]] std::string lost_factor_text(double lost, std::string_view operand);

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

/// How far a sum of products may be from the exact one, by what multiplies and what adds.
struct ContractionRule {
  double u = 0x1p-24;    ///< half a unit in the last place of the register that sums are kept in
  int block = 0;         ///< products that are added at once, cut off, not rounded; 0: one by one, rounded to nearest
  double beta = 0.0;     ///< what one such step loses, in u of the final sum
  int chunk = 0;         ///< products after which the register is emptied into an f32 sum; 0: never
  double inputs = 0.0;   ///< spacing of the type that inputs are cut or rounded to, relative; 0: read unchanged
  double split_u = 0.0;  ///< unit roundoff of the type that partial sums are stored in; 0: they are not
  double least = 0.0;    ///< smallest normal number of the accumulator: below it the spacing stays the same
  double split_least = 0.0;  ///< the same of the type that partial sums are stored in

  /// T of a sum of K = sum.terms products.
  [[nodiscard]] double bound(const ProductSum& sum) const;
  /// bound() in words; `terms` is K, as a number or a letter: "2 u sqrt(768) max(|C| + Q, 2 S)".
  [[nodiscard]] std::string formula(std::string_view terms) const;
  [[nodiscard]] std::string formula(std::int64_t terms) const { return formula(std::to_string(terms)); }
};

/// The rule of sums that are exact: a bound of 0.
inline constexpr ContractionRule exact_sums_rule{.u = 0.0};

/// The rule for products of elements of types `a` and `b` under `math`, whose sum is stored as `out`. `blocks`: each
/// block along k has a scale, and the products that are summed are those of scaled elements.
[[nodiscard]] ContractionRule contraction_rule(const Math& math, DType a, DType b, DType out, bool blocks = false);
/// That of an op that multiplies its first two inputs; of operands on which sums are exact, exact_sums_rule.
[[nodiscard]] ContractionRule contraction_rule(const CallSpecs& op, bool blocks = false);
[[nodiscard]] ContractionRule contraction_rule(const Operands& operands, bool blocks = false);

}  // namespace gpubench
