// Correct results are accepted: whole training steps on the CPU, every element of every op, on many seeds; and on each
// recipe's data, sums in the orders of other processors and GPUs, which truncate sums and factors (tf32).
// GPUBENCH_TRIAL_SEEDS: number of seeds (`ctest -C trials -L trials`: 100, and larger programs).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "harness/core/error.h"
#include "harness/parity/compare_elements.h"
#include "harness/parity/judge.h"
#include "harness/plan/plan.h"
#include "harness/run/prepared_case.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/definition.h"
#include "suites/suites.h"
#include "tests/fakes/sim/sim_backend.h"
#include "tests/reference/ops/summation_orders.h"
#include "tests/reference/ops/tensor_core.h"
#include "tests/suites/sums_of_products.h"

namespace gpubench::testing {
namespace {

// Products per output and seed that are added again in every order.
constexpr double products_again = 5000.0;

std::uint64_t seeds(std::uint64_t usual) {
  const char* wanted = std::getenv("GPUBENCH_TRIAL_SEEDS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : usual;
}

struct Count {
  long judged = 0;
  long rejected = 0;
  double worst = 0.0;
  std::string where;

  void add(long elements, long bad, double error_over_bound, const std::string& place) {
    judged += elements;
    rejected += bad;
    if (!(error_over_bound > worst)) return;
    worst = error_over_bound;
    where = place;
  }
};

struct OtherOrder {
  std::string name;
  std::function<double(const Factors&)> sum;
};

OtherOrder on(const char* name, const TensorCore& core, std::size_t promote_every = 0) {
  return {name, [=](const Factors& t) { return tensor_core_sum(core, t.a, t.b, promote_every); }};
}

OtherOrder with_cut_inputs(const char* name, const TensorCore& core) {
  return {name, [=](const Factors& t) {
            std::vector<double> a(t.a.begin(), t.a.end()), b(t.b.begin(), t.b.end());
            for (std::vector<double>* factors : {&a, &b}) {
              for (double& factor : *factors) factor = cut_bits(factor, 11);
            }
            return tensor_core_sum(core, a, b);
          }};
}

// Arithmetic that may compute such sums under the op's math.
std::vector<OtherOrder> orders_for(const OpCall& call, const SumsOfProducts& sums, DType a, DType b) {
  std::vector<OtherOrder> orders;
  for (const SummationOrder& order : summation_orders)
    orders.push_back({order.name, [sum = order.sum](const Factors& t) { return static_cast<double>(sum(t)); }});
  if (!sums.matrices) return orders;
  const std::size_t widest = std::max(size_of(a), size_of(b));
  if (widest == 4 && call.math.inputs == Math::Inputs::tf32) {
    orders.push_back(with_cut_inputs("sm_80, tf32", ampere_tf32));
    orders.push_back(with_cut_inputs("sm_90, tf32", hopper_tf32));
  } else if (widest == 2) {
    orders.push_back(on("sm_80, 16 bits", ampere_16_bit));
    orders.push_back(on("sm_90, 16 bits", hopper_16_bit));
  } else if (widest == 1) {
    orders.push_back(on("sm_89, 8 bits", ada_8_bit, 128));
    orders.push_back(on("sm_90, 8 bits", hopper_8_bit, 128));
    orders.push_back(on("sm_100, 8 bits", blackwell_8_bit));
  }
  return orders;
}

enum class Of { backend, other_orders };

class Trial {
 public:
  Trial(Backend& backend, const PlannedCase& planned, std::uint64_t seed, Of what, std::map<std::string, Count>& counts)
      : what_(what),
        arena_(backend),
        prepared_(backend, arena_, planned, seed, backend.device().available_bytes),
        seed_(seed),
        counts_(counts) {}

  void run() {
    for (const Phase phase : {Phase::setup, Phase::timed}) {
      for (const int op : prepared_.ops(phase)) run(op);
    }
  }

 private:
  void run(int op) {
    const Program& program = prepared_.program();
    const OpCall& call = program.op(op);
    StorageContents before;  // updates overwrite the op's inputs
    for (const ValueId id : call.inputs) {
      const StorageId storage = program.value(id).storage;
      before[storage.index] = prepared_.memory(0).block(storage).copy();
    }
    prepared_.backend().run(prepared_.launch(0, op));
    std::vector<TensorView> inputs, outputs;
    for (const ValueId id : call.inputs) {
      const Value& value = program.value(id);
      inputs.emplace_back(value.spec, before.at(value.storage.index).bytes.data() + value.offset_bytes);
    }
    for (const ValueId id : call.outputs) {
      const Value& value = program.value(id);
      outputs.emplace_back(value.spec,
                           prepared_.memory(0).block(value.storage).read().bytes.data() + value.offset_bytes);
    }
    if (what_ == Of::backend) {
      const OpParity parity = judge(program, op, {inputs, outputs}, {CheckMode::full, 0.0, seed_, 1}, "check");
      counts_["CPU backend"].add(parity.judged, parity.bad, parity.error_over_bound, place(call));
      EXPECT_EQ(parity.verdict, Verdict::pass) << place(call) << ": " << parity.reason;
      return;
    }
    for (const SumsOfProducts& sums : sums_of_products(call, inputs, outputs)) add_again(call, sums, inputs, outputs);
  }

  void add_again(const OpCall& call, const SumsOfProducts& sums, std::span<const TensorView> inputs,
                 std::span<const TensorView> outputs) {
    std::vector<double> a, b;
    sums.terms(0, a, b);
    const auto wanted_units = static_cast<std::int64_t>(std::max(16.0, products_again / static_cast<double>(a.size())));
    const std::int64_t step = std::max<std::int64_t>(1, sums.units / wanted_units) | 1;  // odd, to reach all columns
    std::vector<std::int64_t> units;
    for (auto unit = static_cast<std::int64_t>(seed_ % static_cast<std::uint64_t>(step)); unit < sums.units;
         unit += step)
      units.push_back(unit);
    std::vector<Expected> judged(units.size());
    const std::vector<TensorSpec> specs = specs_of(prepared_.program(), call.outputs);
    definition(call.kind).evaluate({call, inputs, specs, outputs}, sums.output, units, judged);
    const DType type = specs[static_cast<std::size_t>(sums.output)].dtype;
    const std::vector<OtherOrder> orders = orders_for(call, sums, inputs[0].dtype(), inputs[1 % inputs.size()].dtype());
    for (std::size_t i = 0; i < units.size(); ++i) {
      sums.terms(units[i], a, b);
      for (const OtherOrder& order : orders) {
        const double got = round_to(type, sums.scale * order.sum({a, b}));
        const bool accepted = accepts(judged[i], type, got);
        counts_[order.name].add(1, accepted ? 0 : 1, error_over_bound(judged[i], type, got), place(call));
        EXPECT_TRUE(accepted) << place(call) << ", " << order.name << ": element " << units[i] << " is " << got
                              << ", expected " << judged[i].value << " +- " << judged[i].bound;
      }
    }
  }

  [[nodiscard]] std::string place(const OpCall& call) const {
    return prepared_.planned().id() + " seed " + std::to_string(seed_) + " op '" + call.label + "'";
  }

  Of what_;
  Arena arena_;
  PreparedCase prepared_;
  std::uint64_t seed_;
  std::map<std::string, Count>& counts_;
};

void try_cases(const Selection& selection, Of what, std::uint64_t count) {
  if (count == 0) GTEST_SKIP() << "takes long: only with GPUBENCH_TRIAL_SEEDS";
  const std::unique_ptr<Backend> backend =
      what == Of::backend ? open_cpu_backend(1) : open_sim_backend("");  // computes the textbook's results
  std::map<std::string, Count> counts;
  int cases = 0;
  for (const PlannedCase& planned : plan_cases(all_suites(), selection)) {
    try {
      for (std::uint64_t seed = 1; seed <= count; ++seed) Trial(*backend, planned, seed, what, counts).run();
      ++cases;
    } catch (const Unsupported& e) {
      std::printf("%s is unsupported here: %s\n", planned.id().c_str(), e.what());
    }
  }
  std::printf("%d cases, seeds 1 to %llu\n", cases, static_cast<unsigned long long>(count));
  for (const auto& [order, found] : counts) {
    std::printf("%-26s %10ld elements, %ld rejected, worst %.3f of the bound (%s)\n", order.c_str(), found.judged,
                found.rejected, found.worst, found.where.c_str());
    EXPECT_GT(found.judged, 1000) << order;
  }
  EXPECT_FALSE(counts.empty());
}

Selection training_steps(Tier tier, std::vector<std::string> recipes) {
  Selection selection;
  selection.suites = {"transformer", "convnet"};
  selection.filters = {"train_step"};
  selection.precisions = std::move(recipes);
  selection.tier = tier;
  return selection;
}

const std::vector<std::string> of_a_cpu{"f32", "bf16"};
const std::vector<std::string> of_a_gpu{"f32", "tf32", "f16", "bf16", "f8_hybrid"};

TEST(CorrectArithmetic, OfATrainingStepOnTheCpuIsNeverRejected) {
  try_cases(training_steps(Tier::smoke, of_a_cpu), Of::backend, seeds(4));
}

// 30 s: products of the smoke tier's training steps in five recipes, in every order.
TEST(CorrectArithmetic, OfATrainingStepInOtherOrdersIsNeverRejected) {
  try_cases(training_steps(Tier::smoke, of_a_gpu), Of::other_orders, seeds(1));
}

TEST(CorrectArithmetic, OfQuicksTrainingStepsOnTheCpuIsNeverRejected) {
  try_cases(training_steps(Tier::quick, of_a_cpu), Of::backend, seeds(0));
}

TEST(CorrectArithmetic, OfQuicksTrainingStepsInOtherOrdersIsNeverRejected) {
  try_cases(training_steps(Tier::quick, of_a_gpu), Of::other_orders, seeds(0));
}

TEST(CorrectArithmetic, OfEverySmokeProgramOnTheCpuIsNeverRejected) {
  Selection selection;
  selection.tier = Tier::smoke;
  selection.precisions = of_a_cpu;
  selection.excludes = {"/x2"};
  try_cases(selection, Of::backend, seeds(0));
}

}  // namespace
}  // namespace gpubench::testing
