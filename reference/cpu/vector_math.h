// exp, erf and GELU in f32, written so that loops over them vectorize.
//
// No branches, no table look-ups, no library calls: every lane runs the same polynomial arithmetic. The polynomials are
// minimax fits made for this file (weighted least squares in 40 digits, reweighted to equal ripple); beside each stands its
// error in units of 2^-24 relative to what it approximates. Accuracy after rounding is asserted by vector_math_test.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace gpubench::cpu {

/// x limited to [low, high], low < 0 < high; NaN stays NaN. On the bits: among negative numbers the larger magnitude is the
/// larger unsigned integer, among positive ones the larger signed one. Written with comparisons of x, the compiler would
/// rather split what follows into three cases, and pay for the divisions of each.
[[nodiscard, gnu::always_inline]] inline float vector_clamp(float x, float low, float high) {
  const std::uint32_t from_below = std::min(std::bit_cast<std::uint32_t>(x), std::bit_cast<std::uint32_t>(low));
  const std::int32_t both = std::min(static_cast<std::int32_t>(from_below), std::bit_cast<std::int32_t>(high));
  return x == x ? std::bit_cast<float>(both) : x;
}

/// e^x within 2 ulp, subnormals included; 0 below -104, infinity above 88.73, NaN for NaN.
[[nodiscard, gnu::always_inline]] inline float vector_exp(float x) {
  // Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits of the sum.
  constexpr float shifter = 12582912.0F;
  // ln 2 in two parts; the upper has 15 bits, so that its product with a whole number up to 151 is exact.
  constexpr float ln2_high = 0.693145751953125F;
  constexpr float ln2_low = 1.42860682030941723e-6F;
  x = vector_clamp(x, -104.0F, 89.0F);
  const float shifted = x * 1.44269504088896341F + shifter;
  const float whole = shifted - shifter;
  const float r = (x - whole * ln2_high) - whole * ln2_low;
  // (e^r - 1 - r) / r^2 on [-ln2/2, ln2/2], 0.06
  float p = 0.00138131317485F;
  p = p * r + 0.00836942003932F;
  p = p * r + 0.0416684570587F;
  p = p * r + 0.166665147782F;
  p = p * r + 0.499999930494F;
  const float e_r = 1.0F + (r + (r * r) * p);
  // Scaling in two steps reaches subnormals and infinity. Unsigned, because a NaN's bits would overflow.
  const std::uint32_t n = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(shifter);
  const auto half = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) >> 1);
  const float scale_1 = std::bit_cast<float>((half + 127U) << 23U);
  const float scale_2 = std::bit_cast<float>((n - half + 127U) << 23U);
  return e_r * scale_1 * scale_2;
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
  // -log(erfc(a)) / a on [0.875, 4], 0.05 as seen in erf; beyond 4 erf rounds to 1
  const float b = std::bit_cast<float>(std::min(std::bit_cast<std::uint32_t>(a), std::bit_cast<std::uint32_t>(4.0F)));
  float q = -0.000214810123349F;
  q = q * b + 0.00322183731219F;
  q = q * b - 0.0229123098953F;
  q = q * b + 0.105297158571F;
  q = q * b + 0.635691145562F;
  q = q * b + 1.1285225041F;
  const float tail = 1.0F - vector_exp(-b * q);
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(x) & 0x80000000U;
  const float signed_tail = std::bit_cast<float>(std::bit_cast<std::uint32_t>(tail) | sign);
  return a > 0.875F ? signed_tail : central;
}

/// sqrt(2/pi) and the cubic coefficient of the tanh form of GELU (arXiv 1606.08415).
inline constexpr float gelu_c = 0.797884560802865356F;
inline constexpr float gelu_cubic = 0.044715F;

/// x/2 (1 + tanh(t)), t = c (x + 0.044715 x^3), as x / (1 + e^-2t), which does not cancel for negative x.
[[nodiscard, gnu::always_inline]] inline float vector_gelu_tanh(float x) {
  const float two_t = x * (2.0F * gelu_c + (2.0F * gelu_c * gelu_cubic) * (x * x));
  return x / (1.0F + vector_exp(-two_t));
}

/// Its derivative: s + x s (1 - s) 2t', s = 1 / (1 + e^-2t).
[[nodiscard, gnu::always_inline]] inline float vector_gelu_tanh_derivative(float x) {
  // s (1 - s) is 0 in f32 outside of +-16; inside, nothing can overflow.
  x = vector_clamp(x, -16.0F, 16.0F);
  const float square = x * x;
  const float two_t = x * (2.0F * gelu_c + (2.0F * gelu_c * gelu_cubic) * square);
  const float two_t_prime = 2.0F * gelu_c + (6.0F * gelu_c * gelu_cubic) * square;
  // From e^-|2t|, so that neither s nor 1 - s is found by cancellation.
  const float e = vector_exp(two_t < 0.0F ? two_t : -two_t);
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
  x = vector_clamp(x, -16.0F, 16.0F);  // phi(16) is 0 in f32
  const float phi = 0.398942280401432678F * vector_exp(-0.5F * x * x);
  return (0.5F + 0.5F * vector_erf(x * 0.707106781186547524F)) + x * phi;
}

}  // namespace gpubench::cpu
