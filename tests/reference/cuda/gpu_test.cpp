// Tests that need a GPU. Without one they are skipped ("no CUDA device"), or fail with GPUBENCH_REQUIRE_GPU=1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/plan/plan.h"
#include "harness/run/rank_group.h"
#include "harness/run/run.h"
#include "reference/cuda/cuda_backend.h"
#include "reference/cuda/execution.h"
#include "reference/cuda/runtime.h"
#include "reference/ops/gemm.h"
#include "suites/suites.h"
#include "tests/reference/cuda/suite_runs.h"
#include "tests/reference/examined_memory.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace gpu_test {

using ::testing::AllOf;
using ::testing::Contains;
using testing::expect_passes;
using ::testing::HasSubstr;
using testing::run_cases;

std::unique_ptr<Backend> open_virtual(int ranks, const OwnImplementation* /*under_test*/) {
  return open_rank_group(cuda::open_cuda_ranks({.ranks = ranks, .is_virtual = true}));
}

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    GPUBENCH_NEEDS_GPUS(1);
    backend_ = cuda::open_cuda_backend({});
  }

  // c += a b with ones: each run adds exactly k to every element, so c counts the runs.
  struct Counter {
    static constexpr std::int64_t size = 64;
    Buffer a, b, c, workspace;
    Launch launch;

    explicit Counter(Backend& backend) {
      Program program;
      const auto add = [&](const char* name) {
        return program.add(tensor(name, DType::f32, Shape{size, size}, Role::input));
      };
      const ValueId a_id = add("a");
      const ValueId b_id = add("b");
      const ValueId c_id = add("c");
      Gemm attributes;
      attributes.beta = 1.0;
      (void)gemm(program, attributes, Math{}, "count", a_id, b_id, {.c_in = c_id});
      const OpCall& call = program.op(0);
      const std::vector<TensorSpec> specs = [&] {
        std::vector<ValueId> ids = call.inputs;
        ids.insert(ids.end(), call.outputs.begin(), call.outputs.end());
        return specs_of(program, ids);
      }();
      const Plan plan = backend.plan(call, specs);
      const std::vector<float> ones(size * size, 1.0F);
      const std::vector<float> zeros(size * size, 0.0F);
      for (Buffer* buffer : {&a, &b, &c}) {
        *buffer = backend.allocate(size * size * sizeof(float));
        backend.write(buffer->data(), std::as_bytes(std::span(buffer == &c ? zeros : ones)));
      }
      workspace = backend.allocate(plan->workspace_bytes());
      const std::vector<Tensor> tensors{
          {specs[0], a.data()}, {specs[1], b.data()}, {specs[2], c.data()}, {specs[3], c.data()}};
      launch = backend.bind(plan, tensors, {workspace.data(), workspace.bytes()});
    }

    [[nodiscard]] double runs(Backend& backend) const {
      std::vector<float> values(size * size);
      backend.read(std::as_writable_bytes(std::span(values)), c.data());
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      return *low == *high ? static_cast<double>(*low) / size : -1.0;
    }
  };

  std::unique_ptr<Backend> backend_;
};

class GpuSuite : public Gpu, public ::testing::WithParamInterface<std::string> {};

