// Training on real and simulated devices.
#include "harness/verify/learning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "harness/run/forwarding_backend.h"
#include "reference/cpu/cpu_backend.h"
#include "tests/fakes/sim/sim_backend.h"
#include "tests/suites/workloads.h"
#include "tests/trials.h"

namespace gpubench {
namespace learning_test {

using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

PlannedCase planned(const std::string& suite, const std::string& workload, const Dims& dims,
                    const std::string& recipe) {
  PlannedCase one;
  one.c = {suite, workload, dims, recipe, {}, 1, "small", Tier::smoke, CacheMode::step};
  one.workload = testing::workload_named(suite, workload);
  return with_program(std::move(one));
}

const Dims& small_dims() {
  static const Dims dims{{"b", 2}, {"s", 16}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"vocab", 64}};
  return dims;
}
PlannedCase gpt2(const std::string& recipe) { return planned("transformer", "gpt2_train_step", small_dims(), recipe); }

// 16 steps: four turns of the batches, in which the loss falls by more than 5%.
ModelLearning learned(Backend& backend, const std::vector<PlannedCase>& cases, const RunOptions& options = {},
                      const LearningEffort& effort = {16, 3, false}) {
  const StopFlag stop{0};
  return learn(
      backend, cases, options, effort, [](const std::string&) {}, stop);
}

TEST(Learning, OnTheCpuPassesInF16) {
  const ModelLearning model = learned(*open_cpu_backend(), {gpt2("f16")});
  EXPECT_EQ(model.verdict(), Verdict::pass) << model.recipes.front().reason;
  EXPECT_THAT(model.recipes.front().lacking, IsEmpty());
}

TEST(Learning, PassesInTheRecipesThatADeviceHasAndIsEmulatedInOthers) {
  SimBackend backend(sim::parse_script("lacks=f16"));
  const ModelLearning model = learned(backend, {gpt2("f32"), gpt2("f16")});
  EXPECT_EQ(model.verdict(), Verdict::pass);
  EXPECT_EQ(model.model, "transformer/gpt2_train_step/b=2,s=16,layers=1,h=32,heads=2,vocab=64");
  ASSERT_THAT(model.recipes, SizeIs(2));
  EXPECT_THAT(model.exact_losses, SizeIs(16));
  EXPECT_LT(model.exact_last, 0.95 * model.exact_first);
  for (const RecipeLearning& recipe : model.recipes) {
    EXPECT_EQ(recipe.verdict, Verdict::pass) << recipe.reason;
    EXPECT_THAT(recipe.judged, SizeIs(3));
    EXPECT_THAT(recipe.losses, SizeIs(16));
    for (std::size_t i = 0; i < recipe.losses.size(); ++i) EXPECT_LE(recipe.low[i], recipe.high[i]);
  }
  EXPECT_THAT(model.recipes[0].lacking, IsEmpty());
  EXPECT_THAT(model.recipes[1].lacking, HasSubstr("f16"));  // the backend's message
  // In f32 the curves coincide, so the device keeps its state.
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_NEAR(model.recipes[0].losses[i], model.exact_losses[i], 1e-4 * model.exact_losses[i]);
}

TEST(Learning, IsTheSameWhereTheHostCannotSeeTheMemory) {
  SimBackend seen(sim::parse_script("")), opaque(sim::parse_script("opaque"));
  const ModelLearning a = learned(seen, {gpt2("f32")}), b = learned(opaque, {gpt2("f32")});
  EXPECT_EQ(a.verdict(), Verdict::pass) << a.recipes.front().reason;
  EXPECT_EQ(b.verdict(), Verdict::pass) << b.recipes.front().reason;
  EXPECT_THAT(a.recipes.front().lacking, IsEmpty());
  EXPECT_EQ(a.recipes.front().losses, b.recipes.front().losses);
}

// A device on which one op gives twice its result in the n-th run of a whole step.
class WrongInAStep final : public ForwardingBackend {
 public:
  WrongInAStep(Backend& inner, std::string label, int step)
      : ForwardingBackend(inner, nullptr), label_(std::move(label)), step_(step) {}
  [[nodiscard]] Plan plan(const OpCall& call, std::span<const TensorSpec> tensors,
                          const PlanOptions& options) override {
    Plan plan = inner().plan(call, tensors, options);
    if (call.label == label_) {
      plan_ = plan;
      output_ = call.inputs.size();
    }
    return plan;
  }
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    if (plan == plan_) tensor_ = tensors[output_];
    return inner().bind(plan, tensors, workspace);
  }
  [[nodiscard]] Launch sequence(std::span<const Launch> launches, const Schedule& schedule) override {
    whole_ = inner().sequence(launches, schedule);
    return whole_;
  }
  void run(const Launch& launch) override {
    inner().run(launch);
    if (launch != whole_ || ++steps_ != step_) return;
    for (std::int64_t e = 0; e < tensor_.spec.shape.elements(); ++e)
      store(tensor_.spec.dtype, tensor_.data, e, 2.0 * load(tensor_.spec.dtype, tensor_.data, e));
  }

 private:
  std::string label_;
  int step_, steps_ = 0;
  std::size_t output_ = 0;
  Plan plan_;
  Launch whole_;
  Tensor tensor_;
};

TEST(Learning, AWrongGradientFailsInTheStepAndTheTensorThatItHits) {
  const auto cpu = open_cpu_backend();
  // No op overwrites or reads this gradient after the step.
  WrongInAStep backend(*cpu, "block0.qkv.da", 2);
  const ModelLearning model = learned(backend, {gpt2("f32")});
  const RecipeLearning& recipe = model.recipes.front();
  EXPECT_EQ(model.verdict(), Verdict::fail);
  EXPECT_EQ(recipe.verdict, Verdict::fail);
  EXPECT_TRUE(recipe.judged[0].passed());
  ASSERT_THAT(recipe.judged[1].rejected, SizeIs(1));
  EXPECT_EQ(recipe.judged[1].rejected[0].tensor, "d(block0.ln1.y)");
  EXPECT_TRUE(recipe.judged[2].passed());
  EXPECT_THAT(recipe.reason, HasSubstr("step 2: 'd(block0.ln1.y)' is off by"));
}

