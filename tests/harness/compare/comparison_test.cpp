#include "harness/compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/report/json.h"
#include "tests/harness/compare/made_reports.h"
#include "tests/harness/core/text/terminal_width.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Comparison of(const std::vector<double>& a, const std::vector<double>& b) {
  return compare(side_of(a), side_of(b), {});
}

// Spread of both sides: the logs differ by 1e-3 from their neighbours, v = 1e-6, the lower limit of 0.1%; 8 degrees of
// freedom, t(.975) = 2.306004, error .001 sqrt(2/3).
TEST(Comparison, TheRatioIsOfSpeedsWithStudentsInterval) {
  const double step = std::exp(0.001);
  const Comparison comparison = of({1000 / step, 1000, 1000 * step}, {500 / step, 500, 500 * step});
  ASSERT_EQ(comparison.cases.size(), 1U);
  const Speed& speed = comparison.cases[0].speed;
  const double half = 2.306004 * 0.001 * std::sqrt(2.0 / 3.0);
  EXPECT_NEAR(speed.ratio, 2.0, 1e-12);
  EXPECT_NEAR(speed.low, 2.0 * std::exp(-half), 1e-7);
  EXPECT_NEAR(speed.high, 2.0 * std::exp(half), 1e-7);
  EXPECT_EQ(comparison.cases[0].relation, Relation::faster);
  EXPECT_EQ(comparison.source, NoiseSource::sides);
  EXPECT_EQ(comparison.runs_a, 3);
}

TEST(Comparison, WordsFollowTheInterval) {
  const std::vector<double> base{1000, 1001, 999};
  EXPECT_EQ(of(base, {1100, 1101, 1099}).cases[0].relation, Relation::slower);
  EXPECT_EQ(of(base, {1005, 1006, 1004}).cases[0].relation, Relation::same);  // significant, and within 3%
  EXPECT_EQ(of({1000, 1100, 900}, {1010, 1110, 910}).cases[0].relation, Relation::unsure);
}

// One report a side: 3% is assumed, half-width 2.776445 * .03 * sqrt(2) = 11.8%.
TEST(Comparison, ASingleReportASideAssumesTheNoiseOfItsKindOfDevice) {
  const Comparison comparison = of({1000}, {1100});
  EXPECT_EQ(comparison.source, NoiseSource::assumed);
  EXPECT_EQ(comparison.cases[0].relation, Relation::unsure);
  EXPECT_NEAR(std::log(comparison.cases[0].speed.high / comparison.cases[0].speed.ratio), 0.117795, 1e-5);
  EXPECT_EQ(of({1000}, {1200}).cases[0].relation, Relation::slower);
}

// Ratios 2 and 1/2 of one suite, 4 of another. The mean of n equal errors e: e sqrt(1/2 + 1/(2n)); n = 2: .866 e.
TEST(Comparison, ASuitesGeometricMeanHasItsInterval) {
  CaseRecord other = timed_record("c", 4000);
  other.c.suite = "conv";
  other.id = other.c.id();
  CaseRecord faster = other;
  for (RoundRecord& round : faster.rounds) round.times.device_ns.assign(10, 4.0 * 1000);
  const std::vector<Invocation> a{read_back(timed_report({timed_record("a", 1000), timed_record("b", 1000), other}))};
  const std::vector<Invocation> b{read_back(timed_report({timed_record("a", 500), timed_record("b", 2000), faster}))};
  const Comparison comparison = compare(a, b, {});
  ASSERT_EQ(comparison.suites.size(), 2U);
  EXPECT_EQ(comparison.suites[0].suite, "gemm");
  EXPECT_EQ(comparison.suites[0].cases, 2);
  EXPECT_NEAR(comparison.suites[0].speed.ratio, 1.0, 1e-12);
  EXPECT_NEAR(std::log(comparison.suites[0].speed.high), 0.117795 * std::sqrt(0.75), 1e-5);
  EXPECT_NEAR(comparison.suites[1].speed.ratio, 4.0, 1e-12);
  EXPECT_NEAR(std::log(comparison.suites[1].speed.high / 4.0), 0.117795, 1e-5);
}

TEST(Comparison, OnlyCasesThatPassOnBothSidesHaveARatio) {
  CaseRecord failed = timed_record("b", 1000);
  failed.verdict = Verdict::fail;
  failed.reason = "wrong";
  CaseRecord other_work = timed_record("d", 1000);
  other_work.derived.flop *= 3;
  other_work.def_hash = "fedcba9876543210";
  const std::vector<Invocation> a{read_back(timed_report(
      {timed_record("a", 1000), timed_record("b", 1000), timed_record("c", 1000), timed_record("d", 1000)}))};
  const std::vector<Invocation> b{
      read_back(timed_report({timed_record("a", 1000), failed, timed_record("e", 1000), other_work}))};
  const Comparison comparison = compare(a, b, {});
  ASSERT_EQ(comparison.cases.size(), 1U);
  std::map<std::string, std::string> lone;
  for (const UnmatchedCase& one : comparison.lone) lone[one.id.substr(5, 1)] = one.why;
  EXPECT_EQ(lone["b"], "B: fail: wrong");
  EXPECT_EQ(lone["c"], "only in A");
  EXPECT_THAT(lone["d"], HasSubstr("another definition"));
  EXPECT_EQ(lone["e"], "only in B");
}

