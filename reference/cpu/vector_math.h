// exp, erf and GELU in f32, written so that loops over them vectorize.
//
// No branches, no table look-ups, no library calls: every lane runs the same polynomial arithmetic. The polynomials are
// minimax fits made for this file (weighted least squares in 40 digits, reweighted to equal ripple); beside each is
// its error in units of 2^-24 relative to what it approximates. Accuracy after rounding is asserted by
// vector_math_test.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace gpubench::cpu {

/// x limited to [low, high], low < 0 < high; NaN stays NaN. On the bits: among negative numbers the larger magnitude is
/// the larger unsigned integer, among positive ones the larger signed one. Written with comparisons of x, the compiler
/// would rather split what follows into three cases, and pay for the divisions of each.
[[nodiscard, gnu::always_inline]] inline float vector_clamp(float x, float low, float high) {
  const std::uint32_t from_below = std::min(std::bit_cast<std::uint32_t>(x), std::bit_cast<std::uint32_t>(low));
  const std::int32_t both = std::min(static_cast<std::int32_t>(from_below), std::bit_cast<std::int32_t>(high));
  return x == x ? std::bit_cast<float>(both) : x;
}

/// e^x = m 2^n, with m near 1 and n a whole number in the low bits of `shifted`.
struct ExpParts {
  float m;
  std::uint32_t shifted;
};
inline constexpr float log2_e = 1.44269504088896341F;
/// Adding it, 1.5 * 2^23, rounds to a whole number and leaves that in the low bits of the sum.
inline constexpr float exp_shifter = 12582912.0F;

/// For -104 <= x <= 89, or NaN.
[[nodiscard, gnu::always_inline]] inline ExpParts vector_exp_parts(float x) {
  // ln 2 in two parts; the upper has 15 bits, so that its product with a whole number up to 151 is exact.
  constexpr float ln2_high = 0.693145751953125F;
  constexpr float ln2_low = 1.42860682030941723e-6F;
  const float shifted = x * log2_e + exp_shifter;
  const float whole = shifted - exp_shifter;
  const float r = (x - whole * ln2_high) - whole * ln2_low;
  // (e^r - 1 - r) / r^2 on [-ln2/2, ln2/2], 0.06
  float p = 0.00138131317485F;
  p = p * r + 0.00836942003932F;
  p = p * r + 0.0416684570587F;
  p = p * r + 0.166665147782F;
  p = p * r + 0.499999930494F;
  return {1.0F + (r + (r * r) * p), std::bit_cast<std::uint32_t>(shifted)};
}

/// e^x within 2 ulp for |x| <= 87: the exponent is added to the bits, which is cheapest. NaN may come out as any
/// number, so callers carry it past by another operand.
[[nodiscard, gnu::always_inline]] inline float vector_exp_normal(float x) {
  const ExpParts parts = vector_exp_parts(x);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(parts.m) + (parts.shifted << 23U));
}

/// e^x within 2 ulp, subnormals included; 0 below -104, infinity above 88.73, NaN for NaN.
[[nodiscard, gnu::always_inline]] inline float vector_exp(float x) {
  const ExpParts parts = vector_exp_parts(vector_clamp(x, -104.0F, 89.0F));
  // Scaling in two steps reaches subnormals and infinity. Unsigned, because a NaN's bits would overflow.
  const std::uint32_t n = parts.shifted - std::bit_cast<std::uint32_t>(exp_shifter);
  const auto half = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) >> 1);
  const float scale_1 = std::bit_cast<float>((half + 127U) << 23U);
  const float scale_2 = std::bit_cast<float>((n - half + 127U) << 23U);
  return parts.m * scale_1 * scale_2;
}

/// erf(x) within 2 ulp; NaN for NaN.
[[nodiscard, gnu::always_inline]] inline float vector_erf(float x) {
  const float a = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU);
  // (erf(x) - x) / x as a polynomial in x^2 on |x| <= 0.875, 0.14
  const float s = x * x;
  float p = -0.000620324290303F;
  p = p * s + 0.0050321789648F;
  p = p * s - 0.0267914614443F;
  p = p * s + 0.112824552858F;
  p = p * s - 0.3761255046F;
  p = p * s + 0.128379157491F;
  const float central = x + x * p;
  // -log(erfc(a)) / a on [0.875, 4], 0.05 relative to erf; beyond 4 erf rounds to 1
  const float b = std::bit_cast<float>(std::min(std::bit_cast<std::uint32_t>(a), std::bit_cast<std::uint32_t>(4.0F)));
  float q = -0.000214810123349F;
  q = q * b + 0.00322183731219F;
  q = q * b - 0.0229123098953F;
  q = q * b + 0.105297158571F;
  q = q * b + 0.635691145562F;
  q = q * b + 1.1285225041F;
  const float tail = 1.0F - vector_exp_normal(-b * q);
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(x) & 0x80000000U;
  const float signed_tail = std::bit_cast<float>(std::bit_cast<std::uint32_t>(tail) | sign);
  return a > 0.875F ? signed_tail : central;
}

