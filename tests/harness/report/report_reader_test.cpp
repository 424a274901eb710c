// The reader of reports: valid ones round trip, invalid ones are refused with place and reason.
#include "harness/report/report_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/core/record.h"
#include "tests/harness/report/malformed_reports.h"
#include "tests/harness/report/report_schema.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using ::testing::ElementsAre;

Problems problems_of(const std::string& bytes) {
  Problems problems;
  problems.attempt([&] { (void)report_from_json(parse_json(bytes, "report.json"), "report.json", problems); });
  return problems;
}

Problems problems_after(const std::function<void(Json&)>& change) { return problems_of(changed_report(change)); }

// "report.json:path: why" with the expected path or prefix.
::testing::AssertionResult told_as_expected(const MalformedFile& file, const std::string& problem) {
  const std::string start = "report.json:" + file.path;
  const bool has_place = problem.rfind(start, 0) == 0;
  const std::size_t end = problem.find(": ", std::string("report.json:").size());
  const bool has_reason = end != std::string::npos && end + 2 < problem.size();
  if (has_place && has_reason && problem.find(file.why) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << file.name << ": expected " << start << " ... " << file.why << "\n  got "
                                       << problem;
}

void expect_refused(const std::vector<MalformedFile>& files) {
  for (const MalformedFile& file : files) {
    const Problems problems = problems_of(file.bytes);
    if (problems.none()) {
      ADD_FAILURE() << file.name << ": accepted";
    } else {
      EXPECT_TRUE(told_as_expected(file, problems.kept().front()));
    }
  }
}

TEST(ReportReader, AReportThatHoldsIsValidByTheSchemaAndHasNoProblems) {
  const Json report = report_json(holding_report());
  EXPECT_EQ(schema_errors(report), "");
  EXPECT_THAT(problems_of(dump(report)).kept(), ElementsAre());
}

TEST(ReportReader, BringsEverythingBack) {
  const Json written = report_json(holding_report());
  Problems problems;
  const Report read = report_from_json(parse_json(dump(written), "x"), "x", problems);
  EXPECT_TRUE(problems.none());
  EXPECT_EQ(dump(report_json(read)), dump(written));
}

TEST(ReportReader, RefusesBytesThatAreNoReport) { expect_refused(malformed_bytes()); }

TEST(ReportReader, RefusesEachMemberOfAnotherKindNegativeOrMissing) { expect_refused(malformed_members()); }

TEST(ReportReader, RefusesReportsThatContradictThemselves) { expect_refused(contradictory_reports()); }

TEST(ReportReader, ThereAreHundredsOfMalformedFiles) {
  EXPECT_GE(malformed_bytes().size(), 100U);
  EXPECT_GE(contradictory_reports().size(), 80U);
  EXPECT_GE(malformed_members().size(), 1000U);
}

// Checks the list of optional members: the report stays valid without any one of them.
TEST(ReportReader, OptionalMembersMayBeMissing) {
  for (const std::string& path : optional_members()) {
    const Json::json_pointer place = pointer_to(path);
    const Problems problems = problems_after([&](Json& j) {
      j.at(place.parent_pointer()).erase(place.back());
      if (place.back() != "calls") return;
      for (Json& one : j["gpubench"]["cases"]) one.erase("calls");
      j["gpubench"].erase("calls_totals");
    });
    EXPECT_THAT(problems.kept(), ElementsAre()) << path;
  }
}

TEST(ReportReader, MembersThatNobodyKnowsDoNoHarm) {
  const Problems problems = problems_after([](Json& j) {
    j["more"] = {1, 2, 3};
    j["context"]["gpubench"]["schema_version"] = "1.99";
    j["context"]["gpubench"]["since_1_99"] = "x";
    j["gpubench"]["cases"][0]["since_1_99"] = {{"a", 1}};
    j["gpubench"]["totals"]["since_1_99"] = 7;
    j["benchmarks"][0]["since_1_99"] = 7;
  });
  EXPECT_THAT(problems.kept(), ElementsAre());
}

// Both cases have two rounds with a wide interval. "noisy" had another meaning before 1.5.
TEST(ReportReader, NoisyInReportsBeforeOneFiveIsReadByTodaysRule) {
  for (const auto& [version, holds] : {std::pair{"1.4", true}, {"1.5", false}}) {
    Json older = report_json(holding_report());
    older["context"]["gpubench"]["schema_version"] = version;
    Json& flags = older["gpubench"]["cases"][0]["summary"]["flags"];
    flags = {"power capped"};
    Problems problems;
    const Report read = report_from_json(older, "report.json", problems);
    EXPECT_EQ(problems.none(), holds) << version;
    if (holds) {
      EXPECT_THAT(read.cases[0].summary.flags, ElementsAre("noisy", "power capped"));
    }
  }
}

// The step on one rank is unreliable, and so are the efficiency and the best of the run that depended on it before 1.5.
TEST(ReportReader, FiguresMadeOfUnreliableTimingsAreDroppedFromReportsBeforeOneFive) {
  Report report = holding_report();
  CaseRecord alone = holding_record();
  alone.c.ranks = 1;
  alone.id = alone.c.id();
  for (RoundRecord& round : alone.rounds) round.times.ranks.reset();
  alone.derived.ranks.reset();
  ASSERT_TRUE(timing_unreliable(alone.summary));
  report.cases.push_back(alone);
  CaseRecord& several = report.cases[0];
  several.rounds[1].times = several.rounds[0].times;
  several.summary = summarize(several.rounds, several.batch);
  ASSERT_FALSE(timing_unreliable(several.summary));
  several.derived.ranks->efficiency = 5.72;
  several.derived.peak->best_case = alone.id;
  restate(report, 5);
  EXPECT_EQ(several.derived.ranks->efficiency, 5.72);
  restate(report, 4);
  EXPECT_FALSE(several.derived.ranks->efficiency.has_value());
  EXPECT_FALSE(several.derived.peak->of_best.has_value());
  EXPECT_EQ(several.derived.peak->of_peak, several.derived.peak->rate / *several.derived.peak->peak);
}

TEST(ReportReader, AnotherMajorVersionIsTheOnlyThingSaidOfAReport) {
  const Problems problems = problems_after([](Json& j) {
    j["context"]["gpubench"]["schema_version"] = "2.0";
    j["gpubench"]["cases"] = "elsewhere";
  });
  EXPECT_THAT(problems.kept(),
              ElementsAre("report.json:context.gpubench.schema_version: is \"2.0\": major version 2 of "
                          "the schema; this gpubench reads version 1, as in \"" +
                          std::string(report_schema_version) + "\""));
}

TEST(ReportReader, EveryProblemIsTold) {
  const Problems problems = problems_after([](Json& j) {
    j["context"]["num_cpus"] = "two";
    j["gpubench"]["cases"][0]["batch"] = -2;
    j["gpubench"]["cases"][1]["parity"]["ops"][0]["label"] = 7;
    j["gpubench"]["cases"][2].erase("tier");
  });
  EXPECT_THAT(problems.kept(),
              ElementsAre("report.json:context.num_cpus: is string, expected a whole number",
                          "report.json:gpubench.cases[0].batch: is -2, expected 0 to 9223372036854775807",
                          "report.json:gpubench.cases[1].parity.ops[0].label: is number, expected a string",
                          "report.json:gpubench.cases[2]: lacks \"tier\""));
}

TEST(ReportReader, AfterFiftyProblemsTheOthersAreCountedAndAfterAThousandTheSearchEnds) {
  const auto with_labels = [](std::size_t count) {
    return problems_after([count](Json& j) { j["context"]["gpubench"]["argv"] = Json(count, 1); });
  };
  EXPECT_EQ(with_labels(70).kept().size(), 50U);
  EXPECT_EQ(with_labels(70).count(), 70U);
  EXPECT_FALSE(with_labels(70).many());
  EXPECT_EQ(with_labels(100000).count(), 1000U);
  EXPECT_TRUE(with_labels(100000).many());
}

TEST(ReportReader, ReadsAFileAndThrowsTheFirstProblemOfOneThatDoesNotHold) {
  const std::string path = ::testing::TempDir() + "report_reader_test.json";
  std::ofstream(path) << dump(report_json(holding_report()));
  EXPECT_EQ(read_report(path).cases.size(), 3U);
  EXPECT_TRUE(problems_of_report(path).none());

  Json broken = report_json(holding_report());
  broken["gpubench"]["totals"]["pass"] = 2;
  broken["gpubench"]["totals"]["skipped"] = 0;
  std::ofstream(path) << dump(broken);
  EXPECT_EQ(thrown_text<ReadError>([&] { (void)read_report(path); }),
            path + ":gpubench.totals.pass: is 2, but the cases make 1 (and 1 more; gpubench validate lists them)");
  std::filesystem::remove(path);
  EXPECT_THAT(problems_of_report(path).kept(),
              ElementsAre(path + ":(root): cannot be opened for reading: No such file or directory"));
}

}  // namespace
}  // namespace gpubench
