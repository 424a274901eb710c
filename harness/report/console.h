// Text for the console: results by suite, failures, summary, verdict. Pure functions of records; all lines are safe to
// print, with names, reasons and messages escaped.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "harness/core/record.h"
#include "harness/core/text/text_table.h"
#include "harness/report/report_json.h"

namespace gpubench {

[[nodiscard]] std::string verdict_word(Verdict verdict);

/// The worst verdict of the cases that ran, "NOTHING RAN", or "INCOMPLETE" after an interruption.
[[nodiscard]] std::string verdict_word_of_run(std::span<const CaseRecord> records, bool complete);

[[nodiscard]] std::string counts_text(const Totals& totals);

/// The largest error over its bound: "0.25", "2e+03", "inf"; "-" if nothing was compared.
[[nodiscard]] std::string error_text(const Parity& parity);

[[nodiscard]] bool went_wrong(Verdict verdict);

template <class Item>
struct ItemGroup {
  std::string key;
  std::vector<const Item*> items;
};

/// Groups items by key, groups and items in the given order. Points into `items`, a vector or a span.
template <class Items, class KeyOf>
[[nodiscard]] auto grouped(const Items& items, const KeyOf& key_of) {
  std::vector<ItemGroup<typename Items::value_type>> groups;
  std::unordered_map<std::string, std::size_t> places;
  for (const auto& item : items) {
    const auto [place, fresh] = places.try_emplace(key_of(item), groups.size());
    if (fresh) groups.push_back({place->first, {}});
    groups[place->second].items.push_back(&item);
  }
  return groups;
}

/// By verdict, worst first (record.h); within failing verdicts by error over bound, largest first; else in the given
/// order. Points into `records`.
[[nodiscard]] std::vector<const CaseRecord*> worst_first(std::span<const CaseRecord> records);

/// The highest rate among passing cases with reliable timings, in the most frequent unit of passing cases; null if
/// there is none.
[[nodiscard]] const CaseRecord* best_of(std::span<const CaseRecord* const> records);

/// The share in result lines: of the device's peak, or if that is unknown, of the best case of its kind so far.
enum class ShareColumn { absent, of_peak, of_best };

struct RowLayout {
  ShareColumn share = ShareColumn::absent;
  std::string device_kind{};  ///< decides the prefix of rates; empty: each rate has its own
  /// By Case::key(): sizes shown to tell apart rows that would read the same.
  std::unordered_map<std::string, std::string> sizes{};
  std::unordered_set<std::string> alike{};  ///< keys of rows that still read the same and show their ids
};

/// `device_kind`: "cpu", "cuda".
[[nodiscard]] RowLayout row_layout(const std::string& device_kind, std::span<const Case> cases,
                                   const ConsoleStyle& style);

/// "gpt2_train_step f32/recompute x2 @mine b=4": the id without its suite, with only the layout's sizes.
[[nodiscard]] std::string row_name(const CaseRecord& record, const RowLayout& layout);

/// One prefix per unit: 'G' for B/s and FLOP/s (on GPUs 'T'), 'k' for tokens/s and others.
[[nodiscard]] char rate_prefix(std::string_view unit, std::string_view device_kind);
/// With the layout's prefix. Not escaped.
[[nodiscard]] std::string rate_text(double rate, const std::string& unit, const RowLayout& layout);
/// With the layout's prefix, "~21.8 GFLOP/s" for unreliable timings. Escaped.
[[nodiscard]] std::string rate_cell(const CaseRecord& record, const RowLayout& layout);

/// The titles for result_line(); empty if the terminal is too narrow for columns.
[[nodiscard]] std::string result_header(const ConsoleStyle& style, const RowLayout& layout = {});

/// One line per case: verdict, rate, time with 95% interval, worst error as a fraction of its bound, workload, recipe,
/// modes, ranks, label, flags. Cuts long labels. Adds a line with the whole id if the case did not pass, if
/// style.verbosity is not 0, or if another row reads the same, and the reason unless it passed. Ends with a newline.
[[nodiscard]] std::string result_line(const CaseRecord& record, const ConsoleStyle& style,
                                      const RowLayout& layout = {});

/// The rows of a run, with titles before the first row and suite names before their rows.
class RowSequence {
 public:
  RowSequence(ConsoleStyle style, RowLayout layout) : style_(style), layout_(std::move(layout)) {}

