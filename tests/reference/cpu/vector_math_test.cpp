// The f32 functions against libm in f64, in ulp, over every 1009th f32 there is.
#include "reference/cpu/vector_math.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/core/dtype.h"
#include "reference/cpu/block_io.h"
#include "reference/cpu/pointwise_avx512.h"
#include "reference/cpu/vector_avx512.h"

namespace gpubench::cpu {
namespace vector_math_test {

constexpr float infinity = std::numeric_limits<float>::infinity();

double ulp_at(double value) {
  const double magnitude = std::fabs(value);
  if (magnitude < smallest_normal(DType::f32)) return std::ldexp(1.0, -149);
  return std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

/// Largest error in ulp where low <= x <= high; a NaN result counts as infinity.
template <class Fast, class True>
double worst_ulp(float low, float high, const Fast& fast, const True& exact) {
  double worst = 0.0;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 1009) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!(x >= low && x <= high)) continue;
    const double want = exact(static_cast<double>(x));
    const double error = std::fabs(static_cast<double>(fast(x)) - want) / ulp_at(want);
    if (!(error <= worst)) worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return worst;
}

TEST(VectorMath, ExpIsWithinTwoUlp) {
  EXPECT_LE(worst_ulp(
                -120.0F, 88.72F, [](float x) { return vector_exp(x); }, [](double x) { return std::exp(x); }),
            2.0);
}

TEST(VectorMath, ExpEndsInZeroInfinityAndNaN) {
  EXPECT_EQ(vector_exp(0.0F), 1.0F);
  EXPECT_EQ(vector_exp(-infinity), 0.0F);
  EXPECT_EQ(vector_exp(-200.0F), 0.0F);
  EXPECT_EQ(vector_exp(89.0F), infinity);
  EXPECT_EQ(vector_exp(infinity), infinity);
  EXPECT_TRUE(std::isnan(vector_exp(std::nanf(""))));
}

TEST(VectorMath, ErfIsWithinTwoUlp) {
  EXPECT_LE(worst_ulp(
                -infinity, infinity, [](float x) { return vector_erf(x); }, [](double x) { return std::erf(x); }),
            2.0);
  EXPECT_TRUE(std::isnan(vector_erf(std::nanf(""))));
}

TEST(VectorMath, TanhIsWithinThreeUlp) {
  EXPECT_LE(worst_ulp(
                -infinity, infinity, [](float x) { return vector_tanh(x); }, [](double x) { return std::tanh(x); }),
            3.0);
  EXPECT_TRUE(std::isnan(vector_tanh(std::nanf(""))));
}

TEST(VectorMath, GeluOfLargeNumbersIsTheirPositivePart) {
  for (const float x : {20.0F, 1e10F, 3e38F}) {
    EXPECT_EQ(vector_gelu_tanh(x), x);
    EXPECT_EQ(vector_gelu_erf(x), x);
    EXPECT_NEAR(vector_gelu_tanh(-x), 0.0F, 1e-29F);
    EXPECT_NEAR(vector_gelu_erf(-x), 0.0F, 1e-29F);
    EXPECT_EQ(vector_gelu_tanh_derivative(x), 1.0F);
    EXPECT_EQ(vector_gelu_erf_derivative(x), 1.0F);
    EXPECT_NEAR(vector_gelu_tanh_derivative(-x), 0.0F, 1e-29F);
    EXPECT_NEAR(vector_gelu_erf_derivative(-x), 0.0F, 1e-29F);
  }
}

float silu(float x) { return x / (1.0F + vector_exp(-x)); }
float silu_derivative(float x) {
  const float e = vector_exp(-x), s = 1.0F / (1.0F + e);
  return s * (1.0F + x * (e > 1e30F ? 1.0F : e * s));
}

TEST(VectorMath, ActivationsOnAvx512EndAsElsewhereWhereverTheyAreStored) {
  if (!avx512::available()) GTEST_SKIP() << "this processor lacks AVX-512";
  struct Activation {
    const avx512::PointwiseKernel& kernel;
    float (*portable)(float a, float b);
  };
  const std::array<Activation, 5> activations{
      {{avx512::gelu_tanh, [](float x, float) { return vector_gelu_tanh(x); }},
       {avx512::gelu_tanh_backward, [](float x, float dy) { return dy * vector_gelu_tanh_derivative(x); }},
       {avx512::silu, [](float x, float) { return silu(x); }},
       {avx512::silu_backward, [](float x, float dy) { return dy * silu_derivative(x); }},
       {avx512::swiglu, [](float gate, float up) { return silu(gate) * up; }}}};
  std::vector<float> x{std::nanf(""), infinity, -infinity, 0.0F,   -0.0F, 1e-40F, -1e-40F,
                       3e38F,         -3e38F,   20.0F,     -20.0F, 89.0F, -89.0F, -104.0F};
  for (int i = 0; i < 60; ++i) x.push_back(static_cast<float>(i) * 0.25F - 7.0F);
  std::vector<float> other;
  for (std::size_t i = 0; i < x.size(); ++i) other.push_back(1.0F + 0.125F * static_cast<float>(i % 5));
  const auto count = static_cast<std::int64_t>(x.size());

  for (std::size_t which = 0; which < activations.size(); ++which) {
    for (std::int64_t offset = 0; offset < 17; ++offset) {
      std::vector<float> stored(x.size() + 32, -1.0F);
      std::vector<float> streamed(x.size() + 32, -1.0F);
      const Activation& of = activations[which];
      of.kernel.plain(x.data(), other.data(), 0.0F, count, stored.data() + offset);
      of.kernel.streaming(x.data(), other.data(), 0.0F, count, streamed.data() + offset);
      stream_fence();

      for (std::size_t i = 0; i < stored.size(); ++i) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(stored[i]), std::bit_cast<std::uint32_t>(streamed[i])) << i;
        const std::int64_t from = static_cast<std::int64_t>(i) - offset;
        if (from < 0 || from >= count) {
          EXPECT_EQ(stored[i], -1.0F) << which << ": wrote beyond the output at " << i;
          continue;
        }
        const auto at = static_cast<std::size_t>(from);
        const float want = of.portable(x[at], other[at]);
        // Both round the exponent's argument, which is large where the result is almost 0 (as in the test above), and
        // a derivative's terms cancel next to its zero.
        const float cancelled = which % 2 == 1 ? 1e-6F : 1e-29F;
        const bool equal = stored[i] == want || (std::isnan(want) && std::isnan(stored[i]));
        EXPECT_TRUE(equal || std::fabs(stored[i] - want) <= 4e-6F * std::fabs(want) + cancelled)
            << which << ": " << x[at] << " gives " << stored[i] << ", elsewhere " << want;
        if (which % 2 == 0 && !std::isnan(want)) {
          EXPECT_EQ(std::signbit(stored[i]), std::signbit(want)) << which << ": " << x[at];
        }
      }
    }
  }
}

