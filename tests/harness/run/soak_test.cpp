// Devices that are wrong now and then, and devices that are not.
#include "harness/run/soak.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Told {
  std::vector<SoakInterval> intervals;
  std::vector<Divergence> divergences;
  std::vector<std::string> wrong;
};

// Ten intervals with rechecks between them, or up to the first divergence where one is to come.
SoakResult soaked(const std::string& script, const RunOptions& options, Told& told) {
  SimBackend backend(parse_script(script));
  StopFlag stop{0};
  const SoakObserver observer{[&](const SoakInterval& interval) {
                                told.intervals.push_back(interval);
                                if (!options.error && told.intervals.size() == 10) stop = 15;
                              },
                              [&](const Divergence& divergence) {
                                told.divergences.push_back(divergence);
                                stop = 15;
                              },
                              [&](const std::string& wrong) { told.wrong.push_back(wrong); }};
  return soak(backend, sim_cases(), options, {.seconds = 3600.0, .interval_s = 0.02, .recheck_s = 0.05}, observer,
              stop);
}

TEST(Soak, OfADeviceThatIsRightAlwaysPasses) {
  for (const std::string script : {"", "opaque", "examines"}) {
    Told told;
    const SoakResult result = soaked(script, smoke_options(), told);
    EXPECT_TRUE(result.passed()) << script;
    EXPECT_THAT(result.wrong, IsEmpty());
    EXPECT_EQ(result.cases.size() + result.left_out.size(), sim_cases().size());
    EXPECT_THAT(result.cases, ::testing::Not(IsEmpty()));
    EXPECT_GE(result.rechecks, 2);
    std::int64_t launches = 0;
    for (const SoakInterval& interval : told.intervals) {
      launches += interval.launches;
      EXPECT_LE(interval.device_s, interval.seconds);
    }
    EXPECT_EQ(result.launches, launches);
    EXPECT_GT(launches, 0);
    EXPECT_GT(result.ops, launches);  // of some cases a launch is several ops
  }
}

TEST(Soak, NamesOpElementAndCaseOfALaunchThatLeavesOtherBits) {
  RunOptions options = smoke_options();
  options.error = InjectedError{"chain.down", ErrorKind::rare};
  Told told;
  const SoakResult result = soaked("", options, told);
  EXPECT_FALSE(result.passed());
  EXPECT_EQ(result.diverged, 1);
  ASSERT_THAT(told.divergences, SizeIs(1));
  const Divergence& first = told.divergences.front();
  EXPECT_EQ(first.case_id, sim_id("chain"));
  EXPECT_THAT(first.text, AllOf(HasSubstr("op 'chain.down' (gemm, by "), HasSubstr("): 1 of "), HasSubstr(" for "),
                                HasSubstr("; the next launch is right")));
}

TEST(Soak, AsksTheTextbookFirstWhetherTheBitsAreRight) {
  Told told;
  const SoakResult result = soaked("wrong_element@chain.down", smoke_options(), told);
  EXPECT_FALSE(result.passed());
  EXPECT_EQ(result.diverged, 0);  // it is always as wrong
  EXPECT_THAT(told.wrong, Contains(HasSubstr("chain.down")));
  EXPECT_THAT(result.wrong, SizeIs(static_cast<std::size_t>(result.rechecks)));
}

TEST(Soak, JudgesTheLaunchAsWellAsItsOps) {
  Told told;
  const SoakResult result = soaked("wrong_element/sequence@chain.down", smoke_options(), told);
  EXPECT_FALSE(result.passed());
  EXPECT_THAT(result.wrong, Contains(HasSubstr("chain.down")));
}

TEST(Soak, EndsWhereNothingIsLeftThatIsRight) {
  const std::vector<PlannedCase>& all = sim_cases();
  const auto first = std::ranges::find(all, sim_id("first"), [](const PlannedCase& planned) { return planned.id(); });
  ASSERT_NE(first, all.end());
  const std::string label = first->workload->build(first->c).op(0).label;
  SimBackend wrong(parse_script("nan@" + label));
  const StopFlag stop{0};
  const SoakResult result = soak(wrong, std::span(&*first, 1), smoke_options(), {.seconds = 3600.0}, {}, stop);
  EXPECT_EQ(result.launches, 0);
  EXPECT_THAT(result.wrong, SizeIs(1));
  EXPECT_FALSE(result.passed());
}

TEST(ExcludedRate, IsTheOneThatLeavesAChanceOfFivePercentForNoFaultAtAll) {
  EXPECT_DOUBLE_EQ(excluded_rate(0), 1.0);
  EXPECT_NEAR(excluded_rate(1), 0.95, 1e-15);
  EXPECT_NEAR(excluded_rate(2), 1.0 - 0.22360679774997896, 1e-15);  // the square root of 0.05
  EXPECT_NEAR(excluded_rate(1'000'000), 2.995732e-6, 1e-11);        // the rule of three
}

}  // namespace
}  // namespace gpubench::sim
