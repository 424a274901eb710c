// JSON exports, by their readers' documentation. CSV and Prometheus have separate tests.
#include "harness/report/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/harness/report/hostile_text.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Json parsed(const Report& report, ExportFormat format) { return parse_json(exported(report, format), "export"); }

const std::string passing = "gemm/square/m=64,n=32,k=16/bf16/warm/x2";

// A passing case with median 2000 ns, interval 1600 to 2500 ns, 40 kFLOP.
Report simple_report() {
  Report report = holding_report();
  Summary& s = report.cases[0].summary;
  s.median_ns = 2000;
  s.ci95_low_ns = 1600;
  s.ci95_high_ns = 2500;
  report.cases[0].derived.headline = 20e9;
  return report;
}

TEST(ExportGbench, HasGoogleBenchmarksMembersAndNothingOfOurs) {
  const Json json = parsed(holding_report(), ExportFormat::gbench);
  std::set<std::string> members;
  for (const auto& [key, value] : json.items()) members.insert(key);
  EXPECT_EQ(members, (std::set<std::string>{"context", "benchmarks"}));
  EXPECT_FALSE(json["context"].contains("gpubench"));
  EXPECT_EQ(json["context"]["json_schema_version"], 1);
  EXPECT_EQ(json["context"]["library_build_type"], "release");
  EXPECT_TRUE(json["context"]["caches"].is_array());  // Bencher refuses a file without
}

TEST(ExportGbench, HasOneEntryPerRoundAndAMedianOfPassingCasesOnly) {
  const Json json = parsed(holding_report(), ExportFormat::gbench);
  ASSERT_EQ(json["benchmarks"].size(), 3U);
  for (const Json& entry : json["benchmarks"]) EXPECT_EQ(entry["run_name"], passing);
  EXPECT_EQ(json["benchmarks"][0]["real_time"], 2.0);  // median of 3800, 4000, 4600 ns over 2 runs, in us
  EXPECT_EQ(json["benchmarks"][2]["name"], passing + "_median");
}

TEST(ExportGbench, TheSummaryHasOneNamePerCaseAndNoOtherAggregate) {
  Report report = holding_report();
  report.cases.push_back(holding_record());
  report.cases.back().c.workload = "twin";
  report.cases.back().id = report.cases.back().c.id();
  const Json json = parsed(report, ExportFormat::gbench_summary);
  ASSERT_EQ(json["benchmarks"].size(), 2U);
  std::set<std::string> names;
  for (const Json& entry : json["benchmarks"]) {
    names.insert(entry["name"]);
    EXPECT_EQ(entry["aggregate_name"], "median");
    EXPECT_EQ(entry["time_unit"], "us");
  }
  EXPECT_EQ(names.size(), 2U);
}

// bencher.dev, "Bencher Metric Format": names at most 1024 characters, values with optional bounds.
TEST(ExportBmf, TellsTimesAndRatesWithTheirIntervals) {
  const Json json = parsed(simple_report(), ExportFormat::bmf);
  ASSERT_EQ(json.size(), 1U);
  const Json& measures = json.at(passing);
  EXPECT_EQ(measures["latency"], (Json{{"value", 2000.0}, {"lower_value", 1600.0}, {"upper_value", 2500.0}}));
  // 40 kFLOP in 2500 and 1600 ns
  EXPECT_EQ(measures["throughput"], (Json{{"value", 20e9}, {"lower_value", 16e9}, {"upper_value", 25e9}}));
  EXPECT_EQ(measures.size(), 2U);
  for (const auto& [measure, values] : measures.items()) {
    EXPECT_LE(values["lower_value"], values["value"]) << measure;
    EXPECT_LE(values["value"], values["upper_value"]) << measure;
  }
}

// Half of the interval is 450 of 2000 ns, 22.5%; with 2700 ns as its end, 27.5%.
TEST(Export, SaysWhichTimingsAreUnreliable) {
  Report report = simple_report();
  const auto extra = [&] { return parsed(report, ExportFormat::action_smaller)[0]["extra"].get<std::string>(); };
  const auto in_text = [&](ExportFormat format, const std::string& line) {
    return exported(report, format).find(line) != std::string::npos;
  };
  const std::string prometheus = "gpubench_case_time_unreliable{case=\"" + passing;
  EXPECT_EQ(extra().find("unreliable"), std::string::npos);
  EXPECT_TRUE(in_text(ExportFormat::csv, ",unreliable,0,0 or 1"));
  EXPECT_TRUE(in_text(ExportFormat::prometheus, prometheus));
  report.cases[0].summary.ci95_high_ns = 2700;
  EXPECT_THAT(extra(), testing::EndsWith(", unreliable timing"));
  EXPECT_TRUE(in_text(ExportFormat::csv, ",unreliable,1,0 or 1"));
}

