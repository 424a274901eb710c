// The CSV export, read by RFC 4180.
#include <gtest/gtest.h>

#include <charconv>
#include <map>

#include "harness/core/text/visible_text.h"
#include "harness/report/export.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "tests/harness/report/format_readers.h"
#include "tests/harness/report/hostile_text.h"
#include "tests/harness/report/sample_records.h"
#include "tests/harness/report/shell.h"

namespace gpubench {
namespace {

using Row = CsvRow;

std::map<std::string, std::string> by_title(const Row& titles, const Row& row) {
  std::map<std::string, std::string> cells;
  for (std::size_t i = 0; i < row.size(); ++i) cells[titles[i]] = row[i];
  return cells;
}

TEST(ExportCsv, HasARowForEachCaseAndMetric) {
  const std::vector<Row> rows = csv_rows(exported_csv(holding_report()));
  ASSERT_GT(rows.size(), 3U);
  for (const Row& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  const auto first = by_title(rows[0], rows[1]);
  EXPECT_EQ(first.at("case"), "gemm/square/m=64,n=32,k=16/bf16/warm/x2");
  EXPECT_EQ(first.at("suite"), "gemm");
  EXPECT_EQ(first.at("params"), "m=64,n=32,k=16");
  EXPECT_EQ(first.at("modes"), "warm");
  EXPECT_EQ(first.at("ranks"), "2");
  EXPECT_EQ(first.at("status"), "pass");
  EXPECT_EQ(first.at("device"), "A Processor");
  EXPECT_EQ(first.at("metric"), "median");
  EXPECT_EQ(first.at("value"), "2900");  // of 1900, 2000, 2300, 3500, 4000, 4500 ns: (2300 + 3500) / 2
  EXPECT_EQ(first.at("unit"), "ns");
}

TEST(ExportCsvCases, HasARowForEachCaseWithEveryNumberInAColumn) {
  const Report report = holding_report();
  const std::vector<Row> rows = csv_rows(exported(report, ExportFormat::csv_cases));
  ASSERT_EQ(rows.size(), 1 + report.cases.size());
  for (const Row& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  for (std::size_t i = 0; i < report.cases.size(); ++i) {
    const auto cells = by_title(rows[0], rows[i + 1]);
    EXPECT_EQ(cells.at("case"), report.cases[i].id);
    if (report.cases[i].verdict != Verdict::pass) {
      EXPECT_EQ(cells.at("median_ns") + cells.at("rate") + cells.at("error_over_bound"), "") << cells.at("case");
    }
  }
  const auto first = by_title(rows[0], rows[1]);
  EXPECT_EQ(first.at("median_ns"), "2900");
  EXPECT_EQ(first.at("p50_ns"), "2900");
  EXPECT_EQ(first.at("p99_ns"), "");  // too few samples
  EXPECT_EQ(first.at("samples"), "6");
  EXPECT_EQ(first.at("rate_unit"), "FLOP/s");
  EXPECT_EQ(first.at("error_over_bound"), "0.25");
}

TEST(ExportCsv, NumbersComeBackAsTheyWere) {
  const Report report = holding_report();
  const std::vector<Row> rows = csv_rows(exported_csv(report));
  std::map<std::string, double> values;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto cells = by_title(rows[0], rows[i]);
    if (cells.at("status") != "pass") continue;
    double value = 0;
    const std::string& text = cells.at("value");
    ASSERT_EQ(std::from_chars(text.data(), text.data() + text.size(), value).ec, std::errc());
    values[cells.at("metric")] = value;
  }
  EXPECT_EQ(values.at("ci95_high"), report.cases[0].summary.ci95_high_ns);
  EXPECT_EQ(values.at("flop_per_s"), report.cases[0].derived.flop_per_s);
  EXPECT_EQ(values.at("error_over_bound"), 0.25);
  EXPECT_EQ(values.at("straggler"), 0.0625);
}

TEST(ExportCsv, PythonsReaderFindsTheReportsValues) {
  if (!is_installed("python3")) GTEST_SKIP() << "python3 is not installed";
  Report report = holding_report();
  report.cases[0].c.label = "a \"label\", with\\ é";
  const TemporaryFile file("r.csv", exported_csv(report));
  const ShellResult result = shell(
      "python3 -c 'import csv, json, sys; print(json.dumps(list(csv.DictReader(open(sys.argv[1], "
      "newline=\"\", encoding=\"utf-8\"), strict=True))))' " +
      file.path());
  ASSERT_EQ(result.status, 0) << result.out;
  const Json rows = parse_json(result.out, "python");
  std::map<std::string, double> values;
  for (const Json& row : rows) {
    EXPECT_EQ(row.size(), 16U);
    if (row["status"] != "pass") continue;
    EXPECT_EQ(row["case"], report.cases[0].id);
    EXPECT_EQ(row["label"], report.cases[0].c.label);
    values[row["metric"]] = std::stod(row["value"].get<std::string>());
  }
  const Summary& s = report.cases[0].summary;
  EXPECT_EQ(values.at("median"), s.median_ns);
  EXPECT_EQ(values.at("ci95_low"), s.ci95_low_ns);
  EXPECT_EQ(values.at("p90"), s.p90_ns);
  EXPECT_EQ(values.at("samples"), static_cast<double>(s.samples));
  EXPECT_EQ(values.at("bytes_per_s"), report.cases[0].derived.bytes_per_s);
}

TEST(ExportCsv, ACaseThatDidNotPassHasOneRowWithItsReasonAndNoNumber) {
  const std::vector<Row> rows = csv_rows(exported_csv(holding_report()));
  const auto failed = by_title(rows[0], rows[rows.size() - 2]);
  const auto skipped = by_title(rows[0], rows.back());
  EXPECT_EQ(failed.at("status"), "fail");
  EXPECT_EQ(failed.at("value"), "");
  EXPECT_EQ(skipped.at("status"), "skipped");
  EXPECT_EQ(skipped.at("reason"), "needs 34 GB, 20 GB are free");
  EXPECT_EQ(skipped.at("metric") + skipped.at("value") + skipped.at("unit"), "");
}

// No cell starts like a formula; after the apostrophe follows the visible text.
TEST(ExportCsv, HostileTextIsOneHarmlessCell) {
  for (const std::string& text : hostile_texts()) {
    Report report = holding_report();
    report.cases[0].c.label = text;
    report.cases[0].derived.headline_unit = text;
    report.cases[2].reason = text;
    report.run.devices[0].name = text;
    const std::vector<Row> rows = csv_rows(exported_csv(report));
    const std::string shown = printable(text);
    const bool formula = !shown.empty() && std::string("=+-@'").find(shown[0]) != std::string::npos;
    const std::string expected = (formula ? "'" : "") + shown;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i].size(), rows[0].size()) << text;
      const auto cells = by_title(rows[0], rows[i]);
      EXPECT_EQ(cells.at("device"), expected);
      if (i == 1) {
        EXPECT_EQ(cells.at("label"), expected);
      }
      if (cells.at("metric") == "headline") {
        EXPECT_EQ(cells.at("unit"), expected);
      }
      for (const auto& [title, cell] : cells) {
        const bool number = title == "value";
        if (!number && !cell.empty()) {
          EXPECT_EQ(std::string("=+-@").find(cell[0]), std::string::npos) << title << cell;
        }
      }
    }
    EXPECT_EQ(by_title(rows[0], rows.back()).at("reason"), expected);
  }
}

}  // namespace
}  // namespace gpubench
