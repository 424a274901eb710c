// exp, erf, tanh and activations on vectors of f32 in Highway, without branches or tables.
//
// Include after foreach_target.h, outside the target namespace.
// Polynomials are minimax fits (weighted least squares in 40 digits, reweighted to equal ripple). The number after each
// is its relative error in units of 2^-24.
// vector_math_test asserts the accuracy on each instruction set.
#if defined(GPUBENCH_VECTOR_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUBENCH_VECTOR_MATH_INL_H
#undef GPUBENCH_VECTOR_MATH_INL_H
#else
#define GPUBENCH_VECTOR_MATH_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// A vector of at most 64 bytes.
using Floats = hn::CappedTag<float, 16>;
using Words = hn::RebindToUnsigned<Floats>;
using V = hn::Vec<Floats>;
inline constexpr std::int64_t lane_count = hn::MaxLanes(Floats());

HWY_INLINE V all(float x) { return hn::Set(Floats(), x); }

/// x clamped at one end; NaN stays.
#if HWY_ARCH_X86  // one instruction, which returns its second operand where one is NaN; NEON's returns the other
HWY_INLINE V at_least(float low, V x) { return hn::Max(all(low), x); }
HWY_INLINE V at_most(float high, V x) { return hn::Min(all(high), x); }
#else
HWY_INLINE V at_least(float low, V x) { return hn::IfThenElse(x < all(low), all(low), x); }
HWY_INLINE V at_most(float high, V x) { return hn::IfThenElse(x > all(high), all(high), x); }
#endif

inline constexpr float log2_e = 1.44269504088896341F;
/// 1.5 * 2^23: adding it rounds to a whole number, stored in the low bits of the sum.
inline constexpr float exp_shifter = 12582912.0F;

/// Coefficients from the highest on.
template <class... Lower>
HWY_INLINE V polynomial(V x, float highest, Lower... lower) {
  V p = all(highest);
  ((p = hn::MulAdd(p, x, all(lower))), ...);
  return p;
}

/// 2^f on [-1/2, 1/2], 1.6.
HWY_INLINE V exp2_of_fraction(V f) {
  return polynomial(f, 0.00132694084F, 0.00967129413F, 0.0555071123F, 0.240222469F, 0.693147004F, 1.0F);
}

/// 2^f 2^n, |n| <= 250, with shifted = n + exp_shifter; handles subnormals, infinity and NaN.
HWY_INLINE V exp2_of_parts(V f, V shifted) {
  const V m = exp2_of_fraction(f);
#if HWY_TARGET == HWY_AVX3
  return V{_mm512_scalef_ps(m.raw, hn::Sub(shifted, all(exp_shifter)).raw)};
#else
  // In two steps, to reach subnormals and infinity.
  const hn::RebindToSigned<Floats> integers;
  const auto n = hn::Sub(hn::BitCast(integers, shifted), hn::BitCast(integers, all(exp_shifter)));
  const auto half = hn::ShiftRight<1>(n);
  const auto power = [&](auto exponent) HWY_ATTR {
    return hn::BitCast(Floats(), hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(integers, 127))));
  };
  return hn::Mul(hn::Mul(m, power(half)), power(hn::Sub(n, half)));
#endif
}

/// 2^x within 3 ulp for x <= 128, subnormals included; 0 for -infinity, NaN for NaN.
HWY_INLINE V exp2(V x) {
  const V inner = at_least(-200.0F, x), shifted = hn::Add(inner, all(exp_shifter));
  return exp2_of_parts(hn::Sub(inner, hn::Sub(shifted, all(exp_shifter))), shifted);
}

/// 2^(a b) within 3 ulp of the power of the unrounded product (of the rounded one without FMA), for |a b| <= 126: adds
/// the exponent to the bits, the cheapest way. NaN gives any number: callers handle it.
HWY_INLINE V exp2_of_product(V a, V b) {
  const V shifted = hn::MulAdd(a, b, all(exp_shifter));
  const V f = hn::MulSub(a, b, hn::Sub(shifted, all(exp_shifter)));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(Words(), shifted));
  return hn::BitCast(Floats(), hn::Add(hn::BitCast(Words(), exp2_of_fraction(f)), exponent));
}

/// e^x within 3 ulp, subnormals included; 0 for -infinity, infinity above 88.73, NaN for NaN.
HWY_INLINE V exp(V x) {
  const V inner = at_most(150.0F, at_least(-150.0F, x));
  const V shifted = hn::MulAdd(inner, all(log2_e), all(exp_shifter));
  const V whole = hn::Sub(shifted, all(exp_shifter));
#if HWY_NATIVE_FMA
  constexpr float log2_e_rest = 1.92596299e-8F;  // log2 e - log2_e
  const V f = hn::MulAdd(inner, all(log2_e_rest), hn::MulSub(inner, all(log2_e), whole));
#else
  // ln 2 in two parts. The upper one has 15 bits, so that its product with a whole number up to 217 is exact.
  constexpr float ln2_high = 0.693145751953125F, ln2_low = 1.42860682030941723e-6F;
  const V f = hn::Mul(hn::NegMulAdd(whole, all(ln2_low), hn::NegMulAdd(whole, all(ln2_high), inner)), all(log2_e));
#endif
  return exp2_of_parts(f, shifted);
}

