#include "reference/ops/optimizer.h"

#include <gtest/gtest.h>

#include "reference/cpu/parallel.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/optimizer_contract.h"

namespace gpubench {
namespace optimizer_test {

using testing::cpu_contract;

const testing::Trainings trainings{{1, 7, 0, 1023, 20000, 64, 9001, 3},
                                   {{{DType::f32}, {DType::bf16}},
                                    {{DType::bf16}, {DType::bf16}},
                                    {{DType::f16}, {DType::bf16}},
                                    {{DType::f32, DType::bf16}, {DType::f16, DType::f32}}}};

TEST(TensorList, EveryCutVisitsEachElementOnce) {
  cpu::TensorList list;
  for (const std::int64_t size : {5, 0, 64, 200, 1}) list.add(size);
  for (std::int64_t cut = 0; cut <= list.length(); cut += cpu::TensorList::alignment) {
    std::vector<std::vector<int>> visits = {
        std::vector<int>(5), {}, std::vector<int>(64), std::vector<int>(200), std::vector<int>(1)};
    const auto mark = [&](std::size_t tensor, std::int64_t first, std::int64_t count) {
      for (std::int64_t i = first; i < first + count; ++i) ++visits[tensor].at(static_cast<std::size_t>(i));
    };
    list.visit(0, cut, mark);
    list.visit(cut, list.length(), mark);
    for (const std::vector<int>& tensor : visits) {
      for (const int count : tensor) ASSERT_EQ(count, 1) << "cut at " << cut;
    }
  }
}

TEST(GradientNorm, ManyTensorsLieWithinTheBound) {
  for (const int threads : {1, 3}) testing::expect_bounds_of_gradient_norm(cpu_contract(threads), trainings);
}

TEST(GradientNorm, NeitherOverflowsNorUnderflows) { testing::expect_gradient_norm_in_range(cpu_contract()); }

TEST(Clip, ScalesAboveTheLimitAndOnlyThere) {
  for (const int threads : {1, 3}) testing::expect_bounds_of_clip(cpu_contract(threads), trainings);
}

TEST(Clip, ANaNNormReachesEveryGradient) { testing::expect_nan_norm_to_reach_every_gradient(cpu_contract()); }

TEST(AdamW, ManyTensorsWithAndWithoutCopiesLieWithinTheirBounds) {
  for (const int threads : {1, 3}) testing::expect_bounds_of_adamw(cpu_contract(threads), trainings);
}

TEST(ClipAdamW, ManyTensorsWithAndWithoutCopiesLieWithinTheirBounds) {
  for (const int threads : {1, 3}) testing::expect_bounds_of_clip_adamw(cpu_contract(threads), trainings);
}

TEST(ClipAdamW, ANaNNormReachesEveryWeight) { testing::expect_nan_norm_to_reach_every_weight(cpu_contract()); }

TEST(Sgd, ManyTensorsOfEveryKindLieWithinTheirBounds) {
  for (const int threads : {1, 3}) testing::expect_bounds_of_sgd(cpu_contract(threads), trainings);
}

TEST(Lion, ManyTensorsOfEveryKindLieWithinTheirBounds) {
  for (const int threads : {1, 3}) testing::expect_bounds_of_lion(cpu_contract(threads), trainings);
}

TEST(Adam, ADecayWithinTheGradientLiesWithinItsBounds) {
  for (const int threads : {1, 3}) testing::expect_bounds_of_l2_adam(cpu_contract(threads), trainings);
}

TEST(LossScaling, AStepAndASkippedOneLieWithinTheirBounds) {
  for (const int threads : {1, 3}) testing::expect_bounds_of_loss_scaling(cpu_contract(threads), trainings);
}

TEST(AdamW, TheFirstStepMovesByTheLearningRate) { testing::expect_first_step_by_the_learning_rate(cpu_contract()); }

TEST(AdamW, AChangedLearningRateCountsWithoutBindingAgain) {
  testing::expect_a_changed_learning_rate_to_count(cpu_contract());
}

// Copies of 10 million weights take 20 MB, which are streamed.
TEST(AdamW, ALargeTensorWithACopyLiesWithinItsBound) {
  const testing::Training t = testing::training({.copies = true}, {10'000'019}, {{DType::bf16}, {DType::bf16}});
  EXPECT_EQ(cpu_contract().judge(
                t.program, [&](testing::ProgramRun& run) { set_state(run, t, 3); }, 997),
            "");
}

}  // namespace optimizer_test
}  // namespace gpubench
