// Vector functions against libm in f64, in ulp, at every 1009th f32, on each instruction set.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/core/dtype.h"
#include "reference/cpu/block_io.h"
#include "reference/cpu/runs.h"
#include "reference/cpu/vector_targets.h"
#include "tests/reference/cpu/each_target.h"

#ifndef GPUBENCH_TESTED_FUNCTIONS
#define GPUBENCH_TESTED_FUNCTIONS  // this file includes itself for each instruction set
namespace gpubench::cpu {
using Function = void (*)(const float* x, std::int64_t count, float* y);
struct Functions {
  Function exp, exp2, erf, tanh;
};
}  // namespace gpubench::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/reference/cpu/vector_math_test.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

template <V function(V)>
void run(const float* x, std::int64_t count, float* y) {
  map(
      y, count, [](V v) HWY_ATTR { return function(v); }, x);
}

Functions TestedFunctions() { return {run<exp>, run<exp2>, run<erf>, run<tanh>}; }

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {
namespace vector_math_test {

HWY_EXPORT(TestedFunctions);
Functions functions() { return HWY_DYNAMIC_DISPATCH(TestedFunctions)(); }

constexpr float infinity = std::numeric_limits<float>::infinity();

double ulp_at(double value) {
  const double magnitude = std::fabs(value);
  if (magnitude < smallest_normal(DType::f32)) return std::ldexp(1.0, -149);
  return std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

/// Largest error in ulp for low <= x <= high; infinite for NaN.
double worst_ulp(float low, float high, Function fast, double (*exact)(double)) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 1009) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (value >= low && value <= high) x.push_back(value);
  }
  std::vector<float> y(x.size());
  fast(x.data(), static_cast<std::int64_t>(x.size()), y.data());
  double worst = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = exact(static_cast<double>(x[i]));
    const double error = std::fabs(static_cast<double>(y[i]) - want) / ulp_at(want);
    if (!(error <= worst)) worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return worst;
}

float at(Function fast, float x) {
  fast(&x, 1, &x);
  return x;
}

class VectorMath : public testing::EachTarget {};
GPUBENCH_ON_EACH_TARGET(VectorMath);

TEST_P(VectorMath, ExponentialsAreWithinThreeUlp) {
  const Function exp = functions().exp, exp2 = functions().exp2;
  EXPECT_LE(worst_ulp(-120.0F, 88.72F, exp, [](double x) { return std::exp(x); }), 3.0);
  EXPECT_LE(worst_ulp(-160.0F, 127.99F, exp2, [](double x) { return std::exp2(x); }), 3.0);
}

TEST_P(VectorMath, ExpEndsInZeroInfinityAndNaN) {
  const Function exp = functions().exp, exp2 = functions().exp2;
  EXPECT_EQ(at(exp, 0.0F), 1.0F);
  EXPECT_EQ(at(exp2, 0.0F), 1.0F);
  for (const float x : {-infinity, -1e30F, -201.0F}) {
    EXPECT_EQ(at(exp, x), 0.0F);
    EXPECT_EQ(at(exp2, x), 0.0F);
  }
  EXPECT_EQ(at(exp, 89.0F), infinity);
  EXPECT_EQ(at(exp, infinity), infinity);
  EXPECT_EQ(at(exp2, 128.0F), infinity);
  EXPECT_TRUE(std::isnan(at(exp, std::nanf(""))));
  EXPECT_TRUE(std::isnan(at(exp2, std::nanf(""))));
}

TEST_P(VectorMath, ErfIsWithinTwoUlp) {
  const Function erf = functions().erf;
  EXPECT_LE(worst_ulp(-infinity, infinity, erf, [](double x) { return std::erf(x); }), 2.0);
  EXPECT_TRUE(std::isnan(at(erf, std::nanf(""))));
}

TEST_P(VectorMath, TanhIsWithinThreeUlp) {
  const Function tanh = functions().tanh;
  EXPECT_LE(worst_ulp(-infinity, infinity, tanh, [](double x) { return std::tanh(x); }), 3.0);
  EXPECT_TRUE(std::isnan(at(tanh, std::nanf(""))));
}

