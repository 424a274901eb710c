// What a person reads after a run: results by suite, the failures one by one, the summary, the verdict.
//
// Pure functions from records to text. Every line is safe to print: names, reasons and messages are made visible.
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

/// "PASS", "FAIL", "NOT_PROVEN", ...
[[nodiscard]] std::string verdict_word(Verdict verdict);

/// The one word for all of a run: the worst verdict of its cases that ran, "NOTHING RAN", or "INCOMPLETE" where it was
/// interrupted.
[[nodiscard]] std::string verdict_word_of_run(std::span<const CaseRecord> records, bool complete);

/// "3 pass, 1 fail": the verdicts that occur.
[[nodiscard]] std::string counts_text(const Totals& totals);

/// The worst error of its bound as a cell: "0.25", "2e+03", "inf", "-" where nothing was compared.
[[nodiscard]] std::string error_text(const Parity& parity);

/// True for what a run must not end in: fail, downgraded, not_proven, error.
[[nodiscard]] bool went_wrong(Verdict verdict);

template <class Item>
struct ItemGroup {
  std::string key;
  std::vector<const Item*> items;
};

/// Items of one key together, groups and items in the order given. Points into `items`, a vector or a span.
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

/// By verdict, worst first (record.h); within a verdict that is wrong by error over bound, largest first; otherwise in
/// the order given. Points into `records`.
[[nodiscard]] std::vector<const CaseRecord*> worst_first(std::span<const CaseRecord> records);

/// The case with the highest rate among those that passed with a reliable timing, in the unit that most passing cases
/// use; null where there is none.
[[nodiscard]] const CaseRecord* best_of(std::span<const CaseRecord* const> records);

/// What result lines show a rate's share of: nothing, the device's peak, or, where that is unknown, the best case of
/// its kind so far.
enum class ShareColumn { absent, of_peak, of_best };

/// Properties of a whole run that its rows depend on, known before the first of them is printed.
struct RowLayout {
  ShareColumn share = ShareColumn::absent;
  std::string device_kind{};  ///< decides the prefix of rates; empty: each rate has the prefix that fits it
  /// By Case::key(): the sizes shown in rows that would otherwise read the same.
  std::unordered_map<std::string, std::string> sizes{};
  std::unordered_set<std::string> alike{};  ///< keys of rows that still read the same: their ids are shown
};

/// The layout of a run of `cases` on a device of that kind ("cpu", "cuda").
[[nodiscard]] RowLayout row_layout(const std::string& device_kind, std::span<const Case> cases,
                                   const ConsoleStyle& style);

/// "gpt2_train_step f32/recompute x2 @mine b=4": what an id says, without its suite and with the layout's sizes alone.
[[nodiscard]] std::string row_name(const CaseRecord& record, const RowLayout& layout);

/// One prefix for all rates of a unit: 'G' for B/s and FLOP/s (on GPUs 'T'), 'k' for tokens/s and the like.
[[nodiscard]] char rate_prefix(std::string_view unit, std::string_view device_kind);
/// A rate with its layout's prefix. Not escaped.
[[nodiscard]] std::string rate_text(double rate, const std::string& unit, const RowLayout& layout);
/// A record's rate with its layout's prefix, "~21.8 GFLOP/s" where the timing is unreliable; made visible.
[[nodiscard]] std::string rate_cell(const CaseRecord& record, const RowLayout& layout);

/// The titles over result_line(); none where a terminal is too narrow for columns.
[[nodiscard]] std::string result_header(const ConsoleStyle& style, const RowLayout& layout = {});

/// One case in one line: verdict, rate, time and its 95% interval, worst error as a fraction of its bound, workload,
/// recipe, modes, ranks, label, flags. Long labels are cut. The whole id is on a separate line if the case did not
/// pass, if style.verbosity is not 0, or if another row reads the same. The reason follows unless the case passed. Ends
/// with a newline.
[[nodiscard]] std::string result_line(const CaseRecord& record, const ConsoleStyle& style,
                                      const RowLayout& layout = {});

/// The rows of a run, one by one: the titles come before the first row, a suite's name before its rows.
class RowSequence {
 public:
  RowSequence(ConsoleStyle style, RowLayout layout) : style_(style), layout_(std::move(layout)) {}

