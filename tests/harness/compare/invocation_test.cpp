#include "harness/compare/invocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "harness/report/content_digest.h"
#include "harness/report/json.h"
#include "tests/harness/compare/made_reports.h"
#include "tests/harness/report/malformed_reports.h"
#include "tests/harness/report/sample_records.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;

Report three_cases() {
  Report report = sample_report();
  report.cases[1].c.workload = "failing";
  report.cases[1].id = report.cases[1].c.id();
  return report;
}

std::string refusal(const std::string& text) {
  return thrown_text<ReadError>([&] { (void)parse_invocation(text, "r.json"); }, "accepted");
}

// Of ten rounds four at 0.1, two at 0.4 and four at 0.9: the median is 0.4.
TEST(Invocation, TheProcessorsPressureIsTheMedianOverTheRoundsAndIsKept) {
  CaseRecord record = timed_record("a", 1000);
  for (std::size_t r = 0; r < record.rounds.size(); ++r) {
    record.rounds[r].telemetry.emplace();
    record.rounds[r].telemetry->cpu_pressure = r < 4 ? 0.1 : r < 6 ? 0.4 : 0.9;
  }
  const Invocation invocation = read_back(timed_report({record}));
  EXPECT_EQ(invocation.cases[0].run->cpu_pressure, 0.4);
  const Json kept = to_json(invocation);
  EXPECT_EQ(invocation_from_json(Node(kept, "b.json"), "b.json").cases[0].run->cpu_pressure, 0.4);
}

// The sample's first round took 4000, 3800 and 4600 ns for two runs each; its second one is invalid.
TEST(Invocation, TheTimeOfACaseIsTheMedianOfItsValidSamplesPerRun) {
  const Invocation invocation = read_back(three_cases());
  ASSERT_EQ(invocation.cases.size(), 3U);
  const MeasuredCase& passed = invocation.cases[0];
  EXPECT_EQ(passed.id, "gemm/square/m=64,n=32,k=16/bf16/warm/x1");
  EXPECT_EQ(passed.suite, "gemm");
  EXPECT_EQ(passed.verdict, Verdict::pass);
  EXPECT_EQ(passed.unit, "FLOP/s");
  EXPECT_EQ(passed.flop, 65536.0);
  ASSERT_TRUE(passed.run.has_value());
  EXPECT_NEAR(passed.run->log_median, std::log(2000.0), 1e-15);
  EXPECT_EQ(passed.run->rounds, 1);
  EXPECT_EQ(passed.run->samples, 3);
  EXPECT_EQ(passed.run->batch, 2);
  EXPECT_EQ(passed.run->sm_mhz, 1755.5);
  EXPECT_TRUE(passed.run->drifting);
  EXPECT_EQ(invocation.injected, "gemm=25%");
  EXPECT_EQ(invocation.started_at, "2026-11-21T02:34:19+00:00");
}

TEST(Invocation, OfAReportInMemoryIsWhatItsFileHolds) {
  Report step = three_cases();
  step.cases[0].c.cache = CacheMode::step;
  Report in_part = timed_report({timed_record("a", 1000), timed_record("b", 0.25)});
  in_part.run.complete = false;
  in_part.run.invocation.clear();
  CaseRecord& record = in_part.cases[0];
  record.rounds[1].valid = false;
  record.rounds[2].times.device_ns.clear();
  for (std::size_t r = 3; r < record.rounds.size(); ++r) {
    record.rounds[r].times.device_ns[0] *= static_cast<double>(r);
    record.rounds[r].telemetry.emplace();
    record.rounds[r].telemetry->cpu_pressure = 0.1 * static_cast<double>(r);
    if (r > 4) record.rounds[r].telemetry->sm_mhz = Spread{1000, 1100, 1200};
  }
  for (const Report& report : {three_cases(), step, in_part}) {
    const Invocation direct = invocation_of(report, "r.json");
    EXPECT_EQ(dump(to_json(direct), 1), dump(to_json(read_back(report, "r.json")), 1));
    EXPECT_EQ(direct.source, "r.json");
  }
}

