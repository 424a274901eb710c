// Brief reports: the members they keep, and equal results for readers.
#include "harness/report/report_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/report/content_digest.h"
#include "harness/report/json.h"
#include "tests/harness/report/report_schema.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace brief_test {

using ::testing::ElementsAre;
using ::testing::Pair;

OpParity op(const std::string& label, const std::string& kind, const std::string& phase, double error) {
  OpParity parity;
  parity.label = label;
  parity.kind = kind;
  parity.phase = phase;
  parity.implementation = "lib:" + label;
  parity.verdict = Verdict::pass;
  parity.error_over_bound = error;
  parity.judged = 10;
  parity.elements = 40;
  parity.mutations = parity.mutations_rejected = 3;
  return parity;
}

// Five ops in three phases: a tie in "check", whose worst op is c, and one in "exact". The breakdown has e.
CaseRecord record() {
  CaseRecord r = holding_record();
  r.parity.passed.reset();
  r.parity.implementations.reset();
  r.parity.ops = {op("a", "gemm", "check", 0.25),   op("b", "gemm", "check", 0.5),
                  op("c", "norm", "check", 0.5),    op("a", "gemm", "exact", 0.0),
                  op("b", "gemm", "exact", 0.0),    op("a", "gemm", "recheck", 0.125),
                  op("b", "gemm", "recheck", 0.25), op("c", "norm", "recheck", 0.0625),
                  op("d", "norm", "recheck", 0.03), op("e", "norm", "recheck", 0.03)};
  r.parity.ops[5].rejected = {"lib:other: 3 of 9 judged elements of 'y' outside their bound"};
  r.parity.worst_op = "c";
  r.parity.error_over_bound = 0.5;
  r.derived.breakdown.front().label = "e";
  r.derived.breakdown.front().implementation = "lib:e";
  return r;
}

std::vector<std::string> kept_of(const CaseRecord& r) {
  std::vector<std::string> kept;
  for (const OpParity& one : brief(r).parity.ops) kept.push_back(one.phase + " " + one.label);
  return kept;
}

Report report_of(CaseRecord r) {
  Report report = holding_report();
  report.cases[0] = std::move(r);
  return report;
}

Report read(const std::string& text) { return parse_report(text, "report.json"); }

TEST(Brief, KeepsTheWorstOpOfEachPhaseAndRejectedCandidates) {
  EXPECT_THAT(kept_of(record()), ElementsAre("check c", "exact a", "recheck a", "recheck b"));
}

TEST(Brief, KeepsEachOpThatDidNotPass) {
  CaseRecord r = record();
  r.parity.ops[5].rejected.reset();
  r.parity.ops[6].verdict = Verdict::fail;
  r.parity.ops[6].error_over_bound = 3.5;
  r.parity.ops[7].verdict = Verdict::not_proven;
  r.parity.worst_op = "b";
  EXPECT_THAT(kept_of(r), ElementsAre("check b", "exact b", "recheck b", "recheck c"));
}

TEST(Brief, WhereAnErrorIsNoNumberAllOpsStay) {
  CaseRecord r = record();
  r.parity.ops[0].error_over_bound = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(kept_of(r).size(), r.parity.ops.size());
}

TEST(Brief, SumsUpTheOtherOpsByKind) {
  const Parity parity = brief(record()).parity;
  ASSERT_TRUE(parity.passed && parity.implementations);
  std::vector<std::string> rows;
  for (const PassedOps& p : *parity.passed)
    rows.push_back(p.kind + " " + std::to_string(p.ops) + " " + std::to_string(p.judged) + " " +
                   std::to_string(p.elements) + " " + std::to_string(p.mutations));
  EXPECT_THAT(rows, ElementsAre("gemm 3 30 120 9", "norm 3 30 120 9"));
  EXPECT_EQ(parity.passed->front().error_over_bound, 0.5);
  EXPECT_EQ(parity.passed->front().phase, "check");
  EXPECT_EQ(parity.passed->back().error_over_bound, 0.0625);
  EXPECT_EQ(parity.passed->back().phase, "recheck");
  EXPECT_THAT(*parity.implementations, ElementsAre(Pair("d", "lib:d")));
}

