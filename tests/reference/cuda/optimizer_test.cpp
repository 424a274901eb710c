#include <gtest/gtest.h>

#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/optimizer_contract.h"

namespace gpubench {
namespace optimizer_test {

using testing::emulated_contract;

// A chunk has 8192 elements; the blocks of three multiprocessors take several turns. Copies of f32 weights never have
// the gradient's type.
const testing::Trainings trainings{{1, 7, 0, 1023, 20000, 64, 8192, 3},
                                   {{{DType::f32, DType::bf16, DType::f16}, {DType::bf16, DType::f16, DType::f32}},
                                    {{DType::f64}, {DType::f64}, DType::f64}}};

TEST(CudaGradientNorm, ManyTensorsLieWithinTheBound) {
  testing::expect_bounds_of_gradient_norm(emulated_contract(), trainings);
}

TEST(CudaGradientNorm, NeitherOverflowsNorUnderflows) { testing::expect_gradient_norm_in_range(emulated_contract()); }

TEST(CudaClip, ScalesAboveTheLimitAndOnlyThere) { testing::expect_bounds_of_clip(emulated_contract(), trainings); }

TEST(CudaClip, ANaNNormReachesEveryGradient) { testing::expect_nan_norm_to_reach_every_gradient(emulated_contract()); }

TEST(CudaAdamW, ManyTensorsWithAndWithoutCopiesLieWithinTheirBounds) {
  testing::expect_bounds_of_adamw(emulated_contract(), trainings);
}

TEST(CudaClipAdamW, ManyTensorsWithAndWithoutCopiesLieWithinTheirBounds) {
  testing::expect_bounds_of_clip_adamw(emulated_contract(), trainings);
}

TEST(CudaClipAdamW, ANaNNormReachesEveryWeight) { testing::expect_nan_norm_to_reach_every_weight(emulated_contract()); }

TEST(CudaSgd, ManyTensorsOfEveryKindLieWithinTheirBounds) {
  testing::expect_bounds_of_sgd(emulated_contract(), trainings);
}

TEST(CudaLion, ManyTensorsOfEveryKindLieWithinTheirBounds) {
  testing::expect_bounds_of_lion(emulated_contract(), trainings);
}

TEST(CudaAdam, ADecayWithinTheGradientLiesWithinItsBounds) {
  testing::expect_bounds_of_l2_adam(emulated_contract(), trainings);
}

TEST(CudaLossScaling, AStepAndASkippedOneLieWithinTheirBounds) {
  testing::expect_bounds_of_loss_scaling(emulated_contract(), trainings);
}

TEST(CudaAdamW, TheFirstStepMovesByTheLearningRate) {
  testing::expect_first_step_by_the_learning_rate(emulated_contract());
}

TEST(CudaAdamW, AChangedLearningRateCountsWithoutBindingAgain) {
  testing::expect_a_changed_learning_rate_to_count(emulated_contract());
}

}  // namespace optimizer_test
}  // namespace gpubench
