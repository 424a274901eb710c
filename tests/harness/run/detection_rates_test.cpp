// How often intermittent faults are found, in many trials with different seeds. harness/run/DETECTION.md has the logged
// counts. The check sees the last run of a round in each copy; the expected shares follow.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <iostream>

#include "harness/core/hash.h"
#include "harness/plan/plan.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "tests/fakes/sim/sim_backend.h"
#include "tests/harness/run/run_fixture.h"

namespace gpubench {
namespace detection_rates_test {

using sim::Flaw;
using sim::Moment;

// c = a b, a [n, k], b [k, n]; with `residual` also d = c + c.
class Product : public Workload {
 public:
  Product(std::int64_t n, std::int64_t k, bool residual, CacheMode cache)
      : n_(n), k_(k), residual_(residual), cache_(cache) {}
  [[nodiscard]] WorkloadInfo info() const override {
    return {"product", "a case for tests", "", PrimaryMetric::items_per_s, "elements", cache_};
  }
  [[nodiscard]] Grid grid() const override { return {{{{{"n", n_}}, "test", Tier::smoke}}, {"f32"}}; }
  [[nodiscard]] double items(const Case&) const override { return static_cast<double>(n_ * n_); }
  [[nodiscard]] Program build(const Case&) const override {
    Program p;
    const ValueId a = p.add(tensor("a", DType::f32, {n_, k_}, Role::input, Fill::normal(1.0)));
    const ValueId b = p.add(tensor("b", DType::f32, {k_, n_}, Role::parameter, Fill::normal(1.0)));
    const ValueId c = gemm(p, {}, Math{}, "product", a, b).c;
    if (residual_) add(p, Math{}, "sum", c, c);
    return p;
  }

