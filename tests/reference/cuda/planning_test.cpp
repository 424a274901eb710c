// Decisions of the CUDA backend that need no GPU: candidates chosen without timing, and types without arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "reference/cuda/autotune.h"
#include "reference/cuda/execution.h"
#include "reference/cuda/kernel.h"
#include "reference/ops/attention.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "tests/thrown_text.h"

namespace gpubench::cuda {
namespace planning_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Planning : public ::testing::Test {
 protected:
  // These tests reach neither a library nor a stream.
  [[nodiscard]] CudaContext context(PlanOptions options = {}) const {
    return {traits_, reinterpret_cast<const CublasLt&>(no_library_), reinterpret_cast<const Cudnn&>(no_library_),
            nullptr, std::move(options)};
  }
  [[nodiscard]] Plan choose(const PlanOptions& options, const std::vector<std::string>& names) const {
    std::vector<Plan> candidates;
    for (const std::string& name : names)
      candidates.push_back(plan_of(name, 256, [](std::span<const Tensor>, Workspace) { return [](cudaStream_t) {}; }));
    OpCall call;
    call.kind = gemm_kind;
    call.label = "product";
    return fastest_of(call, candidates, {}, {}, context(options));
  }

  static DeviceTraits ampere() {
    DeviceTraits traits;
    traits.compute_capability = 80;
    return traits;
  }
  DeviceTraits traits_ = ampere();
  alignas(64) std::byte no_library_[64] = {};
};

TEST_F(Planning, ARememberedCandidateIsTakenUntimedAndSaysSo) {
  const Plan plan = choose({.remembered = "b"}, {"a", "b", "c"});
  EXPECT_EQ(plan->implementation(), "b");
  EXPECT_EQ(plan->choice(), Choice::remembered);
  EXPECT_EQ(plan->workspace_bytes(), 256U);
  EXPECT_NE(dynamic_cast<const CudaPlan*>(plan.get()), nullptr);
}

// The driver copies pageable memory with work on the host, for which graphs have no node.
TEST_F(Planning, CopiesOfPageableMemoryAreNotRecordedAndSaySo) {
  const auto planned = [this](Memory from, Memory to) {
    OpCall copying;
    copying.kind = copy_kind;
    std::vector<TensorSpec> specs(2, tensor("x", DType::f32, {64}, Role::input));
    specs[0].placement = Placement::in(from);
    specs[1].placement = Placement::in(to);
    return implementation_of(copy_kind).plan(copying, specs, context());
  };
  const auto launch = [](const Plan& plan) {
    const std::vector<Tensor> tensors(2, Tensor{tensor("x", DType::f32, {64}, Role::input), nullptr});
    return std::vector{dynamic_cast<const CudaPlan&>(*plan).bind(tensors, {})};
  };
  for (const auto& [from, to] :
       {std::pair(Memory::pageable_host, Memory::device), {Memory::device, Memory::pageable_host}}) {
    const Plan plan = planned(from, to);
    EXPECT_EQ(plan->implementation(), "cuda:memcpy,by stream");
    EXPECT_FALSE(are_capturable(launch(plan)));
  }
  const Plan pinned = planned(Memory::pinned_host, Memory::device);
  EXPECT_EQ(pinned->implementation(), "cuda:memcpy");
  EXPECT_TRUE(are_capturable(launch(pinned)));
}

TEST(RunQueues, AreKeptWhileCasesTakeTurnsAndNoLongerThanTheirCopies) {
  RunQueues queues;
  std::vector<Launch> cases;
  const auto queue_of = [&](std::size_t i) { return &queues.queue_of(std::span(cases).subspan(i, 1), 8, 64, nullptr); };
  std::vector<const RunQueue*> made;
  for (std::size_t i = 0; i < RunQueues::most; ++i) {
    cases.push_back(launch_of([](cudaStream_t) {}));
    made.push_back(queue_of(i));
  }
  for (std::size_t i = 0; i < RunQueues::most; ++i) EXPECT_EQ(queue_of(i), made[i]) << i;
  (void)queues.queue_of(std::span(cases).first(1), 16, 64, nullptr);  // another batch: one queue more than are kept
  EXPECT_EQ(queues.size(), RunQueues::most);
  EXPECT_EQ(queue_of(1), made[1]);  // the queue idle longest, the one before, was dropped
  cases.resize(1);
  (void)queue_of(0);
  EXPECT_EQ(queues.size(), 2U);  // the remaining case, for two batches
}

TEST_F(Planning, APinWinsOverWhatIsRemembered) {
  EXPECT_EQ(choose({.pinned = "c", .remembered = "b"}, {"a", "b", "c"})->implementation(), "c");
  EXPECT_THROW((void)choose({.pinned = "d", .remembered = "b"}, {"a", "b", "c"}), Unsupported);
}

TEST_F(Planning, WhereThereIsOneCandidateThereIsNoChoice) {
  EXPECT_EQ(choose({}, {"a"})->choice(), Choice::only);
  EXPECT_EQ(choose({.remembered = "b"}, {"a"})->implementation(), "a");  // not a candidate: ignored
  EXPECT_EQ(choose({.remembered = "b"}, {"a"})->choice(), Choice::only);
}

TEST_F(Planning, WithoutACandidateTheCallIsUnsupported) {
  EXPECT_THROW((void)choose({.remembered = "b"}, {}), Unsupported);
}

// Documents are refused without asking cuDNN.
TEST_F(Planning, AttentionThatCudnnDoesNotTakeRunsOnOwnKernelsAndSaysSo) {
  const auto planned = [this](const Math& math, PlanOptions options) {
    Program program;
    const ValueId x = program.add(tensor("x", DType::f32, {1, 8, 1, 16}, Role::input));
    const ValueId documents = program.add(tensor("documents", DType::i32, {1, 3}, Role::input));
    attention_forward(program, {}, math, "attention", x, x, x, {.documents = documents});
    const OpCall& call = program.op(0);
    std::vector<ValueId> ids = call.inputs;
    ids.insert(ids.end(), call.outputs.begin(), call.outputs.end());
    return implementation_of(attention_forward_kind)
        .plan(call, specs_of(program, ids), context(std::move(options)))
        ->implementation();
  };
  const auto refusal = [&](const Math& math, PlanOptions options) {
    try {
      return planned(math, std::move(options));
    } catch (const Unsupported& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(planned({}, {}), "gpubench:sm80");
  EXPECT_EQ(planned({}, {.remembered = "cudnn:eng=1"}), "gpubench:sm80");
  EXPECT_EQ(planned({}, {.pinned = "gpubench:sm80"}), "gpubench:sm80");
  EXPECT_THAT(refusal({}, {.pinned = "cudnn:eng=1"}), HasSubstr("documents; cuDNN masks them only as ragged tensors"));
  EXPECT_THAT(refusal({.inputs = Math::Inputs::tf32}, {}), AllOf(HasSubstr("ragged tensors"), HasSubstr("lack tf32")));
}

TEST_F(Planning, ProductsOfEightBitNumbersAreRefusedByNameWhereTheDeviceHasNone) {
  Program program;
  const ValueId a = program.add(tensor("a", DType::f8_e4m3, {64, 64}, Role::input));
  const ValueId b = program.add(tensor("b", DType::f8_e4m3, {64, 64}, Role::input));
  const ValueId scale_a = program.add(tensor("scale_a", DType::f32, {1}, Role::scalar));
  const ValueId scale_b = program.add(tensor("scale_b", DType::f32, {1}, Role::scalar));
  (void)gemm(program, {.transpose_b = true, .scaled = true}, Math{}, "product", a, b,
             {.scale_a = scale_a, .scale_b = scale_b});
  std::vector<ValueId> ids = program.op(0).inputs;
  ids.insert(ids.end(), program.op(0).outputs.begin(), program.op(0).outputs.end());
  EXPECT_THAT(thrown_text<Unsupported>(
                  [&] { (void)implementation_of(gemm_kind).plan(program.op(0), specs_of(program, ids), context()); }),
              HasSubstr("a: f8_e4m3[64, 64]; products of 8-bit numbers need compute capability 8.9, this "
                        "device has 8.0"));
}

}  // namespace planning_test
}  // namespace gpubench::cuda
