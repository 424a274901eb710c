#include "harness/report/report_json.h"

#include <gtest/gtest.h>

#include <functional>

#include "harness/report/json.h"
#include "tests/harness/report/report_schema.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace {

TEST(ReportJson, IsValidByThePublishedSchema) { EXPECT_EQ(schema_errors(report_json(sample_report())), ""); }

TEST(ReportJson, IsValidForEveryVerdictAndNonFiniteNumber) {
  Report report = sample_report();
  report.cases.clear();
  for (const Verdict verdict : {Verdict::fail, Verdict::downgraded, Verdict::not_proven, Verdict::unverified,
                                Verdict::unsupported, Verdict::skipped, Verdict::error}) {
    report.cases.push_back(sample_without_run(verdict, "for a reason"));
    report.cases.push_back(sample_record(verdict));
    report.cases.back().parity.error_over_bound = std::numeric_limits<double>::infinity();
    report.cases.back().parity.ops[1].worst->got = std::numeric_limits<double>::quiet_NaN();
  }
  EXPECT_EQ(schema_errors(report_json(report)), "");
}

TEST(ReportJson, BenchmarksHoldPassingCasesOnlyOneEntryPerRoundAndAMedian) {
  Report report = sample_report();
  report.cases[0].rounds[1].valid = true;
  const Json json = report_json(report);
  const Json& entries = json["benchmarks"];
  ASSERT_EQ(entries.size(),
            3U);  // the passing case's two rounds and median
  for (const Json& entry : entries) EXPECT_EQ(entry["run_name"], "gemm/square/m=64,n=32,k=16/bf16/warm/x1");
  EXPECT_EQ(entries[0]["run_type"], "iteration");
  EXPECT_EQ(entries[0]["repetition_index"], 0);
  EXPECT_EQ(entries[0]["repetitions"], 2);
  EXPECT_EQ(entries[0]["iterations"], 6);   // 3 intervals of 2 runs
  EXPECT_EQ(entries[0]["real_time"], 2.0);  // median of 3800, 4000, 4600 ns over 2 runs, in us
  EXPECT_EQ(entries[0]["cpu_time"], 2.05);  // 4100 ns of wall time
  EXPECT_EQ(entries[0]["time_unit"], "us");
  EXPECT_EQ(entries[1]["real_time"], 4.0);
  EXPECT_EQ(entries[2]["name"], "gemm/square/m=64,n=32,k=16/bf16/warm/x1_median");
  EXPECT_EQ(entries[2]["run_type"], "aggregate");
  EXPECT_EQ(entries[2]["aggregate_name"], "median");
  EXPECT_EQ(entries[2]["real_time"], 3.0005);  // summary's 3000.5 ns
}

// An invalid round's time would distort a mean of all.
TEST(ReportJson, BenchmarksHoldNoRoundThatIsInvalid) {
  Report report = sample_report();
  report.cases[0].rounds[1].times.device_ns = {0, std::numeric_limits<double>::quiet_NaN(), -1};
  const Json entries = report_json(report)["benchmarks"];
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0]["repetitions"], 1);
  EXPECT_EQ(entries[0]["real_time"], 2.0);
  EXPECT_EQ(entries[1]["run_type"], "aggregate");
}

TEST(ReportJson, BenchmarksHoldNoRateThatIsNotFinite) {
  Report report = sample_report();
  report.cases[0].derived.items_per_s = std::numeric_limits<double>::infinity();
  const Json median = report_json(report)["benchmarks"].back();
  EXPECT_FALSE(median.contains("items_per_second"));
  EXPECT_EQ(median["bytes_per_second"], 2.39e9);
}

TEST(ReportJson, APassWithoutSamplesIsNoBenchmark) {
  Report report = sample_report();
  report.cases = {sample_record()};
  report.cases[0].rounds[1].valid = true;
  report.cases[0].rounds[1].times.device_ns.clear();
  EXPECT_EQ(report_json(report)["benchmarks"].size(), 0U);
}

TEST(ReportJson, CasesHoldEveryPlannedCaseAndTotalsCountThem) {
  const Json json = report_json(sample_report());
  const Json& cases = json["gpubench"]["cases"];
  ASSERT_EQ(cases.size(), 3U);
  EXPECT_EQ(cases[0]["status"], "pass");
  EXPECT_EQ(cases[1]["status"], "fail");
  EXPECT_EQ(cases[2]["status"], "skipped");
  EXPECT_EQ(cases[2]["reason"], "needs 34 GB, 20 GB are free");
  const Json& totals = json["gpubench"]["totals"];
  EXPECT_EQ(totals["cases"], 3);
  EXPECT_EQ(totals["pass"], 1);
  EXPECT_EQ(totals["fail"], 1);
  EXPECT_EQ(totals["skipped"], 1);
  EXPECT_EQ(totals["error"], 0);
  EXPECT_EQ(totals["check_s"], 0.25);
  EXPECT_EQ(totals["time_s"], 1.0);
}

