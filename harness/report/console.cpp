#include "harness/report/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/record.h"
#include "harness/core/step_parts.h"
#include "harness/measure/statistics.h"
#include "harness/report/quantity.h"
#include "harness/report/record_text.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr int verdict_width = 11;
constexpr int rate_width = 15;
constexpr int time_width = 8;
constexpr int interval_width = 6;
constexpr int error_width = 9;
constexpr int share_width = 6;

std::string percent(double fraction) { return fmt::format("{:.1f}%", 100.0 * fraction); }

std::string share_cell(const Derived& derived, ShareColumn column) {
  if (!derived.peak || column == ShareColumn::absent) return "-";
  const std::optional<double>& share = column == ShareColumn::of_peak ? derived.peak->of_peak : derived.peak->of_best;
  return share ? percent(*share) : "-";
}

/// The cells of a line before its case.
struct Cells {
  std::string_view verdict;
  Tone tone = Tone::plain;
  std::string rate;
  std::string share;
  std::string time;
  std::string interval;
  std::string error;
};

// Width of the columns before the id, with the blanks after them.
int columns_before_id(const RowLayout& layout) {
  const int of_share = layout.share == ShareColumn::absent ? 0 : share_width + 1;
  return verdict_width + 1 + rate_width + 1 + of_share + time_width + 1 + interval_width + 1 + error_width + 2;
}

std::string columns_of_line(const Cells& cells, const RowLayout& layout, const ConsoleStyle& style) {
  const std::string share =
      layout.share == ShareColumn::absent ? "" : padded(cells.share, share_width, Align::right) + " ";
  return fmt::format("{} {} {}{} {} {}", paint(padded(cells.verdict, verdict_width), cells.tone, style),
                     padded(cells.rate, rate_width, Align::right), share, padded(cells.time, time_width, Align::right),
                     padded(cells.interval, interval_width, Align::right),
                     padded(cells.error, error_width, Align::right));
}

// Where a terminal is too narrow for the columns: the same in two lines or three.
std::string narrow_lines(const Cells& cells, const RowLayout& layout, const ConsoleStyle& style) {
  std::string text = paint(cells.verdict, cells.tone, style);
  if (cells.rate != "-") text += fmt::format("  {}  {}", cells.rate, cells.time);
  std::vector<std::string> parts;
  if (cells.interval != "-") parts.push_back(fmt::format("{}95% {}", style.utf8 ? "±" : "+-", cells.interval));
  if (cells.error != "-") parts.push_back(fmt::format("err/bound {}", cells.error));
  if (layout.share != ShareColumn::absent && cells.share != "-")
    parts.push_back(fmt::format("{} of {}", cells.share, layout.share == ShareColumn::of_peak ? "peak" : "best"));
  int end = style.width;  // the first begins a line
  for (const std::string& part : parts) {
    const bool fits = end + 2 + columns(part) <= style.width;
    text += (fits ? "  " : "\n  ") + part;
    end = (fits ? end : 0) + 2 + columns(part);
  }
  return text;
}

// Of lines below a result: under its numbers, or nearer to the left where there is little room.
int indent_of(const ConsoleStyle& style) { return style.width == 0 || style.width >= 60 ? verdict_width + 1 : 4; }

std::string below(std::string_view text, const ConsoleStyle& style) {
  const int indent = indent_of(style);
  return std::string(static_cast<std::size_t>(indent), ' ') + fitted(text, style.width, indent) + "\n";
}

std::string parts_lines(const char* by, std::span<const StepPart> parts, const CaseRecord& record,
                        const ConsoleStyle& style) {
  TextTable table({{"  alone", Align::right},
                   {"share", Align::right},
                   {"ops", Align::right},
                   {"work", Align::right},
                   {"bytes", Align::right},
                   {"rate", Align::right},
                   {std::string(utilization_name(record.c)), Align::right},
                   {by}});
  for (const StepPart& part : parts) {
    const std::optional<double> mfu = utilization(record.derived, part.flop_per_s());
    table.add({format_time_ns(part.median_ns),
               share_is_sure(part.share, record.summary) ? percent(part.share) : "unknown", fmt::format("{}", part.ops),
               format_quantity(part.flop, "FLOP"), format_quantity(part.bytes, "B"),
               format_quantity(part.flop_per_s(), "FLOP/s"), mfu ? percent(*mfu) : "-", part.name});
  }
  return table.text(style, indent_of(style));
}

// "weights 12.4 MB, optimizer state 99.3 MB, ..., scratch 1.05 MB"
std::string memory_text(const CaseRecord& record) {
  std::vector<std::string> parts;
  const auto add = [&parts](const std::string& kind, std::int64_t bytes) {
    parts.push_back(fmt::format("{} {}", kind, format_quantity(static_cast<double>(bytes), "B")));
  };
  for (const MemoryPart& part : *record.memory) add(part.kind, part.bytes);
  if (record.workspace_bytes) add("scratch", *record.workspace_bytes);
  return joined(parts);
}

// Below a composite step: what it is made of by kind of op and by layer, what each op takes alone, and what is left
// over.
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
  std::string lines = parts_lines("kind of op", parts_by_kind(derived.breakdown), record, style);
  const std::vector<StepPart> layers = parts_by_layer(derived.breakdown);
  if (layers.size() < derived.breakdown.size()) lines += parts_lines("layer", layers, record, style);
  return paint(lines + table.text(style, indent_of(style)), Tone::faint, style);
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

