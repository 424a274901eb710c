// What tries a kernel must take a right one for right and a wrong one for wrong, on whatever processor: portable code
// stands in for the kernels, and is spoiled in one number.
#include "reference/cpu/own_kernel_proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "reference/cpu/block_io.h"
#include "reference/cpu/norm_passes.h"
#include "reference/cpu/usable_isa.h"
#include "reference/cpu/vector_math.h"

namespace gpubench::cpu {
namespace own_kernel_proof_test {

void portable_gelu(const float* x, const float* /*none*/, float /*none*/, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = vector_gelu_tanh(x[i]);
}

float gelu(float x, float /*none*/) { return vector_gelu_tanh(x); }

float portable_exp(const float* x, float largest, std::int64_t count, float* y) {
  float sum = 0.0F;
  for (std::int64_t i = 0; i < count; ++i) {
    const float e = vector_exp(x[i] - largest);
    if (y != nullptr) y[i] = e;
    sum += e;
  }
  return sum;
}
void portable_softmax_block(const float* x, float shift, float factor, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = factor * vector_exp(x[i] - shift);
}
void portable_narrow(const float* from, std::int64_t lines, bf16* to, bool /*streaming*/) {
  std::transform(from, from + 32 * lines, to, narrow<bf16>);
}

float portable_sum(const float* x, std::int64_t count, const float* /*ahead*/) { return sum_block(x, count); }
float portable_add(const float* x, const float* r, std::int64_t count, float* sum, float* streamed,
                   const float* /*ahead*/, const float* /*ahead*/) {
  add_block(x, r, count, sum);
  if (streamed != nullptr) std::copy_n(sum, count, streamed);
  return sum_block(sum, count);
}
float portable_squares(const float* x, float mean, std::int64_t count, const float* /*ahead*/) {
  return squared_deviation_block(x, mean, count);
}
const NormPasses portable_norm{portable_sum, portable_add, portable_squares, normalize_block};

void portable_copy(std::byte* to, const std::byte* from, std::size_t lines) { std::copy_n(from, lines * 64, to); }
void portable_triad(const float* b, const float* c, float factor, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = b[i] + factor * c[i];
}

void portable_softmax(const ScoreBlock& block, Rows<float> weights) {
  softmax_in_place(block);
  for (std::int64_t row = 0; row < block.rows; ++row) std::copy_n(block.scores[row], padded(block.keys), weights[row]);
}
void portable_rounding_softmax(const ScoreBlock& block, Rows<bf16> weights) {
  softmax_in_place(block);
  for (std::int64_t row = 0; row < block.rows; ++row) {
    for (std::int64_t i = 0; i < padded(block.keys); ++i) weights[row][i] = narrow<bf16>(block.scores[row][i]);
  }
}

TEST(OwnKernelProof, TakesRightKernelsForRight) {
  EXPECT_TRUE(vector_clones_hold());
  EXPECT_TRUE(pointwise_holds(portable_gelu, gelu));
  EXPECT_TRUE(exponentials_hold(portable_exp, portable_softmax_block));
  EXPECT_TRUE(narrowing_holds(portable_narrow));
  EXPECT_TRUE(norm_passes_hold(portable_norm));
  EXPECT_TRUE(streaming_holds(portable_copy, portable_triad));
  EXPECT_TRUE(softmax_holds(portable_softmax, portable_rounding_softmax));
  EXPECT_TRUE(product_holds(multiply_widened));
}

TEST(OwnKernelProof, SeesGeluWrongInOneNumberOrNotAtAllThere) {
  EXPECT_FALSE(pointwise_holds(
      [](const float* x, const float* none, float factor, std::int64_t count, float* y) {
        portable_gelu(x, none, factor, count, y);
        y[count - 1] *= 1.0001F;
      },
      gelu));
  EXPECT_FALSE(pointwise_holds([](const float*, const float*, float, std::int64_t, float*) {}, gelu));
  EXPECT_FALSE(pointwise_holds(
      [](const float* x, const float* none, float factor, std::int64_t count, float* y) {
        portable_gelu(x, none, factor, count + 1, y);  // one too many
      },
      gelu));
}

TEST(OwnKernelProof, SeesAnExponentialOrItsSumThatIsWrong) {
  EXPECT_FALSE(exponentials_hold(
      [](const float* x, float largest, std::int64_t count, float* y) {
        const float sum = portable_exp(x, largest, count, y);
        if (y != nullptr) y[5] *= 1.0001F;
        return sum;
      },
      portable_softmax_block));
  EXPECT_FALSE(exponentials_hold([](const float* x, float largest, std::int64_t count,
                                    float* y) { return 1.0001F * portable_exp(x, largest, count, y); },
                                 portable_softmax_block));
  EXPECT_FALSE(exponentials_hold(portable_exp, [](const float* x, float shift, float /*factor*/, std::int64_t count,
                                                  float* y) { portable_softmax_block(x, shift, 1.0F, count, y); }));
}

TEST(OwnKernelProof, SeesNarrowingThatTruncatesOrTakesSubnormalNumbersForZero) {
  EXPECT_FALSE(narrowing_holds([](const float* from, std::int64_t lines, bf16* to, bool /*streaming*/) {
    for (std::int64_t i = 0; i < 32 * lines; ++i)
      to[i].bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(from[i]) >> 16U);
  }));
  EXPECT_FALSE(narrowing_holds([](const float* from, std::int64_t lines, bf16* to, bool /*streaming*/) {
    for (std::int64_t i = 0; i < 32 * lines; ++i)
      to[i] = narrow<bf16>(std::fpclassify(from[i]) == FP_SUBNORMAL ? 0.0F * from[i] : from[i]);
  }));
}

TEST(OwnKernelProof, SeesEachPassOfANormThatIsWrong) {
  NormPasses passes = portable_norm;
  passes.sum = [](const float* x, std::int64_t count, const float*) { return sum_block(x, count - 1); };
  EXPECT_FALSE(norm_passes_hold(passes));
  passes = portable_norm;
  passes.add = [](const float* x, const float* r, std::int64_t count, float* sum, float* /*not streamed*/, const float*,
                  const float*) {
    add_block(x, r, count, sum);
    return sum_block(sum, count);
  };
  EXPECT_FALSE(norm_passes_hold(passes));
  passes = portable_norm;
  passes.squared_deviations = [](const float* x, float /*mean*/, std::int64_t count, const float*) {
    return squared_deviation_block(x, 0.0F, count);
  };
  EXPECT_FALSE(norm_passes_hold(passes));
  passes = portable_norm;
  passes.stream_normalized = [](const float* x, const float* gamma, const float* /*beta*/, float mean, float rstd,
                                std::int64_t count, float* y) { normalize_block(x, gamma, x, mean, rstd, count, y); };
  EXPECT_FALSE(norm_passes_hold(passes));
}

TEST(OwnKernelProof, SeesAStoreThatMissesALine) {
  EXPECT_FALSE(streaming_holds(
      [](std::byte* to, const std::byte* from, std::size_t lines) { portable_copy(to, from, lines - 1); },
      portable_triad));
  EXPECT_FALSE(streaming_holds(portable_copy, [](const float* b, const float* c, float factor, std::int64_t count,
                                                 float* y) { portable_triad(b, c, factor, count - 16, y); }));
}

TEST(OwnKernelProof, SeesASoftmaxThatIsWrongInEitherType) {
  EXPECT_FALSE(softmax_holds(
      [](const ScoreBlock& block, Rows<float> weights) {
        portable_softmax(block, weights);
        weights[1][3] *= 1.0001F;
      },
      portable_rounding_softmax));
  EXPECT_FALSE(softmax_holds(portable_softmax, [](const ScoreBlock& block, Rows<bf16> weights) {
    portable_rounding_softmax(block, weights);
    weights[2][7].bits ^= 2U;  // two units of the last place
  }));
  EXPECT_FALSE(softmax_holds(
      [](const ScoreBlock& block, Rows<float> weights) {
        portable_softmax(block, weights);
        block.sums[0] *= 2.0F;
      },
      portable_rounding_softmax));
}

TEST(OwnKernelProof, SeesAProductThatIsWrongOrForgetsToAccumulate) {
  EXPECT_FALSE(
      product_holds([](const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate) {
        multiply_widened(extents, a, b, c, accumulate);
        c[extents.m - 1][extents.n - 1] += 1.0F;
      }));
  EXPECT_FALSE(product_holds([](const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c,
                                bool /*accumulate*/) { multiply_widened(extents, a, b, c, false); }));
}

TEST(OwnKernelProof, EveryKernelThatMayBeUsedHereIsRight) {
  std::set<std::string> names;
  for (const OwnKernels& kernels : own_kernels()) {
    names.insert(kernels.isa);
    if (!kernels.announced() || !own_kernels_usable(kernels.isa)) continue;
    EXPECT_TRUE(kernels.hold()) << kernels.isa;
  }
  EXPECT_EQ(names, (std::set<std::string>{"amx_bf16", "avx512", "avx512_bf16"}));
}

}  // namespace own_kernel_proof_test
}  // namespace gpubench::cpu
