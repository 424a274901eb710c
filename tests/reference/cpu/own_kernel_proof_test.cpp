// A kernel's trial must accept right kernels and reject wrong ones, on any processor.
#include "reference/cpu/own_kernel_proof.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

#include "reference/cpu/block_io.h"
#include "reference/cpu/usable_isa.h"
#include "tests/reference/cpu/each_target.h"

namespace gpubench::cpu {
namespace own_kernel_proof_test {

void plain_silu(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  for (std::int64_t i = 0; i < count; ++i) y[0][i] = x[0][i] / (1.0F + std::exp(-x[0][i]));
}
double silu(double x) { return x / (1.0 + std::exp(-x)); }

Runs spoiled;

/// The trial's result for a copy of runs() with one function spoiled.
template <class Spoil>
bool holds_with(const Spoil& spoil) {
  spoiled = runs();
  spoil(spoiled);
  return runs_hold(spoiled);
}

TEST(OwnKernelProof, TakesRightKernelsForRight) {
  EXPECT_TRUE(vector_kernels_hold());
  EXPECT_TRUE(runs_hold(runs()));
  EXPECT_TRUE(pointwise_holds({plain_silu, plain_silu}, silu));
}

class EveryTarget : public testing::EachTarget {};
GPUBENCH_ON_EACH_TARGET(EveryTarget);

TEST_P(EveryTarget, HasKernelsThatHold) { EXPECT_TRUE(vector_kernels_hold()); }

TEST(OwnKernelProof, SeesAnActivationWrongInOneNumberOrNotAtAllThere) {
  const auto wrong_in_one = [](const float* const* x, float none, std::int64_t count, float* const* y) {
    plain_silu(x, none, count, y);
    y[0][count - 1] *= 1.0001F;
  };
  const auto one_too_many = [](const float* const* x, float none, std::int64_t count, float* const* y) {
    plain_silu(x, none, count + 1, y);
  };
  const auto nothing = [](const float* const*, float, std::int64_t, float* const*) {};
  for (const PointwiseKernel::Function wrong :
       {PointwiseKernel::Function(wrong_in_one), PointwiseKernel::Function(one_too_many),
        PointwiseKernel::Function(nothing)}) {
    EXPECT_FALSE(pointwise_holds({wrong, plain_silu}, silu));
    EXPECT_FALSE(pointwise_holds({plain_silu, wrong}, silu));
  }
}

TEST(OwnKernelProof, SeesAnExponentialOrItsSumThatIsWrong) {
  EXPECT_FALSE(holds_with([](Runs& of) {
    of.exp = [](const float* x, float largest, std::int64_t count, float* y) {
      const float sum = runs().exp(x, largest, count, y);
      if (y != nullptr) y[5] *= 1.0001F;
      return sum;
    };
  }));
  EXPECT_FALSE(holds_with([](Runs& of) {
    of.exp = [](const float* x, float largest, std::int64_t count, float* y) {
      return 1.0001F * runs().exp(x, largest, count, y);
    };
  }));
  EXPECT_FALSE(holds_with([](Runs& of) {
    of.softmax = [](const float* x, float shift, float /*factor*/, std::int64_t count, float* y) {
      runs().softmax(x, shift, 1.0F, count, y);
    };
  }));
}

TEST(OwnKernelProof, SeesNarrowingThatTruncatesOrTakesSubnormalNumbersForZero) {
  EXPECT_FALSE(narrowing_holds([](const float* from, bf16* to) {
    for (int i = 0; i < 160; ++i) to[i].bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(from[i]) >> 16U);
  }));
  EXPECT_FALSE(narrowing_holds([](const float* from, bf16* to) {
    for (int i = 0; i < 160; ++i)
      to[i] = narrow<bf16>(std::fpclassify(from[i]) == FP_SUBNORMAL ? 0.0F * from[i] : from[i]);
  }));
}

TEST(OwnKernelProof, SeesEachSumThatIsWrong) {
  EXPECT_FALSE(holds_with([](Runs& of) {
    of.sum = [](const float* x, std::int64_t count, const float* ahead) { return runs().sum(x, count - 1, ahead); };
  }));
  EXPECT_FALSE(holds_with([](Runs& of) {
    of.dot = [](const float* a, const float* b, std::int64_t count) { return runs().dot(a, b, count - 1); };
  }));
  EXPECT_FALSE(holds_with([](Runs& of) {
    of.squared_deviations = [](const float* x, float /*mean*/, std::int64_t count, const float* ahead) {
      return runs().squared_deviations(x, 0.0F, count, ahead);
    };
  }));
  EXPECT_FALSE(holds_with([](Runs& of) { of.largest = [](const float* x, std::int64_t) { return x[0]; }; }));
}

TEST(OwnKernelProof, SeesEachPassOverElementsThatIsWrong) {
  EXPECT_FALSE(holds_with([](Runs& of) {
    of.blend = [](const float* a, float, const float* b, float, std::int64_t count, float* y) {
      runs().blend(a, 1.0F, b, 1.0F, count, y);
    };
  }));
  EXPECT_FALSE(holds_with([](Runs& of) {
    of.normalize = [](const float* x, const float* gamma, const float* /*beta*/, float mean, float rstd,
                      std::int64_t count, float* y,
                      bool streaming) { runs().normalize(x, gamma, x, mean, rstd, count, y, streaming); };
  }));
  EXPECT_FALSE(holds_with([](Runs& of) {
    of.stream = [](const float* x, std::int64_t count, float* y) { runs().stream(x, count - 16, y); };
  }));
}

TEST(OwnKernelProof, SeesASoftmaxThatIsWrongInAWeightOrASum) {
  EXPECT_FALSE(softmax_holds([](const ScoreBlock& block) {
    softmax_in_place(block);
    block.scores[1][3] *= 1.0001F;
  }));
  EXPECT_FALSE(softmax_holds([](const ScoreBlock& block) {
    softmax_in_place(block);
    block.sums[0] *= 2.0F;
  }));
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
  EXPECT_EQ(names, (std::set<std::string>{"amx_bf16", "avx2", "avx512", "avx512_bf16"}));
}

}  // namespace own_kernel_proof_test
}  // namespace gpubench::cpu