// "p50 1.20 ms, p90 1.31 ms, p99 1.75 ms (of 200 samples)"; fewer than 100 samples have no 99th percentile.
std::string percentiles_text(const CaseRecord& record) {
  const std::vector<double> samples = samples_per_run_ns(record);
  const auto at = [&samples](double p) { return format_time_ns(quantile(samples, p)); };
  return fmt::format("p50 {}, p90 {}, p99 {} (of {} samples)", at(0.50), at(0.90),
                     samples.size() >= fewest_for_p99 ? at(0.99) : "-", samples.size());
}

std::string detail_lines(const CaseRecord& record, const ConsoleStyle& style) {
  std::string lines;
  const auto add = [&](const std::string& text) { lines += below(visible(text), style); };
  if (!samples_per_run_ns(record).empty()) add(percentiles_text(record));
  if (!record.implementation.empty()) {
    const std::string how = record.choice ? fmt::format(" ({})", name(*record.choice)) : "";
    add(fmt::format("by {}{}", record.implementation, how));
  }
  for (const OpParity& op : record.parity.ops) {
    if (op.phase != "check" || !op.rejected) continue;
    for (const std::string& candidate : *op.rejected) add(fmt::format("not chosen for {}: {}", op.label, candidate));
  }
  if (record.rewrites) add("fused " + joined(*record.rewrites));
  if (!record.parity.coverage.empty()) add("checked " + record.parity.coverage);
  for (const PlanArithmetic& plan : record.parity.arithmetic.value_or(std::vector<PlanArithmetic>{})) {
    const std::string more = plan.ops > 1 ? fmt::format(" and {} more", plan.ops - 1) : "";
    add(fmt::format("arithmetic of {}{} ({}): {}", plan.label, more, plan.kind, arithmetic_text(plan)));
  }
  if (record.derived.peak)
    add((record.derived.breakdown.empty() ? "reached " : fmt::format("{}: ", utilization_name(record.c))) +
        peak_text(*record.derived.peak));
  if (record.memory) add("memory: " + memory_text(record));
  if (record.derived.ranks) add("ranks: " + ranks_text(record));
  if (record.derived.energy_j) add("took " + energy_text(record.derived));
  return paint(lines, Tone::faint, style) + breakdown_lines(record, style);
}

}  // namespace

std::vector<double> samples_per_run_ns(const CaseRecord& record) {
  std::vector<double> samples;
  for (const RoundRecord& round : record.rounds) {
    if (!round.valid || record.batch < 1) continue;
    for (const double ns : round.times.device_ns) samples.push_back(ns / static_cast<double>(record.batch));
  }
  return samples;
}

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

std::string result_header(const ConsoleStyle& style, const RowLayout& layout) {
  const int before = columns_before_id(layout);
  if (style.width > 0 && style.width < before) return "";  // numbers say themselves what they are
  const Cells titles{"verdict",  Tone::plain,
                     "rate",     layout.share == ShareColumn::of_best ? "% best" : "% peak",
                     "time",     style.utf8 ? "±95%" : "+-95%",
                     "err/bound"};
  std::string line = columns_of_line(titles, layout, style);
  const auto fits = [&style](int end) { return style.width == 0 || end <= style.width; };
  if (!fits(before + 4)) return line + "\n";
  line += "  " + (layout.id_width > 0 && fits(before + layout.id_width + 2 + 5)
                      ? padded("case", layout.id_width) + "  label"
                      : "case");
  return line + "\n";
}

std::string result_line(const CaseRecord& record, const ConsoleStyle& style, const RowLayout& layout) {
  const Summary& s = record.summary;
  const std::string word = verdict_word(record.verdict);
  Cells cells{word, tone_of(record.verdict),  "-", share_cell(record.derived, layout.share), "-",
              "-",  error_text(record.parity)};
  if (s.rounds > 0 && s.median_ns > 0.0) {
    cells.rate = visible(rate_text_of(record));
    cells.time = format_time_ns(s.median_ns);
    cells.interval = format_interval(s.median_ns, s.ci95_low_ns, s.ci95_high_ns);
  }
  const std::string id = visible(record.key());
  const int before = columns_before_id(layout);
  const auto fits = [&style](int end) { return style.width == 0 || end <= style.width; };
  std::string line = fits(before) ? columns_of_line(cells, layout, style) : narrow_lines(cells, layout, style);
  const bool beside = fits(before + columns(id));
  line += (beside ? "  " : "\n  ") + id;
  int end = (beside ? before : 2) + columns(id);
  // Beside what stands there, from column `from` on if it is not beyond that yet; else below.
  const auto append = [&](const std::string& text, Tone tone, int from) {
    if (text.empty()) return;
    const int start = std::max(end, from) + 2;
    if (fits(start + columns(text))) {
      line += std::string(static_cast<std::size_t>(start - end), ' ') + paint(text, tone, style);
      end = start + columns(text);
    } else {
      line += "\n    " + paint(fitted(text, style.width, 4), tone, style);
      end = style.width;  // the next text starts a line
    }
  };
  append(visible(record.c.label), Tone::plain, beside ? before + layout.id_width : 0);
  append(s.flags.empty() ? "" : fmt::format("[{}]", visible(joined(s.flags))), Tone::doubtful, 0);
  line += "\n";
  if (record.verdict != Verdict::pass && !record.reason.empty()) line += below(visible(record.reason), style);
  if (style.verbosity > 0) line += detail_lines(record, style);
  return line;
}

}  // namespace gpubench