TEST(Brief, CountsThatDoNotFitStayAtTheLargest) {
  CaseRecord r = record();
  r.parity.ops[0].judged = r.parity.ops[1].judged = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(brief(r).parity.passed->front().judged, std::numeric_limits<std::int64_t>::max());
}

TEST(Brief, OfABriefRecordIsTheSame) {
  for (const CaseRecord& r : {record(), holding_record()}) {
    const CaseRecord once = brief(r);
    EXPECT_EQ(dump(to_json(brief(once))), dump(to_json(once)));
    const std::string text = report_json_text(report_of(r));
    EXPECT_EQ(report_json_text(read(text)), text);
  }
}

// holding_record() has sums of two ops; one of its two ops is dropped.
TEST(Brief, AddsToTheSumsOfABriefRecord) {
  const Parity parity = brief(holding_record()).parity;
  ASSERT_EQ(parity.passed->size(), 1U);
  EXPECT_EQ(parity.passed->front().ops, 3);
  EXPECT_EQ(parity.passed->front().judged, 192);
  EXPECT_EQ(parity.passed->front().error_over_bound, 0.25);
  EXPECT_THAT(*parity.implementations, ElementsAre(Pair("up", "own")));
}

TEST(BriefReport, HoldsByTheSchemaAndByItsMeaning) {
  const std::string text = report_json_text(report_of(record()));
  EXPECT_EQ(seal_of(text), Seal::holds);
  EXPECT_EQ(schema_errors(parse_json(text, "x")), "");
  Problems problems;
  (void)report_from_json(parse_json(text, "x"), "x", problems);
  EXPECT_THAT(problems.kept(), ElementsAre());
}

TEST(BriefReport, HasALineForEachCaseAndEachBenchmark) {
  const Report report = report_of(record());
  const std::string full = report_json_text(report, Detail::full);
  std::size_t cases = 0, benchmarks = 0;
  for (std::size_t at = full.find('\n'); at != std::string::npos; at = full.find('\n', at + 1)) {
    cases += full.compare(at, 7, "\n{\"id\":") == 0 ? 1 : 0;
    benchmarks += full.compare(at, 9, "\n{\"name\":") == 0 ? 1 : 0;
  }
  EXPECT_EQ(cases, 3U);
  EXPECT_EQ(benchmarks, 3U);
  Json document = parse_json(full, "x");
  document.erase("digest");
  EXPECT_EQ(dump(document), dump(report_json(report)));
}

TEST(BriefReport, OfNoCasesIsAReportToo) {
  Report report = holding_report();
  report.cases.clear();
  EXPECT_TRUE(read(report_json_text(report)).cases.empty());
}

TEST(BriefReport, LeavesOutSharesThatItsReaderComputes) {
  const std::string text = report_json_text(report_of(record()));
  EXPECT_EQ(text.find("\"share\""), std::string::npos);
  EXPECT_EQ(read(text).cases[0].derived.breakdown[0].share, record().derived.breakdown[0].share);
  CaseRecord other = record();
  other.derived.breakdown[0].share = 0.5;
  EXPECT_NE(report_json_text(report_of(other)).find("\"share\":0.5"), std::string::npos);
}

TEST(BriefReport, GivesThePinsOfAFullOne) {
  const auto pins_of = [](const std::string& text) {
    const std::string path = ::testing::TempDir() + "brief_test.json";
    std::ofstream(path) << text;
    return read_pins(path);
  };
  const Report report = report_of(record());
  const auto pins = pins_of(report_json_text(report));
  EXPECT_EQ(pins, pins_of(sealed_text(report_json(report), 1)));  // as in all reports before 1.16
  EXPECT_THAT(pins.at(report.cases[0].id), ElementsAre(Pair("a", "lib:a"), Pair("b", "lib:b"), Pair("c", "lib:c"),
                                                       Pair("d", "lib:d"), Pair("e", "lib:e")));
}

}  // namespace brief_test
}  // namespace gpubench
