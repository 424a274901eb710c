// Error rates of the rule on simulated suites with fixed seeds.
//
// On a log scale a sample is  shift + I + D(u) + Q + e + o:  I ~ N(0, run) per invocation (half of its variance is
// common to all cases of the invocation), Q ~ N(0, round) per round, D = d (1 - exp(-3 u)) over the invocation with d ~
// |N(0, drift)|, e an AR(1) process of standard deviation `sample` and lag-1 correlation rho, and with probability p an
// outlier log(1 + Exp(mean mu)). The noise of each case is scaled by exp(N(0, 0.5)).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "harness/compare/gate_rule.h"
#include "harness/measure/statistics.h"

namespace gpubench {
namespace {

struct Regime {
  double run, round, sample, rho, drift, outliers, outlier_size;
};
// An exclusive GPU with free clocks; a virtual machine, or the CPU backend, on a shared host.
constexpr Regime unlocked{0.006, 0.003, 0.008, 0.5, 0.005, 0.01, 0.10};
constexpr Regime shared{0.025, 0.01, 0.03, 0.5, 0.015, 0.03, 0.30};

constexpr int cases = 200;
constexpr int slowed = 10;
constexpr int samples = 10;
constexpr int calibration_runs = 10;

class Machine {
 public:
  Machine(const Regime& regime, std::uint64_t seed) : regime_(regime), bits_(seed) {
    for (double& one : scale_) one = std::exp(0.5 * normal());
  }

  std::vector<CaseRun> invocation(int rounds) {
    const double half = regime_.run * std::sqrt(0.5);
    const double common = half * normal();
    std::vector<CaseRun> runs;
    for (int c = 0; c < cases; ++c) {
      const double shift = scale_[c] * (common + half * normal());
      runs.push_back(within(scale_[c], rounds));
      runs.back().log_median += shift;
    }
    return runs;
  }

 private:
  double normal() { return normal_(bits_); }

  // Median over all samples and error of the rounds of a case, apart from the common part of the invocation.
  CaseRun within(double scale, int rounds) {
    const double drift = std::fabs(normal()) * regime_.drift;
    const double innovation = regime_.sample * std::sqrt(1.0 - regime_.rho * regime_.rho);
    double e = regime_.sample * normal();
    values_.clear();
    std::vector<double> medians;
    for (int r = 0; r < rounds; ++r) {
      const double q = regime_.round * normal();
      for (int s = 0; s < samples; ++s) {
        const double u = static_cast<double>(r * samples + s) / (rounds * samples);
        double x = scale * (drift * (1.0 - std::exp(-3.0 * u)) + q + e);
        if (uniform_(bits_) < regime_.outliers)
          x += std::log1p(-scale * regime_.outlier_size * std::log1p(-uniform_(bits_)));
        values_.push_back(x);
        e = regime_.rho * e + innovation * normal();
      }
      medians.push_back(median(std::span(values_).last(samples)));
    }
    CaseRun run;
    run.rounds = rounds;
    run.samples = samples;
    run.log_median = median(values_);
    run.round_error = standard_deviation(medians) / std::sqrt(static_cast<double>(rounds));
    return run;
  }

