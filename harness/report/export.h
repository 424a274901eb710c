// Reports in the formats of other tools: passing cases only, unless the format has a place for a verdict.
//
// - report: gpubench's own, written anew as this version writes it: with every case.
// - gbench: Google Benchmark's JSON, one entry per round and a median: its compare.py, Bencher's googlecpp adapter.
// - gbench-summary: the same with one "<id>_median" entry a case, for readers that keep one entry of a name.
// - bmf: Bencher Metric Format: latency (ns) and throughput (the headline rate), with the 95% interval.
// - action-smaller: github-action-benchmark, customSmallerIsBetter: median times (ns).
// - action-bigger: github-action-benchmark, customBiggerIsBetter: headline rates.
// - csv: RFC 4180, a row for each case and metric; a case that did not pass has one row without a metric.
// - csv-cases: RFC 4180, a row for each case, with what csv has as columns; empty cells where a case has no such
// number.
// - prometheus: text exposition format without timestamps, for node_exporter's textfile collector.
//
// Names come from outside: each format has its own characters made harmless, and no number that is not finite is
// written.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/report/report_json.h"

namespace gpubench {

enum class ExportFormat {
  report,
  gbench,
  gbench_summary,
  bmf,
  action_smaller,
  action_bigger,
  csv,
  csv_cases,
  prometheus
};
/// "gbench-summary"
[[nodiscard]] std::string_view name(ExportFormat format);
[[nodiscard]] std::span<const ExportFormat> export_formats();

/// A report that is fine in itself and cannot be told in a format.
class ExportError : public std::runtime_error {
 public:
  explicit ExportError(const std::string& what) : std::runtime_error(what) {}
};

/// The whole file, ending in a newline. Throws ExportError naming the case and its number that is not finite.
[[nodiscard]] std::string exported(const Report& report, ExportFormat format);

/// The parts of it: see above.
[[nodiscard]] std::string exported_csv(const Report& report);
[[nodiscard]] std::string exported_csv_cases(const Report& report);
[[nodiscard]] std::string exported_prometheus(const Report& report);

/// `value` with the digits that bring it back. Throws ExportError, naming the case, unless it is finite.
[[nodiscard]] std::string finite_text(double value, std::string_view what, const CaseRecord& record);

}  // namespace gpubench
