// Reports in the formats of other tools: passing cases only, unless the format has a place for a verdict.
//
// - report: gpubench's own, every case, as this version writes it.
// - gbench: Google Benchmark's JSON, one entry per round and a median: its compare.py, Bencher's googlecpp adapter.
// - gbench-summary: the same with one "<id>_median" entry a case, for readers that keep one entry of a name.
// - bmf: Bencher Metric Format: latency (ns) and throughput (the headline rate), with the 95% interval.
// - action-smaller: github-action-benchmark, customSmallerIsBetter: median times (ns).
// - action-bigger: github-action-benchmark, customBiggerIsBetter: headline rates.
// - csv: RFC 4180, a row for each case and metric; a case that did not pass has one row without a metric.
// - csv-cases: RFC 4180, a row for each case with the metrics as columns; cells are empty where a case has none.
// - prometheus: text exposition format without timestamps, for node_exporter's textfile collector.
//
// - JUnit XML, Markdown and GitHub's annotations: what CI servers and pull requests show.
//
// Names come from outside: each format's own characters are escaped, and only finite numbers are written.
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

/// A valid report that a format cannot hold.
class ExportError : public std::runtime_error {
 public:
  explicit ExportError(const std::string& what) : std::runtime_error(what) {}
};

/// The whole file, ending in a newline; `detail`: of a report. Throws ExportError naming the case and its number that
/// is not finite.
[[nodiscard]] std::string exported(const Report& report, ExportFormat format, Detail detail = Detail::brief);

[[nodiscard]] std::string exported_csv(const Report& report);
[[nodiscard]] std::string exported_csv_cases(const Report& report);
[[nodiscard]] std::string exported_prometheus(const Report& report);

/// `value` with the digits that bring it back. Throws ExportError, naming the case, unless it is finite.
[[nodiscard]] std::string finite_text(double value, std::string_view what, const CaseRecord& record);

// JUnit XML: each planned case is a test.

/// A testsuite per suite. fail, downgraded and not_proven are failures; error is an error; unsupported, skipped and
/// unverified are skipped, with the reason. A failure names the op, its worst element and the line that reruns it. A
/// test's time is that of checking and timing it.
[[nodiscard]] std::string junit_text(const Report& report);

/// The element inside a <testcase>; `none`: the test passed.
enum class JUnitElement { none, failure, error, skipped };

struct JUnitCase {
  std::string suite;  ///< also the class name
  std::string name;
  double time_s = 0.0;
  JUnitElement element = JUnitElement::none;
  std::string type;          ///< of a failure or error: "regressed"
  std::string message;       ///< one line
  std::string text{};        ///< more about a failure or error, several lines
  std::string system_out{};  ///< its output, several lines
};

struct JUnitDocument {
  std::string name;
  std::string timestamp{};                                        ///< "2026-11-21T02:34:19" in UTC; empty: none
  std::string host_name{};                                        ///< empty: none
  bool with_times = true;                                         ///< suites have the sum of their cases' times
  std::vector<std::pair<std::string, std::string>> properties{};  ///< of every suite
  std::vector<JUnitCase> cases{};                                 ///< suites appear in the order of their first case
};

/// The whole file, ending in a newline. All text may be untrusted.
[[nodiscard]] std::string junit_document_text(const JUnitDocument& document);

// Markdown: for a pull request, a wiki, a CI step's summary.

/// The verdict, the devices, and a row for each case, worst first, with reason and rerun line where it went wrong. At
/// most `limit_bytes`, cut between rows with a count of those left out.
[[nodiscard]] std::string markdown_text(const Report& report, std::size_t limit_bytes);

/// `head`, as many of the `count` rows as fit into `most_bytes` with it, and how many are left out. `row` makes the row
/// of an index, with its newline. A head that is too long itself is cut between lines.
[[nodiscard]] std::string with_rows(std::string head, std::size_t count,
                                    const std::function<std::string(std::size_t)>& row, std::size_t most_bytes);

// GitHub Actions: annotations on a step, and its summary. The limits are GitHub's own.

enum class AnnotationKind { error, warning };

struct Annotation {
  AnnotationKind kind = AnnotationKind::error;
  std::string title;
  std::string message;
};

/// Workflow commands, one a line: nine of a kind at most, then one that counts the others under the title `rest`
/// (GitHub shows ten of a kind per step). Messages are cut at 4 KB.
[[nodiscard]] std::string annotations_text(std::span<const Annotation> annotations, std::string_view rest);

/// Of a run: an error for each case that went wrong, worst first; a warning for a run that was interrupted, that
/// verified nothing or that ran nothing.
[[nodiscard]] std::vector<Annotation> annotations_of(const Report& report);

/// GitHub drops a step's summary of more than 1024 KiB; ours stays below.
inline constexpr std::size_t most_summary_bytes = 900U << 10U;

/// Appends `text` for the room that is left to the step's summary, which earlier commands of the step may have begun;
/// nothing where there is no room. Throws WriteError where it cannot be written or the path is no regular file; then
/// the file is as before.
void append_summary(const std::string& path, const std::function<std::string(std::size_t room)>& text);

}  // namespace gpubench
