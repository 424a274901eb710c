// The Prometheus export, read by a reader written from the format's documentation.
#include <gtest/gtest.h>

#include "harness/core/text/visible_text.h"
#include "harness/report/export.h"
#include "tests/harness/report/format_readers.h"
#include "tests/harness/report/hostile_text.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace {

using prometheus::of_metric;
using prometheus::Sample;
using prometheus::samples_of;

TEST(PrometheusChecker, RefusesWhatAScraperWould) {
  for (const char* text : {"",
                           "a 1",
                           "# HELP a b\n# TYPE a gauge\na 1\n# HELP a b\n",
                           "# HELP a b\n# TYPE a gauge\nb 1\n",
                           "# HELP a b\n# TYPE a gauge\na 1 1700000000\n",
                           "# HELP a b\n# TYPE a gauge\na{x=\"1\",x=\"2\"} 1\n",
                           "# HELP a b\n# TYPE a gauge\na{x=\"\\t\"} 1\n",
                           "# HELP a b\n# TYPE a gauge\na{x=\"1} 1\n",
                           "# HELP a b\n# TYPE a gauge\na{1x=\"1\"} 1\n",
                           "# HELP a b\n# TYPE a gauge\na NaN\n",
                           "# HELP a b\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"1\"} 2\n",
                           "# HELP a b\n# TYPE a sum\na 1\n",
                           "# HELP 1a b\n",
                           "# HELP a b\na 1\n",
                           "# TYPE a gauge\na 1\n",
                           "# HELP a b\n# TYPE a gauge\na 1\n# TYPE a gauge\n",
                           "# HELP a b\n# TYPE a gauge\n# TYPE a gauge\na 1\n",
                           "# HELP a b\n# TYPE a gauge\na{x=\"\xff\"} 1\n",
                           "# HELP a b\n# TYPE a gauge\na{x=\"1\"} 1\nc 1\n",
                           "# HELP a b\n# TYPE a gauge\na{x=\"1\n2\"} 1\n",
                           "# HELP a b\n# TYPE a gauge\na{x=\"1\"} 1 1700000000\n",
                           "# HELP a b\n# TYPE a gauge\na\n",
                           "\n"})
    EXPECT_ANY_THROW((void)samples_of(text)) << text;
  EXPECT_EQ(samples_of("# HELP a b\n# TYPE a gauge\na{x=\"\\\\\\\"\\n,}\"} 1e3\n")[0].labels.at("x"), "\\\"\n,}");
}

TEST(ExportPrometheus, TellsVerdictsAndPassingCases) {
  const std::vector<Sample> samples = samples_of(exported_prometheus(holding_report()));
  std::map<std::string, double> verdicts;
  for (const Sample& s : of_metric(samples, "gpubench_cases")) verdicts[s.labels.at("verdict")] = s.value;
  EXPECT_EQ(verdicts.size(), 8U);
  EXPECT_EQ(verdicts.at("pass"), 1);
  EXPECT_EQ(verdicts.at("fail"), 1);
  EXPECT_EQ(verdicts.at("skipped"), 1);
  EXPECT_EQ(verdicts.at("error"), 0);
  const std::vector<Sample> times = of_metric(samples, "gpubench_case_time_seconds");
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].labels.at("case"), "gemm/square/m=64,n=32,k=16/bf16/warm/x2");
  EXPECT_EQ(times[0].labels.at("recipe"), "bf16");
  EXPECT_DOUBLE_EQ(times[0].value, 2900e-9);
  EXPECT_EQ(of_metric(samples, "gpubench_case_time_unreliable")[0].value, 1);  // two rounds, 2000 and 4000 ns
  EXPECT_EQ(of_metric(samples, "gpubench_case_items_per_second")[0].labels.at("item"), "tokens");
  EXPECT_EQ(of_metric(samples, "gpubench_run_complete")[0].value, 1);
  EXPECT_EQ(of_metric(samples, "gpubench_run_finished_time_seconds")[0].value, 1795228469);
}

TEST(ExportPrometheus, AnInterruptedRunWithoutAPassStillTellsSo) {
  Report report = holding_report();
  report.run.complete = false;
  report.cases.erase(report.cases.begin());
  const std::vector<Sample> samples = samples_of(exported_prometheus(report));
  EXPECT_EQ(of_metric(samples, "gpubench_run_complete")[0].value, 0);
  EXPECT_TRUE(of_metric(samples, "gpubench_case_time_seconds").empty());
}

TEST(ExportPrometheus, HostileTextIsShownInItsLabelAndNowhereElse) {
  const std::size_t usual = samples_of(exported_prometheus(holding_report())).size();
  for (const std::string& text : hostile_texts()) {
    const std::string shown = printable(text);  // control characters as \xNN
    Report report = holding_report();
    report.run.devices[0].name = text;
    report.run.tool_version = text;
    report.cases[0].derived.item = text;
    const std::vector<Sample> samples = samples_of(exported_prometheus(report));
    EXPECT_EQ(samples.size(), usual) << text;
    const Sample info = of_metric(samples, "gpubench_run_info").at(0);
    EXPECT_EQ(info.labels.at("device"), shown);
    EXPECT_EQ(info.labels.at("version"), shown);
    EXPECT_EQ(of_metric(samples, "gpubench_case_items_per_second").at(0).labels.at("item"), shown);
  }
}

}  // namespace
}  // namespace gpubench