std::string conflict_of(const CaseRecord& a, const CaseRecord& b) {
  const std::vector<Invocation> sides{read_back(timed_report({a})), read_back(timed_report({b}))};
  return definition_conflict(match(std::span(sides).first(1), std::span(sides).last(1)).front());
}

// Residual and norm in one launch read the sum once less than in two; the definition is the same.
TEST(DefinitionConflict, IsNoneWhereABackendMovesFewerBytesForTheSameDefinition) {
  CaseRecord fused = timed_record("a", 900);
  fused.derived.bytes *= 0.75;
  EXPECT_EQ(conflict_of(timed_record("a", 1000), fused), "");
}

TEST(DefinitionConflict, IsTheHashWhereTheCountsAreEqual) {
  CaseRecord other = timed_record("a", 1000);
  other.def_hash = "fedcba9876543210";
  EXPECT_EQ(conflict_of(timed_record("a", 1000), other),
            "def_hash 0123456789abcdef on one side, fedcba9876543210 on the other: another definition");
}

TEST(DefinitionConflict, IsTheCountsWhereAReportHasNoHash) {
  CaseRecord old = timed_record("a", 1000);
  old.def_hash.reset();
  EXPECT_EQ(conflict_of(timed_record("a", 1000), old), "");
  CaseRecord other = old;
  other.derived.bytes *= 2;
  EXPECT_THAT(conflict_of(old, other), HasSubstr("7.17 kB on one side, 14.3 kB on the other: another definition"));
  EXPECT_THAT(conflict_of(timed_record("a", 1000), other), HasSubstr("another definition"));
  other = old;
  other.derived.flop *= 2;
  EXPECT_THAT(conflict_of(old, other), HasSubstr("FLOP on one side"));
  other = old;
  other.derived.headline_unit = "tokens/s";
  EXPECT_EQ(conflict_of(old, other), "rates in FLOP/s on one side, in tokens/s on the other");
}

TEST(Comparison, HardwareOfDifferentMakesIsComparedAndNamed) {
  Report gpu = timed_report({timed_record("a", 100)});
  gpu.run.devices[0].kind = "cuda";
  gpu.run.devices[0].name = "A GPU";
  const std::vector<Invocation> b{read_back(gpu, "b.json")};
  const Comparison comparison = compare(side_of({1000}), b, {});
  EXPECT_NEAR(comparison.cases[0].speed.ratio, 10.0, 1e-12);
  EXPECT_EQ(comparison.assumed_spread, 0.03);  // the processor's, the larger
  const LabelledComparison labelled{{"A", {"a.json"}, "A Processor"}, {"B", {"b.json"}, "A GPU"}, comparison};
  const std::string text = comparison_table(labelled, {});
  EXPECT_THAT(text, HasSubstr("A = A Processor: 1 report, a.json\nB = A GPU: 1 report, b.json\n"
                              "differ: device.kind cpu -> cuda; device.name A Processor -> A GPU;"));
  EXPECT_THAT(text, HasSubstr("FASTER   10.0x  [8.889x, 11.3x]"));
  for (int width = 40; width <= 200; ++width) {
    ConsoleStyle style;
    style.width = width;
    const std::string fitted = comparison_table(labelled, style);
    EXPECT_THAT(lines_too_wide(fitted, width), IsEmpty()) << width;
    for (const char* part : {"FASTER", "10.0x", "[8.889x, 11.3x]", "gemm/a/m=64,n=32,k=16/bf16/warm/x1"})
      EXPECT_THAT(fitted, HasSubstr(part)) << width;
  }
}

// One run a side: factors of 1.13.
TEST(Comparison, BatchesThatDifferTooMuchAreUnsureWithinWhatTheyExplain) {
  for (const auto& [ns, relation] : {std::pair(4 * 700, Relation::unsure), std::pair(4 * 1650, Relation::unsure),
                                     std::pair(4 * 500, Relation::faster), std::pair(4 * 4000, Relation::slower)}) {
    CaseRecord other = timed_record("a", ns);
    other.batch = 16;
    const std::vector<Invocation> b{read_back(timed_report({other}))};
    const Comparison comparison = compare(side_of({1000}), b, {});
    EXPECT_EQ(comparison.cases[0].relation, relation) << ns;
    EXPECT_EQ(comparison.cases[0].note, "samples of 4 and of 16 runs");
    EXPECT_TRUE(comparison.suites.empty());
  }
}

TEST(Comparison, TextsOfReportsStayTextInEveryFormat) {
  Report hostile = timed_report({timed_record("a", 1000)});
  hostile.run.devices[0].name = "=cmd|<b>\x1b[2J|[x](y)";
  const std::vector<Invocation> b{read_back(hostile, "b.json")};
  const std::vector<LabelledComparison> all{{{"A", {"a.json"}, "A Processor"},
                                             {"B", {"=b,\".json"}, hostile.run.devices[0].name},
                                             compare(side_of({1000}), b, {})}};
  EXPECT_THAT(comparison_table(all[0], {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(comparison_markdown(all[0]), AllOf(Not(HasSubstr("<b>")), Not(HasSubstr("](")), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(comparison_csv(all), HasSubstr("\na.json,\"'=b,\"\".json\",gemm,"));
  const Json json = parse_json(dump(comparison_json(all)), "json");
  EXPECT_EQ(json["comparisons"][0]["b"]["device"], hostile.run.devices[0].name);
  EXPECT_EQ(json["comparisons"][0]["cases"][0]["verdict"], "UNSURE");
}

}  // namespace
}  // namespace gpubench