double gelu_tanh(double x, double /*none*/) {
  return x / (1.0 + std::exp(-2.0 * 0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
double gelu_erf(double x, double /*none*/) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
double gelu_tanh_backward(double x, double dy) {
  if (std::fabs(x) > 30.0) return x > 0.0 ? dy : 0.0;
  const double two_t = 2.0 * 0.7978845608028654 * (x + 0.044715 * x * x * x), s = 1.0 / (1.0 + std::exp(-two_t));
  const double slope = 2.0 * 0.7978845608028654 * (1.0 + 3.0 * 0.044715 * x * x);
  return dy * (s + x * s / (1.0 + std::exp(two_t)) * slope);
}
double gelu_erf_backward(double x, double dy) {
  if (std::fabs(x) > 30.0) return x > 0.0 ? dy : 0.0;
  return dy * (0.5 * std::erfc(-x * std::sqrt(0.5)) + x * std::exp(-0.5 * x * x) * 0.3989422804014327);
}
double silu(double x, double /*none*/) { return x / (1.0 + std::exp(-x)); }
double silu_backward(double x, double dy) {
  const double s = 1.0 / (1.0 + std::exp(-x));
  return dy * s * (1.0 + (std::fabs(x) > 700.0 ? 0.0 : x / (1.0 + std::exp(x))));
}
double swiglu(double gate, double up) { return silu(gate, up) * up; }

struct Activation {
  const char* name;
  PointwiseKernel kernel;
  double (*expected)(double a, double b);
  bool is_derivative;
};

TEST_P(VectorMath, ActivationsEndAsTheyShouldWhereverTheyAreStored) {
  const std::array<Activation, 7> activations{
      {{"gelu tanh", pointwise_kernel(gelu_forward_kind, GeluForm::tanh), gelu_tanh, false},
       {"gelu erf", pointwise_kernel(gelu_forward_kind, GeluForm::erf), gelu_erf, false},
       {"gelu tanh backward", pointwise_kernel(gelu_backward_kind, GeluForm::tanh), gelu_tanh_backward, true},
       {"gelu erf backward", pointwise_kernel(gelu_backward_kind, GeluForm::erf), gelu_erf_backward, true},
       {"silu", pointwise_kernel(silu_forward_kind), silu, false},
       {"silu backward", pointwise_kernel(silu_backward_kind), silu_backward, true},
       {"swiglu", pointwise_kernel(swiglu_forward_kind), swiglu, false}}};
  std::vector<float> x{std::nanf(""), 0.0F,   -0.0F, 1e-40F, -1e-40F, 3e38F, -3e38F,
                       20.0F,         -20.0F, 80.0F, -80.0F, 1e10F,   -1e10F};
  for (int i = 0; i < 60; ++i) x.push_back(static_cast<float>(i) * 0.25F - 7.0F);
  std::vector<float> other;
  for (std::size_t i = 0; i < x.size(); ++i) other.push_back(1.0F + 0.125F * static_cast<float>(i % 5));
  const auto count = static_cast<std::int64_t>(x.size());
  const std::array<const float*, 2> from{x.data(), other.data()};

  for (const Activation& of : activations) {
    for (std::int64_t offset = 0; offset < 17; ++offset) {
      std::vector<float> stored(x.size() + 32, -1.0F), streamed(x.size() + 32, -1.0F);
      float *to = stored.data() + offset, *around_caches = streamed.data() + offset;
      of.kernel.block(from.data(), 0.0F, count, &to);
      of.kernel.streaming(from.data(), 0.0F, count, &around_caches);
      stream_fence();

      for (std::size_t i = 0; i < stored.size(); ++i) {
        ASSERT_TRUE(std::bit_cast<std::uint32_t>(stored[i]) == std::bit_cast<std::uint32_t>(streamed[i]) ||
                    (std::isnan(stored[i]) && std::isnan(streamed[i])))
            << of.name;
        const std::int64_t place = static_cast<std::int64_t>(i) - offset;
        if (place < 0 || place >= count) {
          ASSERT_EQ(stored[i], -1.0F) << of.name << ": wrote beyond the output at " << i;
          continue;
        }
        const auto k = static_cast<std::size_t>(place);
        const double want = of.expected(static_cast<double>(x[k]), static_cast<double>(other[k]));
        const double got = static_cast<double>(stored[i]);
        // The exponent's argument is rounded, and large where the result is almost 0. The terms of a derivative cancel
        // near its zero, as does the normal distribution's tail in 1 + erf(x).
        const bool cancels = of.is_derivative || of.kernel.block == activations[1].kernel.block;
        const double tolerance = 6e-6 * std::fabs(want) + (cancels ? 2e-6 : 1e-29);
        ASSERT_TRUE(std::isnan(want)   ? std::isnan(got)
                    : std::isinf(want) ? got == want
                                       : std::fabs(got - want) <= tolerance)
            << of.name << ": " << x[k] << " gives " << got << "; expected " << want;
        if (!of.is_derivative && want != 0.0 && !std::isnan(want) && std::fabs(want) > 1e-6) {
          ASSERT_EQ(std::signbit(got), std::signbit(want)) << of.name << ": " << x[k];
        }
      }
    }
  }
}

class BlockIo : public testing::EachTarget {};
GPUBENCH_ON_EACH_TARGET(BlockIo);

TEST_P(BlockIo, NarrowsAsTheCoreRoundsForEveryUpperHalfAndTie) {
  // Around each bf16: the number, the midpoint to the next (a tie), and its neighbours.
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper) {
    for (const std::uint32_t lower : {0U, 0x7FFFU, 0x8000U, 0x8001U})
      values.push_back(std::bit_cast<float>(upper << 16U | lower));
  }
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<bf16> chosen(values.size()), narrowed(values.size());
  narrow_run(values.data(), count, chosen.data());  // by bf16 instructions if available
  runs().narrow(values.data(), count, narrowed.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double want = round_to(DType::bf16, static_cast<double>(values[i]));
    for (const bf16& one : {chosen[i], narrowed[i]}) {
      const double got = load(DType::bf16, reinterpret_cast<const std::byte*>(&one));
      ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << values[i];
    }
  }
}

TEST_P(BlockIo, WidensEveryBf16Exactly) {
  std::vector<bf16> values(0x10000);
  for (std::uint32_t i = 0; i < 0x10000U; ++i) values[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> widened(values.size());
  runs().widen(values.data(), static_cast<std::int64_t>(values.size()), widened.data());
  for (std::uint32_t i = 0; i < 0x10000U; ++i) ASSERT_EQ(std::bit_cast<std::uint32_t>(widened[i]), i << 16U);
}

}  // namespace vector_math_test
}  // namespace gpubench::cpu
#endif