TEST_P(GpuSuite, EveryCaseOfItsLowestTierPassesOrIsUnsupportedWithAReason) {
  Selection selection;
  selection.suites = {GetParam()};
  selection.default_launch = LaunchMode::graph;
  selection.virtual_ranks = true;  // for suites of two or more ranks
  std::vector<PlannedCase> plan;
  for (const Tier tier : {Tier::smoke, Tier::quick, Tier::standard}) {  // device suites start at standard
    selection.tier = tier;
    plan = plan_cases(all_suites(), selection);
    if (!plan.empty()) break;
  }
  RunOptions options;
  options.tier = Tier::smoke;
  options.open_ranks = open_virtual;
  ASSERT_FALSE(plan.empty());
  EXPECT_GT(expect_passes(run_cases(*backend_, plan, options)), 0);
}

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const Suite& suite : all_suites()) {
    if (!suite.only_by_name) names.push_back(suite.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, GpuSuite, ::testing::ValuesIn(suite_names()),
                         [](const auto& named) { return named.param; });

TEST_F(Gpu, AStepOnVirtualRanksKeepsEveryBoundAndSaysThatTheyAreVirtual) {
  Selection selection;
  selection.suites = {"transformer"};
  selection.tier = Tier::smoke;
  selection.default_launch = LaunchMode::graph;
  selection.ranks = {2, 4};
  selection.virtual_ranks = true;
  RunOptions options;
  options.tier = Tier::smoke;
  options.open_ranks = open_virtual;
  const std::vector<CaseRecord> records = run_cases(*backend_, plan_cases(all_suites(), selection), options);
  EXPECT_GT(expect_passes(records), 0);
  for (const CaseRecord& record : records) {
    EXPECT_THAT(record.id, HasSubstr("/virtual/x"));
    if (record.verdict != Verdict::pass) continue;
    EXPECT_THAT(record.summary.flags, Contains("virtual")) << record.id;
  }
}

// The tuner chooses the candidate. bias_gradient_test.cpp judges all of them on the CPU, except for behaviour of the
// library's epilogues beyond its manual.
TEST_F(Gpu, BiasGradientsBesideTheirProductsKeepTheirBoundsInATrainingStep) {
  Selection selection;
  selection.suites = {"transformer"};
  selection.tier = Tier::quick;
  const std::vector<PlannedCase> plan = plan_cases(all_suites(), selection);
  for (const bool deterministic : {false, true}) {
    RunOptions options;
    options.tier = Tier::smoke;
    options.deterministic = deterministic;
    int passed = 0;
    for (const CaseRecord& record : run_cases(*backend_, plan, options)) {
      if (record.verdict == Verdict::unsupported) continue;  // attention gradient in tf32
      EXPECT_EQ(record.verdict, Verdict::pass) << record.id << ": " << record.reason;
      ASSERT_TRUE(record.rewrites.has_value()) << record.id;
      EXPECT_THAT(*record.rewrites, Contains(HasSubstr("gemm_gelu_bias_gradient"))) << record.id;
      EXPECT_THAT(*record.rewrites, Contains(HasSubstr("gemm_weight_bias_gradient"))) << record.id;
      ++passed;
    }
    EXPECT_GT(passed, 0) << "deterministic: " << deterministic;
  }
}

TEST_F(Gpu, AGraphRunsWhatItsSequenceHoldsOncePerReplay) {
  const Counter counter(*backend_);
  const std::vector<Launch> twice{counter.launch, counter.launch};
  const Launch graph = backend_->sequence(twice, {{{}, {0}}, LaunchMode::graph});
  EXPECT_EQ(counter.runs(*backend_), 0.0);  // capturing does not run the work
  backend_->run(graph);
  EXPECT_EQ(counter.runs(*backend_), 2.0);
  backend_->run(graph);
  EXPECT_EQ(counter.runs(*backend_), 4.0);
}

TEST_F(Gpu, JoinedGraphsRunEachCopyAsOftenAsTheRotationSays) {
  const cuda::Stream stream = cuda::make_stream();
  const Counter first(*backend_);
  const Counter second(*backend_);
  const Counter third(*backend_);
  std::vector<Launch> copies;
  for (const Counter* counter : {&first, &second, &third})
    copies.push_back(backend_->sequence(std::vector<Launch>{counter->launch}, {{{}}, LaunchMode::graph}));
  const cuda::RunQueue queue(copies, 64, 3 * 64, stream.get());
  EXPECT_EQ(queue.host_calls(64), 1);
  for (int sample = 0; sample < 3; ++sample) queue.enqueue(sample * 64, 64);
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  for (const Counter* counter : {&first, &second, &third}) EXPECT_EQ(counter->runs(*backend_), 64.0);
}

TEST_F(Gpu, TimesOfARoundArePositiveAndTheHostsAreNotShorterThanTheDevices) {
  const Counter counter(*backend_);
  for (const LaunchMode mode : {LaunchMode::stream, LaunchMode::graph}) {
    const Launch launch = backend_->sequence(std::vector<Launch>{counter.launch}, {{{}}, mode});
    const RoundTimes times = backend_->time(std::vector<Launch>{launch}, {5, 256, 3, 0.01});
    ASSERT_EQ(times.device_ns.size(), 5U);
    ASSERT_EQ(times.wall_ns.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_GT(times.device_ns[i], 256 * 500.0);  // a kernel takes at least 0.5 us
      EXPECT_GT(times.wall_ns[i], 0.8 * times.device_ns[i]);
    }
  }
}

TEST_F(Gpu, EqualCallsShareOnePlan) {
  Program program;
  const auto add = [&](const char* name) { return program.add(tensor(name, DType::f32, Shape{32, 32}, Role::input)); };
  (void)gemm(program, {}, Math{}, "one", add("a"), add("b"));
  (void)gemm(program, {}, Math{}, "two", add("c"), add("d"));
  (void)gemm(program, Gemm{.alpha = 2.0}, Math{}, "other", add("e"), add("f"));
  std::vector<Plan> plans;
  for (const OpCall& call : program.ops()) {
    std::vector<ValueId> ids = call.inputs;
    ids.insert(ids.end(), call.outputs.begin(), call.outputs.end());
    plans.push_back(backend_->plan(call, specs_of(program, ids)));
  }
  EXPECT_EQ(plans[0], plans[1]);
  EXPECT_NE(plans[0], plans[2]);
}

TEST_F(Gpu, ExaminesItsMemoryAsTheTrustedWayDoes) {
  testing::expect_memory_examined_as_on_the_host(*backend_, 100'000'003);
}

TEST_F(Gpu, MemoryThatDoesNotFitIsRefusedWithTheNumbersAndTheDeviceGoesOn) {
  const auto more = static_cast<std::size_t>(backend_->device().memory_bytes) * 2;
  EXPECT_THAT(thrown_text<BackendError>([&] { (void)backend_->allocate(more); }),
              AllOf(HasSubstr(std::to_string(more)), HasSubstr("are free")));
  const Counter counter(*backend_);
  backend_->run(counter.launch);
  EXPECT_EQ(counter.runs(*backend_), 1.0);
}

}  // namespace gpu_test
}  // namespace gpubench