TEST(Invocation, OfAReportInMemoryRefusesSamplesThatAreNoTimesNamingTheCase) {
  const auto refused = [](const Report& report) {
    return thrown_text<ReadError>([&] { (void)invocation_of(report, "report A"); }, "accepted");
  };
  Report report = timed_report({timed_record("a", 1000)});
  report.cases[0].rounds[3].times.device_ns[2] = 0.0;
  EXPECT_THAT(refused(report),
              HasSubstr("report A:gpubench.cases[0].rounds[3].device_ns[2]: is 0, expected a finite time above 0"));
  report.cases[0].rounds[3].times.device_ns[2] = std::nan("");
  EXPECT_THAT(refused(report), HasSubstr("a finite time above 0"));
  for (RoundRecord& round : report.cases[0].rounds) round.valid = false;
  EXPECT_THAT(refused(report), HasSubstr("hold no sample"));
  report = timed_report({timed_record("a", 1000)});
  report.cases[0].batch = 0;
  EXPECT_THAT(refused(report), HasSubstr("batch: is 0, expected 1 or more"));
}

TEST(Invocation, CasesThatDidNotPassHaveNoTime) {
  const Invocation invocation = read_back(three_cases());
  EXPECT_EQ(invocation.cases[1].verdict, Verdict::fail);
  EXPECT_FALSE(invocation.cases[1].run.has_value());
  EXPECT_EQ(invocation.cases[2].verdict, Verdict::skipped);
  EXPECT_EQ(invocation.cases[2].reason, "needs 34 GB, 20 GB are free");
}

// Wall times of the step: median of 4100, 3900 and 4700.
TEST(Invocation, AStepIsTimedByTheWall) {
  Report report = three_cases();
  report.cases.resize(1);
  report.cases[0].c.cache = CacheMode::step;
  EXPECT_NEAR(read_back(report).cases[0].run->log_median, std::log(2050.0), 1e-15);
}

TEST(Invocation, MembersInAnotherOrderAreReadAlike) {
  Json json = report_json(three_cases());
  for (Json& one : json["gpubench"]["cases"]) {
    one["cache"] = one["status"] == "pass" ? "step" : "cold";
    Json reversed = Json::object();
    for (auto member = one.rbegin(); member != one.rend(); ++member) reversed[member.key()] = member.value();
    one = reversed;
  }
  const Invocation invocation = parse_invocation(sealed_text(json), "r.json");
  EXPECT_NEAR(invocation.cases[0].run->log_median, std::log(2050.0), 1e-15);
}

// Logs of round medians 100 and 121: 1.21 = e^.190620; deviation .190620 / sqrt(2), error that / sqrt(2).
TEST(Invocation, TheErrorOfItsRoundsIsKnown) {
  CaseRecord record = timed_record("a", 100.0);
  record.rounds.resize(2);
  record.rounds[1].times.device_ns.assign(10, 4.0 * 121.0);
  const Invocation invocation = read_back(timed_report({record}));
  EXPECT_NEAR(invocation.cases[0].run->round_error, 0.5 * std::log(1.21), 1e-14);
}

// Parts that comparisons don't need are not held; lines are still those of the file.
TEST(Invocation, AMistakeIsNamedByItsLineInTheFile) {
  std::string text = dump(report_json(three_cases()), 1);
  const std::size_t at = text.rfind("\"derived\": {") + std::string_view("\"derived\": {").size();
  text.insert(at, "]");
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  EXPECT_THAT(refusal(text), AllOf(HasSubstr("r.json:gpubench.cases[2].derived: not JSON: "),
                                   HasSubstr("not JSON: line " + std::to_string(line) + ", column")));
}

