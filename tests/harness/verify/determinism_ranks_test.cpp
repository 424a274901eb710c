// Determinism of several ranks: replicas, one rank with each rank's data, and sums over the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/run/forwarding_backend.h"
#include "harness/run/rank_group.h"
#include "harness/verify/determinism.h"
#include "reference/cpu/cpu_backend.h"
#include "suites/suites.h"
#include "tests/harness/run/faulty_ranks.h"
#include "tests/harness/run/run_fixture.h"

namespace gpubench {
namespace determinism_ranks_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

PlannedCase planned(const std::string& filter) {
  Selection selection;
  selection.tier = Tier::smoke;
  selection.filters = {filter};
  selection.ranks = {2};
  return plan_cases(all_suites(), selection).at(0);
}

const std::string sum_case = "^collectives/all_reduce/.*/f32/";
const std::string step_case = "^transformer/llama_train_step/.*/f32/";

DeterminismRecord measured(const std::string& filter, const std::function<void(RankSet&)>& damage = {}) {
  RunOptions options = sim::smoke_options();
  options.open_ranks = [&](int ranks, const OwnImplementation*) {
    RankSet set = open_cpu_ranks(ranks);
    if (damage) damage(set);
    return open_rank_group(std::move(set));
  };
  const std::unique_ptr<Backend> alone = open_cpu_backend(1);
  const DeterminismEffort effort{2};
  return DeterminismProbe(*alone, options, effort).measure(planned(filter));
}

Repetition of(const DeterminismRecord& record, std::string_view way) {
  for (const Repetition& repetition : record.repetitions) {
    if (repetition.way == way) return repetition;
  }
  return {"", Sameness::untested, "no such way; " + record.unsupported};
}

// Flips the lowest bit of element 5 of one op's output.
class OneBitOff final : public ForwardingBackend {
 public:
  OneBitOff(std::unique_ptr<Backend> of, std::string label)
      : ForwardingBackend(*of, nullptr), held_(std::move(of)), label_(std::move(label)) {}
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    Plan plan = ForwardingBackend::plan(call, tensors, options);
    if (call.label == label_) wrong_ = plan;
    return plan;
  }
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    Launch right = ForwardingBackend::bind(plan, tensors, workspace);
    if (plan != wrong_) return right;
    return held_->sequence(
        std::array{right, held_->launch_of([y = tensors.back()](void*) { flip_bits(y.spec.dtype, y.data, 5, 1U); })},
        {{{}, {0}}});
  }

 private:
  std::unique_ptr<Backend> held_;
  std::string label_;
  Plan wrong_;
};

TEST(DeterminismOfRanks, HoldsWhereNothingIsWrong) {
  const DeterminismRecord step = measured(step_case);
  for (const std::string_view way : {way::again, way::op_by_op, way::replicas, way::one_rank})
    EXPECT_EQ(of(step, way).outcome, Sameness::same) << way << ": " << of(step, way).text;
  EXPECT_THAT(of(step, way::graph).text, HasSubstr("has no graphs"));
  EXPECT_THAT(of(step, way::one_batch).text, HasSubstr(" summed gradients have the same bits"));
  const DeterminismRecord sum = measured(sum_case);
  EXPECT_EQ(of(sum, way::replicas).outcome, Sameness::same);
  EXPECT_EQ(of(sum, way::one_rank).text, "it has no program of one rank");
}

TEST(DeterminismOfRanks, ASumThatOneRankHasOtherwiseIsNamedWithIt) {
  const Repetition replicas = of(measured(sum_case,
                                          [](RankSet& set) {
                                            set.communicator = testing::damaged(
                                                std::move(set.communicator), 2,
                                                [](int rank, std::span<const Tensor> tensors, std::size_t inputs) {
                                                  if (rank == 1) flip_bits(DType::f32, tensors[inputs + 1].data, 5, 1U);
                                                });
                                          }),
                                 way::replicas);
  EXPECT_EQ(replicas.outcome, Sameness::differs);
  EXPECT_THAT(replicas.text, AllOf(HasSubstr("'y@1'[5] of op 'y' (all_reduce) on rank 1, "), HasSubstr("in bit 0"),
                                   HasSubstr("; the other is on rank 0")));
}

TEST(DeterminismOfRanks, WhatARankComputesOtherwiseThanOneAloneIsNamedWithIt) {
  const DeterminismRecord record = measured(step_case, [](RankSet& set) {
    set.backends[1] = std::make_unique<OneBitOff>(std::move(set.backends[1]), "block0.qkv@1");
  });
  EXPECT_EQ(of(record, way::again).outcome, Sameness::same) << "it is so each time";
  const Repetition alone = of(record, way::one_rank);
  EXPECT_EQ(alone.outcome, Sameness::differs);
  EXPECT_THAT(alone.text,
              AllOf(HasSubstr("of op 'block0.qkv@1' (gemm) in layer block0 on rank 1, "), HasSubstr(", in bit 0")));
}

}  // namespace determinism_ranks_test
}  // namespace gpubench