// github-action-benchmark, README: an array of {name, unit, value, range, extra}; one direction per file.
TEST(ExportAction, HasOneFileOfTimesAndOneOfRates) {
  const Json times = parsed(simple_report(), ExportFormat::action_smaller);
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0]["name"], passing);
  EXPECT_EQ(times[0]["unit"], "ns");
  EXPECT_EQ(times[0]["value"], 2000.0);
  EXPECT_EQ(times[0]["range"], "± 500");
  EXPECT_TRUE(times[0]["extra"].is_string());

  const Json rates = parsed(simple_report(), ExportFormat::action_bigger);
  ASSERT_EQ(rates.size(), 1U);
  EXPECT_EQ(rates[0]["name"], passing);
  EXPECT_EQ(rates[0]["unit"], "FLOP/s");
  EXPECT_EQ(rates[0]["value"], 20e9);
  EXPECT_EQ(rates[0]["range"], "± 5e+09");
}

TEST(Export, AReportWithoutAPassIsEmptyButValid) {
  Report report = holding_report();
  report.cases.erase(report.cases.begin());
  EXPECT_EQ(parsed(report, ExportFormat::gbench)["benchmarks"], Json::array());
  EXPECT_EQ(parsed(report, ExportFormat::gbench_summary)["benchmarks"], Json::array());
  EXPECT_EQ(parsed(report, ExportFormat::bmf), Json::object());
  EXPECT_EQ(parsed(report, ExportFormat::action_smaller), Json::array());
  EXPECT_EQ(parsed(report, ExportFormat::action_bigger), Json::array());
}

TEST(Export, ANumberThatIsNotFiniteIsRefusedByNameNeverWritten) {
  const std::function<void(CaseRecord&)> changes[] = {
      [](CaseRecord& r) { r.summary.median_ns = std::numeric_limits<double>::quiet_NaN(); },
      [](CaseRecord& r) { r.rounds[0].times.device_ns[1] = std::numeric_limits<double>::infinity(); },
      [](CaseRecord& r) { r.rounds[1].times.wall_ns[2] = std::numeric_limits<double>::quiet_NaN(); },
      [](CaseRecord& r) { r.summary.ci95_high_ns = std::numeric_limits<double>::infinity(); },
      [](CaseRecord& r) { r.summary.ci95_low_ns = 0; },  // makes the end of a rate infinite
      [](CaseRecord& r) { r.derived.headline = std::numeric_limits<double>::infinity(); },
      [](CaseRecord& r) { r.derived.items_per_s = std::numeric_limits<double>::quiet_NaN(); },
      [](CaseRecord& r) { r.parity.error_over_bound = std::numeric_limits<double>::quiet_NaN(); },
  };
  for (const auto& change : changes) {
    Report report = holding_report();
    change(report.cases[0]);
    int refused = 0;
    for (const ExportFormat format : enum_values<ExportFormat>) {
      if (format == ExportFormat::report) continue;
      try {
        const std::string text = exported(report, format);
        for (const char* word : {": null", ",nan,", ",inf,", " nan", " inf"})
          EXPECT_EQ(text.find(word), std::string::npos);
      } catch (const ExportError& e) {
        EXPECT_THAT(e.what(),
                    ::testing::AllOf(StartsWith(passing + ": "), HasSubstr("the formats of export cannot represent")));
        ++refused;
      }
    }
    EXPECT_GE(refused, 1);
  }
}

TEST(Export, HostileNamesStayTextInJson) {
  for (const std::string& text : hostile_texts()) {
    Report report = holding_report();
    report.host.host_name = text;
    report.host.executable = text;
    report.cases[0].c.label = text;
    report.cases[0].derived.headline_unit = text;
    for (const ExportFormat format : {ExportFormat::gbench, ExportFormat::gbench_summary}) {
      const Json json = parsed(report, format);
      EXPECT_EQ(json["context"]["host_name"], text);
      EXPECT_EQ(json["context"]["executable"], text);
      EXPECT_EQ(json["benchmarks"].back().value("label", ""), text);
    }
    EXPECT_EQ(parsed(report, ExportFormat::action_bigger)[0]["unit"], text);
  }
}

}  // namespace
}  // namespace gpubench