TEST(Invocation, WhatIsNoReportIsRefusedWithItsPlace) {
  const std::tuple<const char*, std::function<void(Json&)>, const char*> mistakes[] = {
      {"another schema", [](Json& j) { j["context"]["gpubench"]["schema"] = "other"; }, "context.gpubench.schema"},
      {"another major version", [](Json& j) { j["context"]["gpubench"]["schema_version"] = "2.0"; },
       "this gpubench reads version 1"},
      {"no context", [](Json& j) { j.erase("context"); }, "lacks \"context\""},
      {"no cases", [](Json& j) { j["gpubench"].erase("cases"); }, "lacks \"cases\""},
      {"cases of another kind",
       [](Json& j) {
         j["gpubench"]["cases"] = {1, 2};
       },
       "r.json:gpubench.cases[0]: is number, expected an object"},
      {"a case without an id", [](Json& j) { j["gpubench"]["cases"][1].erase("id"); },
       "r.json:gpubench.cases[1]: lacks \"id\""},
      {"an id with markup", [](Json& j) { j["gpubench"]["cases"][0]["id"] = "gemm/<b>"; }, "is not a case id"},
      {"an empty id", [](Json& j) { j["gpubench"]["cases"][0]["id"] = ""; }, "is not a case id"},
      {"one id twice", [](Json& j) { j["gpubench"]["cases"].push_back(j["gpubench"]["cases"][0]); }, "two cases"},
      {"an unknown status", [](Json& j) { j["gpubench"]["cases"][0]["status"] = "ok"; }, "status"},
      {"a time of zero", [](Json& j) { j["gpubench"]["cases"][0]["rounds"][0]["device_ns"][1] = 0; },
       "r.json:gpubench.cases[0].rounds[0].device_ns[1]: is 0, expected a finite time above 0"},
      {"a negative time", [](Json& j) { j["gpubench"]["cases"][0]["rounds"][0]["device_ns"][1] = -1.0; },
       "a finite time above 0"},
      {"a NaN",
       [](Json& j) {
         j["gpubench"]["cases"][0]["rounds"][0]["device_ns"][1] = nullptr;
         j["gpubench"]["cases"][0]["rounds"][0]["nonfinite"] = {{"device_ns[1]", "nan"}};
       },
       "a finite time above 0"},
      {"a text for a time", [](Json& j) { j["gpubench"]["cases"][0]["rounds"][0]["device_ns"][1] = "1"; },
       "expected a number"},
      {"a pass without samples", [](Json& j) { j["gpubench"]["cases"][0]["rounds"] = Json::array(); }, "no sample"},
      {"a batch of 0", [](Json& j) { j["gpubench"]["cases"][0]["batch"] = 0; }, "batch"},
      {"a fractional batch", [](Json& j) { j["gpubench"]["cases"][0]["batch"] = 1.5; }, "batch"},
      {"a pressure above all of the time",
       [](Json& j) { j["gpubench"]["cases"][0]["rounds"][0]["telemetry"]["cpu_pressure"] = 1.5; },
       "r.json:gpubench.cases[0].rounds[0].telemetry.cpu_pressure: is 1.5, expected 0 to 1"},
      {"no device", [](Json& j) { j["context"]["gpubench"]["devices"] = Json::array(); }, "devices"},
      {"complete as text", [](Json& j) { j["context"]["gpubench"]["complete"] = "yes"; }, "complete"},
  };
  for (const auto& [what, make, said] : mistakes) {
    Json json = report_json(three_cases());
    make(json);
    EXPECT_THAT(refusal(sealed_text(json)), AllOf(HasSubstr("r.json"), HasSubstr(said))) << what;
  }
}

// With its digest, and without one, as in older reports.
TEST(Invocation, WhatValidateRefusesIsRefused) {
  for (const auto& files : {malformed_bytes(), malformed_members(), contradictory_reports()}) {
    for (const MalformedFile& file : files) EXPECT_NE(refusal(file.bytes), "accepted") << file.name;
  }
}

TEST(Invocation, AReportThatWasChangedIsRefusedThoughItHolds) {
  Json json = report_json(holding_report());
  const std::string text = sealed_text(json, 1);
  EXPECT_EQ(refusal(text), "accepted");
  std::string other = text;
  other.replace(other.find("\"seed\": 42"), 10, "\"seed\": 43");
  EXPECT_EQ(refusal(other), "r.json:digest: does not match the content: the file was changed after it was written");
  EXPECT_EQ(refusal(dump(json)), "accepted");  // without a digest all of it is checked
}

TEST(Invocation, SurvivesBeingKept) {
  const Invocation first = read_back(three_cases());
  const Json json = to_json(first);
  const Invocation again = invocation_from_json(Node(json, "b.json"), "b.json (run 1)");
  EXPECT_EQ(dump(to_json(again)), dump(json));
  EXPECT_EQ(again.source, "b.json (run 1)");
  EXPECT_EQ(again.cases[0].run->log_median, first.cases[0].run->log_median);
  EXPECT_EQ(fingerprint(again.setup), fingerprint(first.setup));
}

}  // namespace
}  // namespace gpubench
