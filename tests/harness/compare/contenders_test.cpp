#include "harness/compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/harness/compare/made_reports.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CaseRecord timed_rounds(const std::string& contender, const std::vector<double>& ns,
                        const std::string& workload = "a") {
  CaseRecord record = timed_record(workload, ns.front());
  record.c.contender = contender;
  record.rounds.resize(ns.size());
  for (std::size_t i = 0; i < ns.size(); ++i) {
    record.rounds[i].times.device_ns.assign(10, 4.0 * ns[i]);
    record.rounds[i].times.wall_ns = record.rounds[i].times.device_ns;
  }
  return record;
}

Comparison compared(const std::vector<double>& reference, const std::vector<double>& own) {
  const Report report = timed_report({timed_rounds("", reference), timed_rounds("own", own)});
  return compare_contenders(of_contender(report, ""), of_contender(report, "own"));
}

// A machine that slows down by half during the run affects both alike: the pairs differ by log 2 +- .001, standard
// error .001 / sqrt(3), 2 degrees of freedom, t(.975) = 4.302653.
TEST(Contenders, RoundsAreComparedInPairsSoThatADriftOfTheMachineCancels) {
  const double step = std::exp(0.001);
  const Comparison comparison = compared({1000, 1500, 2000}, {500, 750 * step, 1000 / step});
  ASSERT_EQ(comparison.cases.size(), 1U);
  const double half = 4.302653 * 0.001 / std::sqrt(3.0);
  EXPECT_NEAR(comparison.cases[0].speed.ratio, 2.0, 1e-9);
  EXPECT_NEAR(comparison.cases[0].speed.low, 2.0 * std::exp(-half), 1e-6);
  EXPECT_NEAR(comparison.cases[0].speed.high, 2.0 * std::exp(half), 1e-6);
  EXPECT_EQ(comparison.cases[0].relation, Relation::faster);
  EXPECT_EQ(comparison.source, NoiseSource::rounds);
}

TEST(Contenders, TheWordsAreThoseOfTheGate) {
  const std::vector<double> base{1000, 1002, 998, 1001, 999};
  const auto times = [&](double factor) {
    std::vector<double> scaled = base;
    for (double& ns : scaled) ns *= factor;
    scaled[1] *= 1.001;
    return scaled;
  };
  EXPECT_EQ(compared(base, times(1.05)).cases[0].relation, Relation::slower);
  EXPECT_EQ(compared(base, times(0.95)).cases[0].relation, Relation::faster);
  EXPECT_EQ(compared(base, times(1.01)).cases[0].relation, Relation::same) << "certain, but not what matters";
  EXPECT_EQ(compared(base, {700, 1400, 900, 1100, 1000}).cases[0].relation, Relation::unsure);
}

TEST(Contenders, WhatDidNotPassHasNoRatioButAReason) {
  CaseRecord bad = timed_rounds("own", {1000, 1000});
  bad.verdict = Verdict::fail;
  bad.reason = "3 elements";
  const Report report = timed_report({timed_rounds("", {1000, 1000}), bad});
  const Comparison comparison = compare_contenders(of_contender(report, ""), of_contender(report, "own"));
  EXPECT_TRUE(comparison.cases.empty());
  ASSERT_EQ(comparison.lone.size(), 1U);
  EXPECT_EQ(comparison.lone[0].why, "own: fail: 3 elements");
}

TEST(Contenders, AReportOfSeveralIsReadByName) {
  const Report report = timed_report({timed_rounds("", {1000, 1000}), timed_rounds("own", {500, 500})});
  EXPECT_THAT(contenders_of(report.cases), ElementsAre("", "own"));
  const std::string text = sealed_text(report_json(report));
  EXPECT_NEAR(std::exp(parse_invocation(text, "r.json", "own").cases.at(0).run->log_median), 500.0, 1e-6);
  EXPECT_NEAR(std::exp(parse_invocation(text, "r.json", "reference").cases.at(0).run->log_median), 1000.0, 1e-6);
  const auto message = [&](const std::optional<std::string>& name) {
    return thrown_text<ReadError>([&] { (void)parse_invocation(text, "r.json", name); }, "read");
  };
  EXPECT_THAT(message({}), HasSubstr("several implementations, own, reference; name one: r.json#NAME"));
  EXPECT_THAT(message("owl"), HasSubstr("no implementation 'owl'; it has own, reference"));
}

TEST(Contenders, TheTableSaysWhoIsFasterAndByHowMuch) {
  const Report report = timed_report({timed_rounds("", {1000, 1001, 999}), timed_rounds("own", {500, 500, 500})});
  const std::string text = contenders_text(report, "", {});
  EXPECT_THAT(text, ::testing::AllOf(HasSubstr("against reference"), HasSubstr("own                faster  2.000x")));
  EXPECT_EQ(contenders_text(timed_report({timed_rounds("", {1000, 1000})}), "", {}), "");
}

}  // namespace
}  // namespace gpubench