TEST(Learning, AnOpThatIsDroppedFailsEveryStep) {
  const auto cpu = open_cpu_backend();
  RunOptions options;
  options.error = InjectedError{"block0.qkv.db", ErrorKind::drop, {}};
  const ModelLearning model = learned(*cpu, {gpt2("f32")}, options);
  EXPECT_EQ(model.verdict(), Verdict::fail);
  for (const StepParity& step : model.recipes.front().judged) EXPECT_FALSE(step.passed()) << step.step;
}

// The workload with another learning rate.
class OtherRate final : public Workload {
 public:
  OtherRate(std::shared_ptr<const Workload> inner, double rate) : inner_(std::move(inner)), rate_(rate) {}
  [[nodiscard]] WorkloadInfo info() const override { return inner_->info(); }
  [[nodiscard]] Grid grid() const override { return inner_->grid(); }
  [[nodiscard]] double items(const Case& c) const override { return inner_->items(c); }
  [[nodiscard]] Program build(const Case& c) const override {
    const Program declared = inner_->build(c);
    Program changed;
    (void)copy_values(declared, changed, [&](TensorSpec& spec) {
      if (spec.name == "lr") spec.fill = Fill::constant(rate_);
    });
    for (const OpCall& call : declared.ops()) {
      changed.begin(call.phase);
      changed.append(call);
    }
    return changed;
  }

 private:
  std::shared_ptr<const Workload> inner_;
  double rate_;
};

TEST(Learning, ALossThatDoesNotFallShowsNothing) {
  PlannedCase still = gpt2("f32");
  still.workload = std::make_shared<OtherRate>(still.workload, 0.0);
  const auto cpu = open_cpu_backend();
  const ModelLearning model = learned(*cpu, {still});
  EXPECT_EQ(model.verdict(), Verdict::not_proven);
  EXPECT_EQ(model.exact_first, model.exact_last);  // the same batches, the same weights
  EXPECT_THAT(model.recipes.front().judged, Each(Field(&StepParity::rejected, IsEmpty())));
  EXPECT_THAT(model.recipes.front().reason, HasSubstr("a decrease of less than 5% shows no learning"));
}

TEST(Learning, ABrokenRecipeThatIsNotToldApartProvesNothing) {
  ModelLearning model;
  model.recipes.push_back({.id = "a", .recipe = "bf16", .verdict = Verdict::pass});
  EXPECT_EQ(model.verdict(), Verdict::pass);
  model.broken.push_back({"seen", "", "bf16", {}, {}, 3, {}});
  EXPECT_EQ(model.verdict(), Verdict::pass);
  model.broken.push_back({"accepted", "", "bf16", {}, {}, 0, {}});
  EXPECT_EQ(model.verdict(), Verdict::not_proven);
  EXPECT_EQ(ModelLearning{}.verdict(), Verdict::not_proven);
}

// Slow: three broken recipes, 16 steps each.
TEST(Learning, BrokenRecipesAreTriedBesideTheirRecipe) {
  const auto cpu = open_cpu_backend();
  const ModelLearning model = learned(*cpu, {gpt2("bf16")}, {}, {16, 2, true});
  EXPECT_EQ(model.verdict(), Verdict::pass) << model.recipes.front().reason;
  ASSERT_THAT(model.broken, SizeIs(3));  // those of bf16
  for (const BrokenLearning& broken : model.broken) {
    EXPECT_EQ(broken.recipe, "bf16");
    EXPECT_GT(broken.seen_in_step, 0) << broken.name;
    EXPECT_FALSE(broken.seen_in.passed()) << broken.name;
    EXPECT_THAT(broken.losses, SizeIs(16));
  }
}

// Correct steps of small models on data of many seeds.
TEST(LearningTrials, CorrectStepsRaiseNoAlarm) {
  const auto cpu = open_cpu_backend();
  const int seeds = trial_count("GPUBENCH_TRIAL_LEARNING", 1);
  const Dims llama{{"b", 2}, {"s", 16}, {"layers", 1}, {"h", 32}, {"heads", 4}, {"kv", 2}, {"f", 48}, {"vocab", 64}};
  const Dims vit{{"n", 8}, {"image", 8}, {"patch", 4}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"classes", 10}};
  int steps = 0, alarms = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    RunOptions options;
    options.seed = static_cast<std::uint64_t>(seed);
    for (const auto& [workload, dims] :
         {std::pair{"gpt2_train_step", small_dims()}, {"llama_train_step", llama}, {"vit_train_step", vit}}) {
      std::vector<PlannedCase> cases;
      for (const char* recipe : {"f32", "tf32", "bf16", "f16"})
        cases.push_back(planned("transformer", workload, dims, recipe));
      for (const RecipeLearning& recipe : learned(*cpu, cases, options, {8, 8, false}).recipes) {
        for (const StepParity& step : recipe.judged) {
          ++steps;
          alarms += step.passed() ? 0 : 1;
          EXPECT_TRUE(step.passed()) << recipe.id << ", seed " << seed << ", step " << step.step << ": "
                                     << step.worst_tensor.tensor << " at " << step.worst;
        }
      }
    }
  }
  tell_count("steps judged", steps);
  tell_count("alarms", alarms);
}

}  // namespace learning_test
}  // namespace gpubench
