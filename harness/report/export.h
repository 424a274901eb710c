// Reports in formats of other tools: passing cases only, unless the format has a place for verdicts.
//
// - report: gpubench's own, all cases, as this version writes it.
// - gbench: Google Benchmark's JSON, an entry per round and a median: its compare.py, Bencher's googlecpp adapter.
// - gbench-summary: the same with one "<id>_median" entry per case, for readers that keep one entry per name.
// - bmf: Bencher Metric Format: latency (ns) and throughput (headline rate) with 95% intervals.
// - action-smaller: github-action-benchmark, customSmallerIsBetter: median times (ns).
// - action-bigger: github-action-benchmark, customBiggerIsBetter: headline rates.
// - csv: RFC 4180, a row per case and metric; a case that did not pass has one row without a metric.
// - csv-cases: RFC 4180, a row per case with metrics as columns; empty cells for missing metrics.
// - prometheus: text exposition format without timestamps, for node_exporter's textfile collector.
// - JUnit XML, Markdown and GitHub annotations, for CI servers and pull requests.
//
// Names are untrusted and escaped for each format. Only finite numbers are written.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/enum_names.h"
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
template <>
inline constexpr auto enum_names<ExportFormat> = std::to_array<std::string_view>(
    {"report", "gbench", "gbench-summary", "bmf", "action-smaller", "action-bigger", "csv", "csv-cases", "prometheus"});

/// A valid report that the format cannot represent.
class ExportError : public std::runtime_error {
 public:
  explicit ExportError(const std::string& what) : std::runtime_error(what) {}
};

/// The whole file with a final newline. `detail`: for `report`. Throws ExportError with the case and its number that is
/// not finite.
[[nodiscard]] std::string exported(const Report& report, ExportFormat format, Detail detail = Detail::brief);

[[nodiscard]] std::string exported_csv(const Report& report);
[[nodiscard]] std::string exported_csv_cases(const Report& report);
[[nodiscard]] std::string exported_prometheus(const Report& report);

/// With the digits of an exact round trip. Throws ExportError, naming the case, unless finite.
[[nodiscard]] std::string finite_text(double value, std::string_view what, const CaseRecord& record);

// JUnit XML: each planned case is a test.

/// A testsuite per suite. Failures: fail, downgraded, not_proven. Errors: error. Skipped, with the reason: unsupported,
/// skipped, unverified. A failure has the op, its worst element and the rerun line. The time is that of checking and
/// timing.
[[nodiscard]] std::string junit_text(const Report& report);

/// The element inside <testcase>; `none`: passed.
enum class JUnitElement { none, failure, error, skipped };

struct JUnitCase {
  std::string suite;
  std::string name;
  double time_s = 0.0;
  JUnitElement element = JUnitElement::none;
  std::string type;  ///< of a failure or error: "regressed"
  std::string message;
  std::string text{};  ///< details of a failure or error, several lines
  std::string system_out{};
};

struct JUnitDocument {
  std::string name;
  std::string timestamp{};  ///< "2026-11-21T02:34:19" in UTC; empty: none
  std::string host_name{};
  bool with_times = true;  ///< suites have the sum of their cases' times
  std::vector<std::pair<std::string, std::string>> properties{};
  std::vector<JUnitCase> cases{};  ///< suites appear in the order of their first case
};

/// The whole file with a final newline. Accepts untrusted text.
[[nodiscard]] std::string junit_document_text(const JUnitDocument& document);

/// Verdict, devices, and a row per case, worst first, with reason and rerun line for failures. At most `limit_bytes`,
/// cut between rows with the number of those left out.
[[nodiscard]] std::string markdown_text(const Report& report, std::size_t limit_bytes);

/// `head`, as many rows as fit into `max_bytes`, and the number left out. `row`: text of row i with its newline. Cuts
/// a head that is too long between lines.
[[nodiscard]] std::string with_rows(std::string head, std::size_t count,
                                    const std::function<std::string(std::size_t)>& row, std::size_t max_bytes);

// GitHub Actions: annotations of a step, and its summary. The limits are GitHub's.

enum class AnnotationKind { error, warning };

struct Annotation {
  AnnotationKind kind = AnnotationKind::error;
  std::string title;
  std::string message;
};

/// Workflow commands, one per line: at most nine of a kind, then one titled `rest` with the number of others, since
/// GitHub shows ten of a kind per step. Cuts messages at 4 KB.
[[nodiscard]] std::string annotations_text(std::span<const Annotation> annotations, std::string_view rest);

/// An error per failure, worst first; a warning for a run that was interrupted, verified nothing or ran nothing.
[[nodiscard]] std::vector<Annotation> annotations_of(const Report& report);

/// Below GitHub's limit: it drops step summaries above 1024 KiB.
inline constexpr std::size_t max_summary_bytes = 900U << 10U;

/// Appends `text` for the remaining room to the step's summary; nothing if it is full. Earlier commands may have
/// written to it. Throws WriteError if it is not a regular file or cannot be written; then the file is unchanged.
void append_summary(const std::string& path, const std::function<std::string(std::size_t room)>& text);

}  // namespace gpubench