  [[nodiscard]] std::string next(const CaseRecord& record);

 private:
  ConsoleStyle style_;
  RowLayout layout_;
  std::string suite_;
  bool begun_ = false;
};

/// Indent of lines below a row.
inline constexpr int indent_below = 4;
[[nodiscard]] std::string line_below(std::string_view text, const ConsoleStyle& style);

/// For -v: percentiles, implementations, coverage, peaks, memory, the ops of a step.
[[nodiscard]] std::string details_text(const CaseRecord& record, const ConsoleStyle& style);

/// Facts about a failure as escaped title and text: op, worst element, got, want, bound, number and places of wrong
/// elements, "rerun" with its command.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> failure_facts(const CaseRecord& record);

[[nodiscard]] std::string failures_text(std::span<const CaseRecord> records, const ConsoleStyle& style);

[[nodiscard]] std::string summary_text(std::span<const CaseRecord> records, const ConsoleStyle& style,
                                       const RowLayout& layout = {});

/// A line for each flag and rarer verdict of these cases with its meaning; may be empty. Quiet: only of failures.
[[nodiscard]] std::string legend_text(std::span<const CaseRecord> records, const ConsoleStyle& style);

struct Ending {
  int exit_code = 0;
  std::string explanation;
  std::string report_path;
  bool complete = true;
  double seconds = 0.0;
  std::string page_path{};
  std::string resume{};  ///< command that resumes an interrupted run; may be empty
  std::vector<std::string> untried{};
};

[[nodiscard]] std::vector<std::string> untried_lines(const RunContext& run);

/// The last lines: VERDICT with counts, unreliable timings with the reason and advice, the paths of page and report,
/// the exit code and its meaning.
[[nodiscard]] std::string verdict_text(std::span<const CaseRecord> records, const Ending& ending,
                                       const ConsoleStyle& style);

/// Passing steps on several ranks: rate, efficiency relative to one rank, exposed communication, delay of the slowest
/// rank. Empty without such steps; leaves out virtual ranks, which say nothing about devices.
[[nodiscard]] std::string scaling_text(std::span<const CaseRecord> records, const ConsoleStyle& style = {},
                                       const RowLayout& layout = {});

/// For pairwise exchanges: the median and the slowest link per message size, and late ranks and links
/// (harness/measure/links.h). May be empty.
[[nodiscard]] std::string links_text(std::span<const CaseRecord> records, const ConsoleStyle& style = {},
                                     std::span<const RankPlace> places = {});

/// All samples of valid rounds in ns per run, by the clock of the summary.
[[nodiscard]] std::vector<double> samples_per_run_ns(const CaseRecord& record);
/// With fewer samples the 99th percentile would be the largest.
inline constexpr std::size_t min_for_p99 = 100;

[[nodiscard]] Tone tone_of(Verdict verdict);

/// "38.1 ms", with a ~ if the interval is too wide to be reliable; or "n/a".
[[nodiscard]] std::string time_of(const CallsTotal& total);
/// "37.9 ms to 38.4 ms, 144 calls of 6 shapes", or why there is no time.
[[nodiscard]] std::string explanation_of(const CallsTotal& total);
/// "4 calls left out: primitive reorder", "12 calls taken without the bias".
[[nodiscard]] std::string text_of(const ShapesExcept& except);

/// A line per total, and the calls left out; empty without a list.
[[nodiscard]] std::string calls_totals_text(const Report& report, const ConsoleStyle& style);

}  // namespace gpubench
