// The catalogue of faults of shared training steps, on two small models: every fault is found at its stage and as its
// kind, and correct steps raise no alarm.
#include "harness/verify/parallel_faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>

#include "harness/core/hash.h"
#include "suites/suites.h"
#include "tests/suites/workloads.h"
#include "tests/trials.h"

namespace gpubench {
namespace {

constexpr std::string_view key = "a key for all";

struct Shared {
  std::string workload;
  Dims dims;
  int ranks = 2;
  RankLayout layout;
  bool masked = false;
  [[nodiscard]] Case c() const {
    std::vector<std::string> modes = modes_of(layout);
    if (masked) modes.emplace_back(suites::masked_mode);
    return {"", workload, dims, "f32", std::move(modes), ranks, "of a test"};
  }
};

std::vector<Shared> shared_steps() {
  const Dims gpt2{{"b", 1}, {"s", 8}, {"layers", 1}, {"h", 16}, {"heads", 2}, {"vocab", 24}};
  Dims in_two = gpt2;
  in_two.emplace_back("micro", 2);
  const Dims llama{{"b", 1}, {"s", 8}, {"layers", 1}, {"h", 16}, {"heads", 2}, {"kv", 2}, {"f", 12}, {"vocab", 24}};
  std::vector<Shared> all;
  for (const auto& [workload, dims] :
       {std::pair{"gpt2_train_step", gpt2}, {"gpt2_train_step", in_two}, {"llama_train_step", llama}}) {
    all.push_back({workload, dims, 2, {2, false}});
    all.push_back({workload, dims, 2, {2, true}});
    all.push_back({workload, dims, 2, {1, false}});
    all.push_back({workload, dims, 4, {2, true}});
    all.push_back({workload, dims, 2, {.fsdp = 2}});
    Dims more = dims;
    more[0].second = 3;  // so that ranks have different numbers of unmasked labels
    all.push_back({workload, more, 2, {}, true});
  }
  const Dims mixtral{{"b", 1},  {"s", 8},  {"layers", 2},  {"h", 16}, {"heads", 2},
                     {"kv", 2}, {"f", 12}, {"experts", 4}, {"k", 2},  {"vocab", 24}};
  all.push_back({"mixtral_train_step", mixtral, 2, {.ep = 2}});
  all.push_back({"mixtral_train_step", mixtral, 4, {.ep = 2}});
  for (const auto& [workload, dims] : {std::pair{"gpt2_train_step", gpt2}, {"llama_train_step", llama}}) {
    all.push_back({workload, dims, 2, {.cp = 2}});
    all.push_back({workload, dims, 4, {.tp = 2, .cp = 2}});
    all.push_back({workload, dims, 4, {.cp = 4, .passes_keys = true}});
  }
  for (Dims dims : {gpt2, in_two}) {
    for (auto& [axis, extent] : dims) {
      if (axis == "layers") extent = 2;
    }
    all.push_back({"gpt2_train_step", dims, 2, {.pp = 2}});
    all.push_back({"gpt2_train_step", dims, 4, {.tp = 2, .pp = 2}});
  }
  return all;
}

// 30 s: each class at each of its places, in every layout.
TEST(ParallelFaults, EachIsFoundAtTheStageAndAsWhatItsClassSays) {
  std::map<std::string_view, int> found;
  for (const Shared& shared : shared_steps()) {
    const auto workload = testing::workload_named("", shared.workload);
    const std::optional<Program> one = step_of_one_rank(*workload, shared.c());
    ASSERT_TRUE(one.has_value());
    const Program many = workload->build(shared.c());
    const StepResult alone = step_result(*one, key, 42);
    const std::optional<StepDivergence> clean = divergence(alone, step_result(many, key, 42), many);
    EXPECT_FALSE(clean.has_value()) << shared.c().id() << ": " << clean->text;
    for (std::size_t i = 0; i < parallel_fault_classes().size(); ++i) {
      const ParallelFaultClass& one_class = parallel_fault_classes()[i];
      for (const FaultyStep& faulty : faulty_steps(many, i, 100)) {
        SCOPED_TRACE(shared.c().id() + ": " + std::string(one_class.name) + " at " + faulty.place);
        const auto off = divergence(alone, step_result(faulty.program, key, 42, many), many);
        ++found[one_class.name];
        if (!off) {
          ADD_FAILURE() << "not found";
          continue;
        }
        EXPECT_EQ(name(off->stage), name(one_class.stage)) << off->text;
        EXPECT_NE(std::ranges::find(one_class.kinds, off->kind), one_class.kinds.end()) << off->text;
      }
    }
  }
  for (const ParallelFaultClass& one_class : parallel_fault_classes()) {
    EXPECT_GT(found[one_class.name], 0) << one_class.name << " was put nowhere";
    std::cout << one_class.name << ": " << found[one_class.name] << "\n";
  }
}

/// A step with random extents and a random layout.
Shared random_step(std::uint64_t trial) {
  std::uint64_t state = trial;
  const auto pick = [&state](std::initializer_list<std::int64_t> from) {
    state = hash_at(state, 1);
    return from.begin()[state % from.size()];
  };
  const bool has_experts = pick({0, 1, 2, 3}) == 0;
  const std::int64_t heads = 4 * pick({1, 2}), width = heads * pick({2, 4, 6});
  Shared step;
  step.dims = {
      {"b", pick({1, 2, 3})}, {"s", pick({4, 8, 12})}, {"layers", pick({1, 2})}, {"h", width}, {"heads", heads}};
  if (!has_experts && pick({0, 1}) == 0) {
    step.workload = "gpt2_train_step";
    step.dims.emplace_back("vocab", 4 * pick({3, 5, 8}));
    if (pick({0, 1}) == 0) step.dims.emplace_back("micro", pick({2, 3}));
  } else {
    step.workload = "llama_train_step";
    for (const auto& [axis, extent] :
         {std::pair{"kv", std::int64_t{4}}, {"f", 4 * pick({3, 6})}, {"vocab", 4 * pick({3, 5})}})
      step.dims.emplace_back(axis, extent);
  }
  if (has_experts) {
    step.workload = "mixtral_train_step";
    step.dims.emplace_back("experts", pick({4, 8}));
    step.dims.emplace_back("k", pick({1, 2, 3}));
  }
  const auto many = static_cast<int>(pick({2, 4}));
  switch (pick({0, 1, 2, 3, 4})) {
    case 0: step.layout.fsdp = many; break;
    case 1: step.layout.tp = many; break;
    case 2: step.layout = {many, true}; break;
    case 3: (has_experts ? step.layout.ep : step.layout.fsdp) = many; break;
    default: break;
  }
  step.layout.cp = static_cast<int>(pick({1, 1, 2, 4}));
  step.layout.passes_keys = step.layout.cp > 1 && pick({0, 1}) == 0;
  step.masked = pick({0, 1, 2}) == 0;
  if (step.dims[2].second == 2) step.layout.pp = static_cast<int>(pick({1, 2}));
  step.ranks = step.layout.ranks() * static_cast<int>(step.layout.ranks() == 1 ? pick({2, 3}) : pick({1, 2}));
  return step;
}

// 40 steps with random extents and layouts; 1000 as a trial.
TEST(ParallelFaults, StepsWithoutOneRaiseNoAlarm) {
  const int trials = trial_count("GPUBENCH_TRIAL_SHARED_STEPS", 40);
  for (int trial = 0; trial < trials; ++trial) {
    const Shared shared = random_step(static_cast<std::uint64_t>(trial) + 1);
    const auto workload = testing::workload_named("", shared.workload);
    const std::optional<Program> one = step_of_one_rank(*workload, shared.c());
    ASSERT_TRUE(one.has_value()) << shared.c().id();
    const Program many = workload->build(shared.c());
    const auto seed = static_cast<std::uint64_t>(trial);
    const StepResult alone = step_result(*one, key, seed);
    if (std::isnan(alone.ranks.begin()->second.losses.front())) continue;  // all labels are masked
    const std::optional<StepDivergence> off = divergence(alone, step_result(many, key, seed), many);
    EXPECT_FALSE(off.has_value()) << shared.c().id() << ": " << off->text;
  }
  tell_count("steps that ranks share, none of them with a fault", trials);
}

}  // namespace
}  // namespace gpubench