/// erf(x) within 2 ulp; NaN for NaN.
HWY_INLINE V erf(V x) {
  const V a = hn::Abs(x);
  // (erf(x) - x) / x as a polynomial in x^2 on |x| <= 0.875, 0.14
  const V s = hn::Mul(x, x);
  const V p = polynomial(s, -0.000620324290303F, 0.0050321789648F, -0.0267914614443F, 0.112824552858F, -0.3761255046F,
                         0.128379157491F);
  const V central = hn::MulAdd(x, p, x);
  // -log(erfc(a)) / a on [0.875, 4], 0.05 relative to erf; beyond 4 erf rounds to 1
  const V b = at_most(4.0F, a);
  const V q = polynomial(b, -0.000214810123349F, 0.00322183731219F, -0.0229123098953F, 0.105297158571F, 0.635691145562F,
                         1.1285225041F);
  const V tail = hn::Sub(all(1.0F), exp2_of_product(hn::Mul(b, q), all(-log2_e)));
  return hn::IfThenElse(a > all(0.875F), hn::CopySign(tail, x), central);
}

/// tanh(x) within 3 ulp; NaN for NaN.
HWY_INLINE V tanh(V x) {
  const V a = hn::Abs(x);
  // (tanh(x) - x) / x^3 as a polynomial in x^2 on |x| <= 0.6, 0.25; interpolated at Chebyshev's nodes
  const V s = hn::Mul(x, x);
  const V p = polynomial(s, -0.00626911968F, 0.0211109594F, -0.0538739488F, 0.133329153F, -0.333333313F);
  const V central = hn::MulAdd(x, hn::Mul(s, p), x);
  // (1 - e^-2|x|) / (1 + e^-2|x|), which is 1 in f32 from 10 on.
  const V e = exp2_of_product(at_most(10.0F, a), all(-2.0F * log2_e));
  const V tail = hn::Div(hn::Sub(all(1.0F), e), hn::Add(all(1.0F), e));
  return hn::IfThenElse(a > all(0.6F), hn::CopySign(tail, x), central);
}

/// sqrt(2/pi) and the cubic coefficient of the tanh form of GELU (arXiv 1606.08415).
inline constexpr float gelu_c = 0.797884560802865356F, gelu_cubic = 0.044715F;
/// Beyond it |2t| > 72, and GELU's factor is 1 or 0 in f32 (below: 5e-32); up to it nothing overflows.
inline constexpr float gelu_limit = 9.3F;
inline constexpr float sqrt_half = 0.707106781186547524F;

/// -2t log2(e) / x, where GELU is x/2 (1 + tanh(t)), t = c (x + 0.044715 x^3).
HWY_INLINE V gelu_slope(V square) {
  constexpr float slope_1 = 2.0F * gelu_c * log2_e;
  return hn::MulAdd(square, all(-slope_1 * gelu_cubic), all(-slope_1));
}

/// x / (1 + e^-2t), which does not cancel for negative x.
HWY_INLINE V gelu_tanh(V x) {
  const V numerator = at_least(-gelu_limit, x), inner = at_most(gelu_limit, numerator);
  const V e = exp2_of_product(inner, gelu_slope(hn::Mul(inner, inner)));
  return hn::Div(numerator, hn::Add(all(1.0F), e));
}

/// s + x s (1 - s) 2t', s = 1 / (1 + e^-2t), from e^-|2t|, so that neither s nor 1 - s cancels.
HWY_INLINE V gelu_tanh_derivative(V x) {
  const V inner = at_most(gelu_limit, at_least(-gelu_limit, x)), square = hn::Mul(inner, inner);
  const V e = exp2_of_product(hn::Abs(inner), gelu_slope(square));
  const V larger = hn::Div(all(1.0F), hn::Add(all(1.0F), e)), smaller = hn::Mul(e, larger);
  const V s = hn::IfThenElse(inner < all(0.0F), smaller, larger);
  const V two_t_prime = hn::MulAdd(square, all(6.0F * gelu_c * gelu_cubic), all(2.0F * gelu_c));
  return hn::MulAdd(hn::Mul(inner, two_t_prime), hn::Mul(larger, smaller), s);
}

/// x/2 (1 + erf(x / sqrt 2)).
HWY_INLINE V gelu_erf(V x) {
  const V half = hn::Mul(all(0.5F), x);
  return hn::MulAdd(half, erf(hn::Mul(x, all(sqrt_half))), half);
}

/// Phi(x) + x phi(x); x phi(x) < 1e-35 beyond 13.
HWY_INLINE V gelu_erf_derivative(V x) {
  const V inner = at_most(13.0F, at_least(-13.0F, x));
  const V phi = hn::Mul(all(0.398942280401432678F), exp2_of_product(hn::Mul(inner, inner), all(-0.5F * log2_e)));
  const V cdf = hn::MulAdd(all(0.5F), erf(hn::Mul(inner, all(sqrt_half))), all(0.5F));
  return hn::MulAdd(inner, phi, cdf);
}

/// s(x) = 1 / (1 + e^-x) and 1 - s(x).
struct Logistic {
  V value, rest;
  explicit HWY_INLINE Logistic(V x) {
    const V e = exp(hn::Neg(x));
    value = hn::Div(all(1.0F), hn::Add(all(1.0F), e));
    // 1 - s would cancel, and e s is NaN if e overflows.
    rest = hn::IfThenElse(e > all(1e30F), all(1.0F), hn::Mul(e, value));
  }
};

HWY_INLINE V silu(V x) { return hn::Div(x, hn::Add(all(1.0F), exp(hn::Neg(x)))); }

/// s (1 + x (1 - s)).
HWY_INLINE V silu_derivative(V x) {
  const Logistic s(x);
  return hn::Mul(s.value, hn::MulAdd(x, s.rest, all(1.0F)));
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