TEST(ReportJson, ContextIsGoogleBenchmarksWithOursInside) {
  const Json context = report_json(sample_report())["context"];
  EXPECT_EQ(context["json_schema_version"], 1);
  EXPECT_TRUE(context["json_schema_version"].is_number_integer());
  EXPECT_EQ(context["date"], "2026-11-21T02:34:19+00:00");
  EXPECT_EQ(context["caches"][1]["size"], 1048576);
  EXPECT_EQ(context["gpubench"]["schema"], "gpubench-report");
  EXPECT_EQ(context["gpubench"]["schema_version"], "1.16");
  EXPECT_EQ(context["gpubench"]["devices"][0]["libraries"]["oneDNN"], "2.6.3");
}

TEST(ReportJson, BytesThatAreNotUtf8AreReplacedAndControlCharactersEscaped) {
  Report report = sample_report();
  report.host.host_name = "host\xff\x1b[2J";
  report.cases[1].reason = "library said \xc3\x28";
  const std::string text = dump(report_json(report));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\xff'), std::string::npos);
  EXPECT_NE(text.find("host\xef\xbf\xbd\\u001b[2J"), std::string::npos);  // U+FFFD for the bad byte
  EXPECT_EQ(schema_errors(Json::parse(text)), "");
}

TEST(ReportSchema, CatchesMistakes) {
  const std::pair<const char*, std::function<void(Json&)>> mistakes[] = {
      {"unknown status", [](Json& j) { j["gpubench"]["cases"][0]["status"] = "ok"; }},
      {"no status", [](Json& j) { j["gpubench"]["cases"][0].erase("status"); }},
      {"id with a blank", [](Json& j) { j["gpubench"]["cases"][0]["id"] = "gemm/a b"; }},
      {"pass without an op judged", [](Json& j) { j["gpubench"]["cases"][0]["parity"]["ops"] = Json::array(); }},
      {"pass without rounds", [](Json& j) { j["gpubench"]["cases"][0]["rounds"] = Json::array(); }},
      {"pass without a median", [](Json& j) { j["gpubench"]["cases"][0]["summary"]["median_ns"] = nullptr; }},
      {"skipped without a reason", [](Json& j) { j["gpubench"]["cases"][2]["reason"] = ""; }},
      {"negative time", [](Json& j) { j["benchmarks"][0]["real_time"] = -1.0; }},
      {"zero time", [](Json& j) { j["benchmarks"][0]["real_time"] = 0.0; }},
      {"time as text", [](Json& j) { j["benchmarks"][0]["real_time"] = "2.0"; }},
      {"another unit", [](Json& j) { j["benchmarks"][0]["time_unit"] = "ns"; }},
      {"median under another name", [](Json& j) { j["benchmarks"][1]["name"] = "x"; }},
      {"Google's version as ours", [](Json& j) { j["context"]["json_schema_version"] = "1.0"; }},
      {"another major version", [](Json& j) { j["context"]["gpubench"]["schema_version"] = "2.0"; }},
      {"no device", [](Json& j) { j["context"]["gpubench"]["devices"] = Json::array(); }},
      {"an invocation by name", [](Json& j) { j["context"]["gpubench"]["invocation"] = "the first"; }},
      {"unknown preset", [](Json& j) { j["context"]["gpubench"]["preset"] = "hasty"; }},
      {"a slowdown without a name", [](Json& j) { j["context"]["gpubench"]["injected"] = ""; }},
      {"unknown tier", [](Json& j) { j["context"]["gpubench"]["tier"] = "huge"; }},
      {"date of another kind", [](Json& j) { j["context"]["gpubench"]["started_at"] = "yesterday"; }},
      {"member nobody knows", [](Json& j) { j["gpubench"]["cases"][0]["verdict"] = "pass"; }},
      {"negative count", [](Json& j) { j["gpubench"]["totals"]["pass"] = -1; }},
      {"fractional count", [](Json& j) { j["gpubench"]["totals"]["pass"] = 0.5; }},
      {"note of another kind",
       [](Json& j) {
         j["gpubench"]["cases"][0]["summary"]["nonfinite"] = {{"drift", "maybe"}};
       }},
      {"no cases", [](Json& j) { j["gpubench"].erase("cases"); }},
      {"complete as text", [](Json& j) { j["context"]["gpubench"]["complete"] = "yes"; }},
  };
  for (const auto& [what, make] : mistakes) {
    Json json = report_json(sample_report());
    make(json);
    EXPECT_NE(schema_errors(json), "") << what;
  }
}

}  // namespace
}  // namespace gpubench
