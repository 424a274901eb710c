#include "harness/report/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/reliability.h"
#include "harness/report/console_parts.h"
#include "harness/report/quantity.h"
#include "harness/report/reliability_text.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr int verdict_width = 11;
constexpr int rate_width = 15;
constexpr int time_width = 8;
constexpr int interval_width = 6;
constexpr int error_width = 6;
constexpr int peak_width = 6;

std::string percent(double fraction) { return fmt::format("{:.1f}%", 100.0 * fraction); }

std::string peak_cell(const Derived& derived) {
  return derived.peak && derived.peak->of_peak ? percent(*derived.peak->of_peak) : "-";
}

/// The cells of a line before its case.
struct Cells {
  std::string_view verdict;
  Tone tone = Tone::plain;
  std::string rate;
  std::string peak;
  std::string time;
  std::string interval;
  std::string error;
};

// Columns before the id, with the blanks behind them.
int columns_before_id(PeakColumn peak) {
  const int of_peak = peak == PeakColumn::present ? peak_width + 1 : 0;
  return verdict_width + 1 + rate_width + 1 + of_peak + time_width + 1 + interval_width + 1 + error_width + 2;
}

std::string columns_of_line(const Cells& cells, PeakColumn peak, const ConsoleStyle& style) {
  const std::string of_peak = peak == PeakColumn::present ? padded(cells.peak, peak_width, Align::right) + " " : "";
  return fmt::format("{} {} {}{} {} {}", paint(padded(cells.verdict, verdict_width), cells.tone, style),
                     padded(cells.rate, rate_width, Align::right), of_peak,
                     padded(cells.time, time_width, Align::right), padded(cells.interval, interval_width, Align::right),
                     padded(cells.error, error_width, Align::right));
}

// Where a terminal is too narrow for the columns: the same in two lines.
std::string narrow_lines(const Cells& cells, PeakColumn peak, const ConsoleStyle& style) {
  std::string text = paint(cells.verdict, cells.tone, style);
  if (cells.rate != "-") text += fmt::format("  {}  {}", cells.rate, cells.time);
  std::string more;
  if (cells.interval != "-") more += fmt::format("  {}95% {}", style.utf8 ? "±" : "+-", cells.interval);
  if (cells.error != "-") more += fmt::format("  err {}", cells.error);
  if (peak == PeakColumn::present && cells.peak != "-") more += fmt::format("  {} of peak", cells.peak);
  return more.empty() ? text : text + "\n" + more;
}

// Of lines below a result: under its numbers, or nearer to the left where there is little room.
int indent_of(const ConsoleStyle& style) { return style.width == 0 || style.width >= 60 ? verdict_width + 1 : 4; }

std::string below(std::string_view text, const ConsoleStyle& style) {
  const int indent = indent_of(style);
  return std::string(static_cast<std::size_t>(indent), ' ') + fitted(text, style.width, indent) + "\n";
}

// Below a composite step: what each op takes alone, and what is left over.
std::string breakdown_lines(const CaseRecord& record, const ConsoleStyle& style) {
  const Derived& derived = record.derived;
  if (derived.breakdown.empty()) return "";
  TextTable table({{"  alone", Align::right}, {"share", Align::right}, {"op"}, {"by"}});
  for (const OpShare& op : derived.breakdown) {
    table.add({format_time_ns(op.median_ns), share_is_sure(op.share, record.summary) ? percent(op.share) : "unknown",
               fmt::format("{} ({})", op.label, op.kind), op.implementation});
  }
  const std::optional<double> remainder = sure_remainder(record);
  table.add({"", remainder ? fmt::format("{:+.1f}%", 100.0 * *remainder) : "unknown",
             "remainder (gaps +, overlap and warm caches -)"});
  return paint(table.text(style, indent_of(style)), Tone::faint, style);
}

// "78.3% of bf16's peak (H200 SXM, sourced: ...), 81.0% of it at the clock of the rounds, 99.1% of the best here (...)"
std::string peak_text(const PeakShare& peak) {
  std::vector<std::string> parts;
  if (peak.of_peak)
    parts.push_back(fmt::format("{} of {}'s peak ({})", percent(*peak.of_peak), peak.limit, peak.peak_source));
  if (peak.of_peak_at_clock)
    parts.push_back(fmt::format("{} of it at the clock of the rounds", percent(*peak.of_peak_at_clock)));
  if (peak.of_best) parts.push_back(fmt::format("{} of the best here ({})", percent(*peak.of_best), peak.best_case));
  return joined(parts);
}

// "12.4 J per run, 1.32 ktokens/J"
std::string energy_text(const Derived& derived) {
  std::string text = format_quantity(*derived.energy_j, "J") + " per run";
  if (derived.energy_per_work_j && *derived.energy_per_work_j > 0.0) {
    const std::string work = derived.headline_unit.substr(0, derived.headline_unit.find('/'));
    text += ", " + format_quantity(1.0 / *derived.energy_per_work_j, work + "/J");
  }
  return text;
}