  Regime regime_;
  std::mt19937_64 bits_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double scale_[cases];
  std::vector<double> values_;
};

struct Rates {
  double found_as_stated = 0.0;  // share of suites in which one case, slowed by the detectable slowdown, regressed
  double false_cases = 0.0;
  double false_suites = 0.0;
  double inconclusive = 0.0;
  double exit_4 = 0.0;        // unchanged suites with an inconclusive case whose interval is above tau
  std::vector<double> found;  // share of slowed cases called regressed, by effect
};

std::vector<Evidence> measured(Machine& machine, int runs, int rounds, bool calibrated) {
  std::vector<Evidence> suite(cases);
  if (calibrated) {
    std::vector<std::vector<CaseRun>> older;
    for (int i = 0; i < calibration_runs; ++i) older.push_back(machine.invocation(rounds));
    for (int c = 0; c < cases; ++c) {
      std::vector<double> y;
      for (const auto& one : older) y.push_back(one[c].log_median);
      suite[c].prior = Prior{std::pow(standard_deviation(y), 2), calibration_runs};
    }
  }
  for (int k = 0; k < runs; ++k) {
    for (auto side : {&Evidence::baseline, &Evidence::candidate}) {
      const std::vector<CaseRun> all = machine.invocation(rounds);
      for (int c = 0; c < cases; ++c) (suite[c].*side).push_back(all[c]);
    }
  }
  return suite;
}

std::vector<Evidence> slowed_by(std::vector<Evidence> suite, std::size_t slower, double effect) {
  for (std::size_t c = 0; c < slower; ++c) {
    for (CaseRun& run : suite[c].candidate) run.log_median += std::log1p(effect);
  }
  return suite;
}

int count(std::span<const Judgement> judgements, GateVerdict verdict) {
  return static_cast<int>(std::count_if(judgements.begin(), judgements.end(),
                                        [&](const Judgement& one) { return one.verdict == verdict; }));
}

Rates simulate(const Regime& regime, int suites, int runs, const std::vector<double>& effects, bool calibrated = true) {
  Rates rates;
  rates.found.assign(effects.size(), 0.0);
  for (int s = 0; s < suites; ++s) {
    Machine machine(regime, 1000 + static_cast<std::uint64_t>(s));
    const std::vector<Evidence> suite = measured(machine, runs, runs == 1 ? 10 : 5, calibrated);
    const std::vector<Judgement> same = judge_cases(suite, {});
    const int alarms = count(same, GateVerdict::regressed);
    rates.false_cases += alarms / static_cast<double>(suites * cases);
    rates.false_suites += (alarms > 0 ? 1.0 : 0.0) / suites;
    rates.exit_4 +=
        std::ranges::any_of(same,
                            [](const Judgement& one) {
                              return one.verdict == GateVerdict::inconclusive && one.low95 > std::log1p(0.03);
                            })
            ? 1.0 / suites
            : 0.0;
    rates.inconclusive += count(same, GateVerdict::inconclusive) / static_cast<double>(suites * cases);
    const auto share_found = [&](std::size_t slower, double effect) {
      const std::vector<Judgement> judgements = judge_cases(slowed_by(suite, slower, effect), {});
      return count(std::span(judgements).first(slower), GateVerdict::regressed) / static_cast<double>(suites * slower);
    };
    for (std::size_t e = 0; e < effects.size(); ++e) rates.found[e] += share_found(slowed, effects[e]);
    rates.found_as_stated += share_found(1, *same.front().detectable);
  }
  return rates;
}

void tell(const char* what, const Rates& rates) {
  std::string found;
  for (const double share : rates.found) found += " " + std::to_string(share);
  ::testing::Test::RecordProperty(what, "false per case " + std::to_string(rates.false_cases) + ", per suite " +
                                            std::to_string(rates.false_suites) + ", inconclusive " +
                                            std::to_string(rates.inconclusive) + ", exit 4 " +
                                            std::to_string(rates.exit_4) + ", as stated " +
                                            std::to_string(rates.found_as_stated) + ", found" + found);
}

TEST(GateSimulation, ThreeRunsASideOnAGpuFindFivePercentAndRarelyAlarm) {
  const Rates rates = simulate(unlocked, 100, 3, {0.05, 0.10});
  tell("unlocked, 3 runs", rates);
  EXPECT_LE(rates.false_cases, 0.002);
  EXPECT_LE(rates.false_suites, 0.02);
  EXPECT_GE(rates.found[0], 0.89);
  EXPECT_GE(rates.found[1], 0.99);
  EXPECT_NEAR(rates.found_as_stated, 0.9, 0.07);
}

TEST(GateSimulation, OneCalibratedRunASideOnAGpuFindsHalfOfFivePercent) {
  const Rates rates = simulate(unlocked, 100, 1, {0.05});
  tell("unlocked, 1 run", rates);
  EXPECT_LE(rates.false_cases, 0.002);
  EXPECT_LE(rates.false_suites, 0.02);
  EXPECT_GE(rates.found[0], 0.50);
}

TEST(GateSimulation, OneRunASideOnASharedProcessorSaysThatItCannotTell) {
  const Rates rates = simulate(shared, 100, 1, {});
  tell("shared, 1 run", rates);
  EXPECT_LE(rates.false_cases, 0.005);
  EXPECT_GE(rates.inconclusive, 0.80);
  EXPECT_NEAR(rates.found_as_stated, 0.9, 0.07);
}

// Without a calibration the suite's spread is used.
TEST(GateSimulation, ThreeRunsASideWithoutACalibrationDoAlmostAsWell) {
  const Rates rates = simulate(unlocked, 60, 3, {0.05}, false);
  tell("unlocked, 3 runs, no calibration", rates);
  EXPECT_LE(rates.false_cases, 0.002);
  EXPECT_LE(rates.false_suites, 0.02);
  EXPECT_GE(rates.found[0], 0.88);
}

}  // namespace
}  // namespace gpubench