  [[nodiscard]] std::string next(const CaseRecord& record);

 private:
  ConsoleStyle style_;
  RowLayout layout_;
  std::string suite_;  ///< of the last row
  bool begun_ = false;
};

/// How far lines below a row are indented.
inline constexpr int indent_below = 4;
/// A line below a row, wrapped where it does not fit.
[[nodiscard]] std::string line_below(std::string_view text, const ConsoleStyle& style);

/// What -v adds below a row: percentiles, implementations, coverage, peaks, memory, the ops of a step.
[[nodiscard]] std::string details_text(const CaseRecord& record, const ConsoleStyle& style);

/// What is known of a case that went wrong, as title and text, each made visible: op, worst element, got, want, bound,
/// how many and where, "rerun" with the line that reruns it.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> failure_facts(const CaseRecord& record);

/// One block per case that went wrong: its verdict and failure_facts().
[[nodiscard]] std::string failures_text(std::span<const CaseRecord> records, const ConsoleStyle& style);

/// Counts per suite with the best rate and the worst error.
[[nodiscard]] std::string summary_text(std::span<const CaseRecord> records, const ConsoleStyle& style,
                                       const RowLayout& layout = {});

/// What the flags and the rarer verdicts of these cases mean, a line for each that occurs; empty where there is none.
/// Quiet: of cases that went wrong.
[[nodiscard]] std::string legend_text(std::span<const CaseRecord> records, const ConsoleStyle& style);

struct Ending {
  int exit_code = 0;
  std::string explanation;  ///< of the exit code
  std::string report_path;  ///< empty: none was written
  bool complete = true;
  double seconds = 0.0;
  std::string page_path{};             ///< empty: none was drawn
  std::string resume{};                ///< the command that resumes an interrupted run; empty: none
  std::vector<std::string> untried{};  ///< untried_lines()
};

/// Of all implementations under test, ImplementationFile::untried.
[[nodiscard]] std::vector<std::string> untried_lines(const RunContext& run);

/// The last lines: VERDICT with its counts, how many timings are unreliable, why and what to do, the paths of the page
/// and of the report, the exit code and what it means.
[[nodiscard]] std::string verdict_text(std::span<const CaseRecord> records, const Ending& ending,
                                       const ConsoleStyle& style);

/// A table of the passing steps of several ranks: rate, efficiency against one rank, exposed communication and how late
/// the slowest rank is. Empty where there are none, and without virtual ranks, whose figures say nothing of devices.
[[nodiscard]] std::string scaling_text(std::span<const CaseRecord> records, const ConsoleStyle& style = {},
                                       const RowLayout& layout = {});

/// Where ranks exchanged in pairs: the middle and the slowest link at each size of message, and which ranks and links
/// are late (harness/measure/links.h). Empty where there are no links to compare.
[[nodiscard]] std::string links_text(std::span<const CaseRecord> records, const ConsoleStyle& style = {},
                                     std::span<const RankPlace> places = {});

/// Nanoseconds per run of every sample of the valid rounds, by the clock that a summary is made of.
[[nodiscard]] std::vector<double> samples_per_run_ns(const CaseRecord& record);
/// Below so many samples a 99th percentile would be no more than the largest of them.
inline constexpr std::size_t fewest_for_p99 = 100;

[[nodiscard]] Tone tone_of(Verdict verdict);

// Of CallsTotal.

/// "38.1 ms", with a ~ where the interval is wider than a reliable timing's; or "n/a".
[[nodiscard]] std::string time_of(const CallsTotal& total);
/// "37.9 ms to 38.4 ms, 144 calls of 6 shapes", or why there is no time.
[[nodiscard]] std::string explanation_of(const CallsTotal& total);
/// "4 calls left out: primitive reorder", "12 calls taken without the bias".
[[nodiscard]] std::string text_of(const ShapesExcept& except);

/// The totals of a run, a line each, and what is not in them; empty without a list.
[[nodiscard]] std::string calls_totals_text(const Report& report, const ConsoleStyle& style);

}  // namespace gpubench