// "efficiency 0.93 of one rank, 4.1% exposed communication, busbw 9.81 GB/s, algbw 9.81 GB/s, slowest rank 3.1% late"
std::string ranks_text(const CaseRecord& record) {
  const Derived& derived = record.derived;
  std::vector<std::string> parts;
  if (const std::optional<double> efficiency = sure_efficiency(record))
    parts.push_back(fmt::format("efficiency {:.2f} against one rank", *efficiency));
  if (const std::optional<double> exposed = sure_exposed(record))
    parts.push_back(fmt::format("{} of the step is exposed communication", percent(*exposed)));
  else if (derived.ranks && derived.ranks->exposed_communication)
    parts.emplace_back("exposed communication unknown");
  if (derived.collective) {
    parts.push_back(fmt::format("busbw {}", format_quantity(derived.collective->bus_bytes_per_s, "B/s")));
    parts.push_back(fmt::format("algbw {}", format_quantity(derived.collective->algorithm_bytes_per_s, "B/s")));
  }
  if (derived.ranks) parts.push_back(fmt::format("the slowest rank is {} late", percent(derived.ranks->straggler)));
  return joined(parts);
}

std::string detail_lines(const CaseRecord& record, const ConsoleStyle& style) {
  std::string lines;
  const auto add = [&](const std::string& text) { lines += below(visible(text), style); };
  if (!record.implementation.empty()) {
    const std::string how = record.choice ? fmt::format(" ({})", name(*record.choice)) : "";
    add(fmt::format("by {}{}", record.implementation, how));
  }
  if (record.rewrites) add("fused " + joined(*record.rewrites));
  if (!record.parity.coverage.empty()) add("checked " + record.parity.coverage);
  if (record.derived.peak) add("reached " + peak_text(*record.derived.peak));
  if (record.derived.ranks) add("ranks: " + ranks_text(record));
  if (record.derived.energy_j) add("took " + energy_text(record.derived));
  return paint(lines, Tone::faint, style) + breakdown_lines(record, style);
}

}  // namespace

std::string error_text(const Parity& parity) {
  if (parity.ops.empty()) return "-";
  const double error = parity.error_over_bound;
  return std::isfinite(error) && error >= 999.5 ? fmt::format("{:.0e}", error) : fmt::format("{:.2f}", error);
}

std::string verdict_word(Verdict verdict) {
  std::string word(name(verdict));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; });
  return word;
}

bool went_wrong(Verdict verdict) {
  return verdict == Verdict::fail || verdict == Verdict::downgraded || verdict == Verdict::not_proven ||
         verdict == Verdict::error;
}

std::string result_header(const ConsoleStyle& style, PeakColumn peak) {
  if (style.width > 0 && style.width < columns_before_id(peak)) return "";  // numbers say themselves what they are
  const Cells titles{"verdict", Tone::plain, "rate", "% peak", "time", style.utf8 ? "±95%" : "+-95%", "err"};
  const bool room = style.width == 0 || columns_before_id(peak) + 4 <= style.width;
  return columns_of_line(titles, peak, style) + (room ? "  case\n" : "\n");
}

std::string result_line(const CaseRecord& record, const ConsoleStyle& style, PeakColumn peak) {
  const Summary& s = record.summary;
  const std::string word = verdict_word(record.verdict);
  Cells cells{word, tone_of(record.verdict), "-", peak_cell(record.derived), "-", "-", error_text(record.parity)};
  if (s.rounds > 0 && s.median_ns > 0.0) {
    cells.rate = visible(rate_text_of(record));
    cells.time = format_time_ns(s.median_ns);
    cells.interval = format_interval(s.median_ns, s.ci95_low_ns, s.ci95_high_ns);
  }
  const std::string id = visible(record.id);
  const std::string flags = s.flags.empty() ? "" : fmt::format("[{}]", visible(joined(s.flags)));
  const int before = columns_before_id(peak);
  const auto fits = [&style](int end) { return style.width == 0 || end <= style.width; };
  std::string line = fits(before) ? columns_of_line(cells, peak, style) : narrow_lines(cells, peak, style);
  const bool beside = fits(before + columns(id));
  line += (beside ? "  " : "\n  ") + id;
  const int end = (beside ? before : 2) + columns(id);
  if (!flags.empty())
    line += paint((fits(end + 2 + columns(flags)) ? "  " : "\n    ") + fitted(flags, style.width, 4), Tone::doubtful,
                  style);
  line += "\n";
  if (record.verdict != Verdict::pass && !record.reason.empty()) line += below(visible(record.reason), style);
  if (style.verbosity > 0) line += detail_lines(record, style);
  return line;
}

std::string results_text(std::span<const CaseRecord> records, const ConsoleStyle& style) {
  const bool peaks = std::any_of(records.begin(), records.end(), [](const CaseRecord& record) {
    return record.derived.peak && record.derived.peak->of_peak;
  });
  const PeakColumn peak = peaks ? PeakColumn::present : PeakColumn::absent;
  std::string text;
  for (const std::string& suite : suites_of(records)) {
    std::string lines;
    for (const CaseRecord& record : of_suite(records, suite)) {
      if (!style.quiet || went_wrong(record.verdict)) lines += result_line(record, style, peak);
    }
    if (!lines.empty()) text += fmt::format("{}\n{}\n", visible(suite), lines);
  }
  return text.empty() ? "" : result_header(style, peak) + text;
}

}  // namespace gpubench
