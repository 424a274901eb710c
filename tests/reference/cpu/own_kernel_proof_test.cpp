// What tries a kernel must take a right one for right and a wrong one for wrong, on whatever processor: portable code
// stands in for the kernels, and is spoiled in one number.
#include "reference/cpu/own_kernel_proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "reference/cpu/norm_passes.h"
#include "reference/cpu/usable_isa.h"
#include "reference/cpu/vector_math.h"

namespace gpubench::cpu {
namespace own_kernel_proof_test {

void portable_gelu(const float* x, const float* /*none*/, float /*none*/, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = vector_gelu_tanh(x[i]);
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
  EXPECT_TRUE(gelu_holds(portable_gelu));
  EXPECT_TRUE(norm_passes_hold(portable_norm));
  EXPECT_TRUE(streaming_holds(portable_copy, portable_triad));
  EXPECT_TRUE(softmax_holds(portable_softmax, portable_rounding_softmax));
  EXPECT_TRUE(product_holds(multiply_widened));
}

TEST(OwnKernelProof, SeesGeluWrongInOneNumberOrNotAtAllThere) {
  EXPECT_FALSE(gelu_holds([](const float* x, const float* none, float factor, std::int64_t count, float* y) {
    portable_gelu(x, none, factor, count, y);
    y[count - 1] *= 1.0001F;
  }));
  EXPECT_FALSE(gelu_holds([](const float*, const float*, float, std::int64_t, float*) {}));
  EXPECT_FALSE(gelu_holds([](const float* x, const float* none, float factor, std::int64_t count, float* y) {
    portable_gelu(x, none, factor, count + 1, y);  // one too many
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