/// tanh(x) within 3 ulp; NaN for NaN.
[[nodiscard, gnu::always_inline]] inline float vector_tanh(float x) {
  const float a = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU);
  // (tanh(x) - x) / x^3 as a polynomial in x^2 on |x| <= 0.6, 0.25; interpolated at Chebyshev's nodes
  const float square = x * x;
  float p = -0.00626911968F;
  p = p * square + 0.0211109594F;
  p = p * square - 0.0538739488F;
  p = p * square + 0.133329153F;
  p = p * square - 0.333333313F;
  const float central = x + x * (square * p);
  // (1 - e^-2|x|) / (1 + e^-2|x|), 1 in f32 from 10 on
  const float e = vector_exp_normal(-2.0F * vector_clamp(a, -1.0F, 10.0F));
  const float tail = (1.0F - e) / (1.0F + e);
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(x) & 0x80000000U;
  const float signed_tail = std::bit_cast<float>(std::bit_cast<std::uint32_t>(tail) | sign);
  return a > 0.6F ? signed_tail : central;
}

/// sqrt(2/pi) and the cubic coefficient of the tanh form of GELU (arXiv 1606.08415).
inline constexpr float gelu_c = 0.797884560802865356F;
inline constexpr float gelu_cubic = 0.044715F;

/// Beyond it, |2t| > 72 and GELU's factor is 1 or 0 in f32 (below: 5e-32, whatever x); up to it nothing overflows.
inline constexpr float gelu_limit = 9.3F;

/// x/2 (1 + tanh(t)), t = c (x + 0.044715 x^3), as x / (1 + e^-2t), which does not cancel for negative x.
[[nodiscard, gnu::always_inline]] inline float vector_gelu_tanh(float x) {
  const float inner = vector_clamp(x, -gelu_limit, gelu_limit);
  const float two_t = inner * (2.0F * gelu_c + (2.0F * gelu_c * gelu_cubic) * (inner * inner));
  return (x > inner ? x : inner) / (1.0F + vector_exp_normal(-two_t));
}

/// Its derivative: s + x s (1 - s) 2t', s = 1 / (1 + e^-2t).
[[nodiscard, gnu::always_inline]] inline float vector_gelu_tanh_derivative(float x) {
  x = vector_clamp(x, -gelu_limit, gelu_limit);
  const float square = x * x;
  const float two_t = x * (2.0F * gelu_c + (2.0F * gelu_c * gelu_cubic) * square);
  const float two_t_prime = 2.0F * gelu_c + (6.0F * gelu_c * gelu_cubic) * square;
  // From e^-|2t|, so that neither s nor 1 - s is found by cancellation.
  const float e = vector_exp_normal(two_t < 0.0F ? two_t : -two_t);
  const float larger = 1.0F / (1.0F + e);
  const float smaller = e * larger;
  return (two_t < 0.0F ? smaller : larger) + x * two_t_prime * (larger * smaller);
}

/// x/2 (1 + erf(x / sqrt 2)).
[[nodiscard, gnu::always_inline]] inline float vector_gelu_erf(float x) {
  const float half = 0.5F * x;
  return half + half * vector_erf(x * 0.707106781186547524F);
}

/// Its derivative: Phi(x) + x phi(x).
[[nodiscard, gnu::always_inline]] inline float vector_gelu_erf_derivative(float x) {
  x = vector_clamp(x, -13.0F, 13.0F);  // x phi(x) < 1e-35 beyond
  const float phi = 0.398942280401432678F * vector_exp_normal(-0.5F * x * x);
  return (0.5F + 0.5F * vector_erf(x * 0.707106781186547524F)) + x * phi;
}

}  // namespace gpubench::cpu