TEST(BlockIo, NarrowsAsTheCoreRoundsForEveryUpperHalfAndTie) {
  // Around each bf16: itself, just below and above the middle between it and the next, and the middle (a tie).
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper) {
    for (const std::uint32_t lower : {0U, 0x7FFFU, 0x8000U, 0x8001U})
      values.push_back(std::bit_cast<float>(upper << 16U | lower));
  }
  std::vector<bf16> narrowed(values.size());
  narrow_run(values.data(), static_cast<std::int64_t>(values.size()), narrowed.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double got = load(DType::bf16, reinterpret_cast<const std::byte*>(&narrowed[i]));
    const double want = round_to(DType::bf16, static_cast<double>(values[i]));
    ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << values[i];
  }
}

TEST(BlockIo, WidensEveryBf16Exactly) {
  std::vector<bf16> values(0x10000);
  for (std::uint32_t i = 0; i < 0x10000U; ++i) values[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> widened(values.size());
  widen_run(values.data(), static_cast<std::int64_t>(values.size()), widened.data());
  for (std::uint32_t i = 0; i < 0x10000U; ++i) ASSERT_EQ(std::bit_cast<std::uint32_t>(widened[i]), i << 16U);
}

}  // namespace vector_math_test
}  // namespace gpubench::cpu