 private:
  std::int64_t n_, k_;
  bool residual_;
  CacheMode cache_;
};

PlannedCase planned(std::int64_t n, std::int64_t k, bool residual, CacheMode cache) {
  PlannedCase one;
  one.c.suite = "test";
  one.c.workload = "product";
  one.c.dims = {{"n", n}};
  one.c.recipe = "f32";
  one.c.tier = Tier::smoke;
  one.c.cache = cache;
  one.workload = std::make_shared<Product>(n, k, residual, cache);
  const Program program = one.workload->build(one.c);
  one.cost = cost_of(program);
  one.bytes = program.bytes();
  one.definition = definition_digest(one.c, *one.workload, program);
  return one;
}

struct Scenario {
  std::string text;
  PlannedCase planned;
  int trials;
  std::function<Flaw(std::uint64_t seed)> flaw;
};

constexpr double run_ns = 100e3;  // of the clock: 2 runs a sample, 3 samples a round, 3 rounds; a warm-up of one run

// The number of trials with `fail`; the others must pass.
int found(const Scenario& scenario) {
  int failed = 0;
  for (int trial = 0; trial < scenario.trials; ++trial) {
    const std::unique_ptr<Backend> cpu = open_cpu_backend(2);
    const auto seed = static_cast<std::uint64_t>(trial);
    const std::unique_ptr<Backend> backend = sim::flaky(*cpu, scenario.flaw(seed), run_ns);
    RunOptions options = sim::smoke_options();
    options.seed = seed;
    sim::Remembering seen;
    run_in_process(*backend, std::span(&scenario.planned, 1), options, seen, seen.stop);
    const CaseRecord& record = seen.records.begin()->second;
    EXPECT_TRUE(record.verdict == Verdict::fail || record.verdict == Verdict::pass) << record.reason;
    failed += record.verdict == Verdict::fail ? 1 : 0;
  }
  std::cout << "detected: " << scenario.text << ": " << failed << " of " << scenario.trials << "\n";
  return failed;
}

// Not in the first or last row or column.
std::int64_t inner_element(std::int64_t n, std::uint64_t seed) {
  const auto within = [&](std::uint64_t which) {
    return 1 + static_cast<std::int64_t>(hash_at(seed, which) % static_cast<std::uint64_t>(n - 2));
  };
  return within(1) * n + within(2);
}

Flaw spoiled(std::int64_t n, std::uint64_t seed, std::function<bool(const Moment&)> when) {
  return {"product", std::move(when), sim::one_wrong_element(inner_element(n, seed)), false};
}

std::function<bool(const Moment&)> one_in(std::uint64_t count, std::uint64_t seed) {
  return [=](const Moment& now) { return hash_at(mix(seed), static_cast<std::uint64_t>(now.run)) % count == 0; };
}

constexpr std::int64_t large = 1000;
constexpr std::int64_t small = 24;

TEST(Detection, OneWrongElementOfAMillionInTheTimedRunsIsAlwaysFound) {
  const Scenario scenario{"one wrong element of 10^6, in the timed runs", planned(large, 64, false, CacheMode::warm),
                          10,
                          [](std::uint64_t seed) { return spoiled(large, seed, [](const Moment&) { return true; }); }};

  EXPECT_EQ(found(scenario), scenario.trials);
}

// The check expects the same wrong bits, so only the magnitude and the sample can show the fault.
TEST(Detection, OneWrongElementOfAMillionInEveryRunIsFoundByItsMagnitude) {
  struct Kind {
    const char* text;
    std::function<void(float&)> spoil;
    bool certain;
  };
  const auto bit = [](int number) {
    return [number](float& x) { x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ (1U << number)); };
  };
  for (const Kind& kind :
       {Kind{"far off", [](float& x) { x = -3.0F * x - 100.0F; }, true},
        Kind{"the highest bit of the exponent flipped", bit(30), true}, Kind{"zero", [](float& x) { x = 0.0F; }, true},
        Kind{"sign flipped", [](float& x) { x = -x; }, false}}) {
    const Scenario scenario{std::string("one wrong element of 10^6, in every run: ") + kind.text,
                            planned(large, 64, false, CacheMode::warm), 10, [&](std::uint64_t seed) {
                              const auto spoil = [at = inner_element(large, seed), spoil = kind.spoil](
                                                     const TensorSpec&, std::byte* data) {
                                spoil(reinterpret_cast<float*>(data)[at]);
                              };
                              return Flaw{"product", [](const Moment&) { return true; }, spoil, true};
                            }};
    const int count = found(scenario);
    if (kind.certain) {
      EXPECT_EQ(count, scenario.trials) << kind.text;
    }
  }
}

TEST(Detection, GarbageInTimedCalls3To8IsAlwaysFoundAlthoughLaterCallsAreRight) {
  const auto calls = [](const Moment& now) { return now.call >= 3 && now.call <= 8; };
  const Scenario scenario{"timed calls 3 to 8 garbage, later ones right", planned(small, small, false, CacheMode::cold),
                          20, [&](std::uint64_t seed) { return spoiled(small, seed, calls); }};

  EXPECT_EQ(found(scenario), scenario.trials);
}

// Six runs of a round in six of 64 copies, three rounds: 18 runs are seen, and the warm-up is overwritten. A share p of
// spoiled runs is found with probability 1 - (1 - p)^18; the tolerance is four standard deviations.
TEST(Detection, OfRareSpoiledRunsThoseAreFoundThatComeLastInTheirCopy) {
  for (const std::uint64_t rarity : {std::uint64_t{100}, std::uint64_t{1000}}) {
    const Scenario scenario{"one run in " + std::to_string(rarity) + " spoiled, 18 runs in separate copies",
                            planned(small, small, false, CacheMode::cold), 100,
                            [&](std::uint64_t seed) { return spoiled(small, seed, one_in(rarity, seed)); }};
    const double share = 1.0 - std::pow(1.0 - 1.0 / static_cast<double>(rarity), 18.0);

    const int count = found(scenario);

    EXPECT_NEAR(count, 100.0 * share, 4.0 * std::sqrt(100.0 * share * (1.0 - share)));
  }
}

TEST(Detection, OfOneCopyOnlyTheLastRunOfEachRoundIsSeen) {
  const Scenario scenario{"one run in 100 spoiled, all runs in one copy", planned(small, small, false, CacheMode::warm),
                          100, [&](std::uint64_t seed) { return spoiled(small, seed, one_in(100, seed)); }};
  const double share = 1.0 - std::pow(0.99, 3.0);

  EXPECT_NEAR(found(scenario), 100.0 * share, 4.0 * std::sqrt(100.0 * share * (1.0 - share)));
}

// The product is spoiled before the sum reads it, so the sum is right on its inputs.
TEST(Detection, ASpoiledIntermediateResultOfOneRoundIsAlwaysFound) {
  const Scenario scenario{"an intermediate result spoiled in one round of three",
                          planned(small, small, true, CacheMode::step), 20, [](std::uint64_t seed) {
                            const auto round = static_cast<std::int64_t>(sim::estimates + 1 + seed % 3);
                            return spoiled(small, seed, [=](const Moment& now) { return now.call == round; });
                          }};

  EXPECT_EQ(found(scenario), scenario.trials);
}

TEST(Detection, CorrectResultsRaiseNoAlarm) {
  for (const CacheMode cache : {CacheMode::cold, CacheMode::warm, CacheMode::step}) {
    const Scenario scenario{"nothing wrong", planned(small, small, true, cache), 20, [](std::uint64_t seed) {
                              return spoiled(small, seed, [](const Moment&) { return false; });
                            }};

    EXPECT_EQ(found(scenario), 0);
  }
}

}  // namespace detection_rates_test
}  // namespace gpubench
