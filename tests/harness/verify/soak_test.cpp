// Soaks of devices with and without intermittent faults.
#include "harness/verify/soak.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/run/forwarding_backend.h"
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

// Ten intervals with rechecks, or up to the first divergence.
SoakResult soaked(const std::string& script, const RunOptions& options, Told& told) {
  SimBackend backend(parse_script(script));
  StopFlag stop{0};
  const SoakObserver observer{.interval =
                                  [&](const SoakInterval& interval) {
                                    told.intervals.push_back(interval);
                                    if (!options.error && told.intervals.size() == 10) stop = 15;
                                  },
                              .divergence =
                                  [&](const Divergence& divergence) {
                                    told.divergences.push_back(divergence);
                                    stop = 15;
                                  },
                              .wrong = [&](const std::string& wrong) { told.wrong.push_back(wrong); }};
  return soak(backend, sim_cases(), options,
              {.seconds = 3600.0, .interval_s = 0.02, .recheck_s = 0.05, .judging_share = 1.0}, observer, stop);
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
      EXPECT_LE(interval.device_s + interval.clearing_s + interval.comparing_s, interval.seconds);
    }
    EXPECT_EQ(result.launches, launches);
    EXPECT_GT(launches, 0);
    EXPECT_GT(result.ops, launches);  // launches of some cases have several ops
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
                                HasSubstr(", in bit 30; the next launch is right")));
  EXPECT_EQ(first.epoch, result.rechecks - 1);
}

// A device that drops its thirtieth launch after the judgement, or flips bits in every 32nd element of it.
class OneFault final : public ForwardingBackend {
 public:
  OneFault(Backend& inner, bool drops) : ForwardingBackend(inner, nullptr), drops_(drops) {}
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    output_ = tensors.back();
    return ForwardingBackend::bind(plan, tensors, workspace);
  }
  void run(const Launch& launch) override {
    constexpr int faulty = 30;
    ++runs_;
    if (runs_ == faulty && drops_) return;
    ForwardingBackend::run(launch);
    if (runs_ != faulty) return;
    std::vector<std::byte> bytes(static_cast<std::size_t>(output_.spec.bytes()));
    read(bytes, output_.data);
    for (std::int64_t i = 5; i < output_.spec.shape.elements(); i += 32)
      flip_bits(output_.spec.dtype, bytes.data(), i, std::uint64_t{3} << 20U);
    write(output_.data, bytes);
  }

 private:
  Tensor output_;
  bool drops_;
  int runs_ = 0;
};

std::string told_of(bool drops) {
  SimBackend inner(parse_script(""));
  OneFault backend(inner, drops);
  StopFlag stop{0};
  const std::vector<PlannedCase> cases = sim_cases();
  const SoakResult result = soak(backend, std::span(cases).first(1), smoke_options(),
                                 {.seconds = 3600.0, .interval_s = 0.02, .recheck_s = 3600.0},
                                 {.divergence = [&](const Divergence&) { stop = 15; }}, stop);
  EXPECT_EQ(result.diverged, 1);
  return result.divergences.empty() ? "" : result.divergences.front().text;
}

TEST(Soak, SaysWhichElementsDifferInWhichBits) {
  EXPECT_THAT(told_of(false), AllOf(HasSubstr("): 2 of 64 elements of "), HasSubstr("the first at [0, 5]: "),
                                    HasSubstr(", in bits 20-21 of each; the next launch is right")));
}

// The correct results of the previous launch must not pass for this launch's.
TEST(Soak, SeesALaunchThatDidNotRun) {
  EXPECT_THAT(told_of(true), AllOf(HasSubstr("): 64 of 64 elements of "), HasSubstr("all of it")));
}

TEST(Soak, TellsWhatTheJudgedLaunchesLeft) {
  const auto judged = [](const std::string& script, std::uint64_t seed) {
    SimBackend backend(parse_script(script));
    StopFlag stop{0};
    RunOptions options = smoke_options();
    options.seed = seed;
    std::vector<JudgedLaunch> all;
    (void)soak(backend, sim_cases(), options,
               {.seconds = 3600.0, .interval_s = 0.0, .recheck_s = 0.0, .judging_share = 1.0},
               {.judged =
                    [&](const JudgedLaunch& one) {
                      all.push_back(one);
                      if (one.epoch == 2) stop = 15;
                    }},
               stop);
    return all;
  };
  const std::vector<JudgedLaunch> here = judged("", 1), opaque = judged("opaque", 1), other = judged("", 2);
  ASSERT_EQ(here.size(), opaque.size());
  ASSERT_FALSE(here.empty());
  EXPECT_EQ(here.back().epoch, 2);
  for (std::size_t i = 0; i < here.size(); ++i) {
    EXPECT_EQ(here[i].case_id, opaque[i].case_id);
    ASSERT_EQ(here[i].values.size(), opaque[i].values.size());
    ASSERT_FALSE(here[i].values.empty());
    for (std::size_t v = 0; v < here[i].values.size(); ++v) {
      EXPECT_EQ(here[i].values[v].print, opaque[i].values[v].print) << here[i].values[v].op;
      EXPECT_EQ(here[i].values[v].tensor, opaque[i].values[v].tensor);
    }
    EXPECT_NE(here[i].values.front().print, other[i].values.front().print) << "other data";
  }
  EXPECT_NE(here.front().values.front().print, here.back().values.front().print);
}

TEST(Soak, AsksTheTextbookFirstWhetherTheBitsAreRight) {
  Told told;
  const SoakResult result = soaked("wrong_element@chain.down", smoke_options(), told);
  EXPECT_FALSE(result.passed());
  EXPECT_EQ(result.diverged, 0);  // always the same wrong bits
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

TEST(SoakResult, SpeedIsOfTheFirstIntervalAndOfTheSecondHalf) {
  SoakResult result;
  EXPECT_EQ(result.burst_rate(), 0.0);
  EXPECT_EQ(result.sustained_rate(), 0.0);
  for (const double device_s : {1.0, 2.0, 4.0, 5.0})
    result.add(SoakInterval{.seconds = 10.0, .device_s = device_s, .launches = 20, .ops = 40});
  EXPECT_DOUBLE_EQ(result.burst_rate(), 20.0);
  EXPECT_DOUBLE_EQ(result.sustained_rate(), 40.0 / 9.0);
  EXPECT_EQ(result.ops, 160);
  EXPECT_DOUBLE_EQ(result.seconds, 40.0);
}

TEST(ExcludedRate, IsTheOneThatLeavesAChanceOfFivePercentForNoFaultAtAll) {
  EXPECT_DOUBLE_EQ(excluded_rate(0), 1.0);
  EXPECT_NEAR(excluded_rate(1), 0.95, 1e-15);
  EXPECT_NEAR(excluded_rate(2), 1.0 - 0.22360679774997896, 1e-15);  // the square root of 0.05
  EXPECT_NEAR(excluded_rate(1'000'000), 2.995732e-6, 1e-11);        // the rule of three
}

}  // namespace
}  // namespace gpubench::sim
