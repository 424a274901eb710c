// row_layout(), result_header(), result_line(): rows printed as cases finish.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <unordered_set>

#include "harness/core/record.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/console.h"
#include "harness/report/record_text.h"

namespace gpubench {
namespace {

constexpr int verdict_and_rate_width = 20;
constexpr int share_width = 6;
constexpr int time_width = 7;
constexpr int interval_width = 5;
constexpr int error_width = 5;

struct RowCells {
  std::string verdict;
  Tone tone = Tone::plain;
  std::string rate;
  std::string share;
  std::string time;
  std::string interval;
  std::string error;
};

std::string share_cell(const Derived& derived, ShareColumn column) {
  if (!derived.peak || column == ShareColumn::absent) return "-";
  const std::optional<double>& share = column == ShareColumn::of_peak ? derived.peak->of_peak : derived.peak->of_best;
  return share ? share_or_unknown(share) : "-";
}

RowCells cells_of(const CaseRecord& record, const RowLayout& layout) {
  const Summary& s = record.summary;
  RowCells cells{
      verdict_word(record.verdict), tone_of(record.verdict), "-", share_cell(record.derived, layout.share), "-", "-",
      error_text(record.parity)};
  if (s.rounds > 0 && s.median_ns > 0.0) {
    cells.rate = rate_cell(record, layout);
    cells.time = format_time_ns(s.median_ns);
    cells.interval = format_interval(s.median_ns, s.ci95_low_ns, s.ci95_high_ns);
  }
  return cells;
}

int width_of(const ConsoleStyle& style) {
  constexpr int unlimited = std::numeric_limits<int>::max() / 2;
  return style.width == 0 ? unlimited : style.width;
}

int columns_before_case(const RowLayout& layout) {
  const int of_share = layout.share == ShareColumn::absent ? 0 : share_width + 1;
  return verdict_and_rate_width + 1 + of_share + time_width + 1 + interval_width + 1 + error_width + 2;
}

// The longest verdicts have no rate, so both share a column.
std::string columns_of_row(const RowCells& cells, const RowLayout& layout, const ConsoleStyle& style) {
  const int blanks = std::max(1, verdict_and_rate_width - columns(cells.verdict) - columns(cells.rate));
  const std::string share =
      layout.share == ShareColumn::absent ? "" : padded(cells.share, share_width, Align::right) + " ";
  return fmt::format("{}{}{} {}{} {} {}", paint(cells.verdict, cells.tone, style),
                     std::string(static_cast<std::size_t>(blanks), ' '), cells.rate, share,
                     padded(cells.time, time_width, Align::right), padded(cells.interval, interval_width, Align::right),
                     padded(cells.error, error_width, Align::right));
}

// In two or three lines, for terminals too narrow for columns.
std::string narrow_lines(const RowCells& cells, const RowLayout& layout, const ConsoleStyle& style) {
  std::string text = paint(cells.verdict, cells.tone, style);
  if (cells.rate != "-") text += fmt::format("  {}  {}", cells.rate, cells.time);
  std::vector<std::string> parts;
  if (cells.interval != "-") parts.push_back(fmt::format("{}95% {}", style.utf8 ? "±" : "+-", cells.interval));
  if (cells.error != "-") parts.push_back(fmt::format("err/bound {}", cells.error));
  if (layout.share != ShareColumn::absent && cells.share != "-")
    parts.push_back(fmt::format("{} of {}", cells.share, layout.share == ShareColumn::of_peak ? "peak" : "best"));
  int end = style.width;
  for (const std::string& part : parts) {
    const bool fits = end + 2 + columns(part) <= style.width;
    text += (fits ? "  " : "\n  ") + part;
    end = (fits ? end : 0) + 2 + columns(part);
  }
  return text;
}

// row_name() by key. Parts are escaped separately, since each may begin a line.
std::string name_of_row(const Case& c, const std::string& key, const RowLayout& layout) {
  std::string text = visible(c.workload) + " " + visible(c.recipe);
  for (const std::string& mode : c.modes) text += "/" + visible(mode);
  if (c.ranks > 1) text += fmt::format(" x{}", c.ranks);
  if (!c.contender.empty()) text += " @" + visible(c.contender);
  const auto sizes = layout.sizes.find(key);
  return text + (sizes == layout.sizes.end() || sizes->second.empty() ? "" : " " + visible(sizes->second));
}

/// Name and label from column `before`, or on lines below if they do not fit.
struct RowCase {
  std::string text;  ///< with preceding blanks or newline
  int end = 0;
  bool whole = true;
};

RowCase case_of_row(const Case& c, const std::string& name, int before, const ConsoleStyle& style) {
  constexpr int min_label = 6;  // width of a label on the name's line
  const int width = width_of(style);
  const bool beside = before + columns(name) <= width;
  const int start = beside ? before : 2;
  const std::string shown = clipped(name, width - start, style);
  RowCase row{(beside ? "  " : "\n  ") + shown, start + columns(shown), shown == name};
  const std::string label = visible(c.label);
  if (label.empty()) return row;
  const bool same_line = row.end + 2 + std::min(columns(label), min_label) <= width;
  const int label_start = same_line ? row.end + 2 : indent_below;
  const std::string shown_label = clipped(label, width - label_start, style);
  row.text += (same_line ? "  " : "\n" + std::string(indent_below, ' ')) + shown_label;
  row.end = label_start + columns(shown_label);
  return row;
}

std::string size_text(const Case& c, const std::string& dimension) {
  const auto found = std::ranges::find(c.dims, dimension, &Dims::value_type::first);
  return found == c.dims.end() ? "" : fmt::format("{}", found->second);
}

// A small set of dimensions that distinguishes these cases, chosen greedily.
std::unordered_set<std::string> distinguishing_dimensions(std::span<const Case* const> cases) {
  std::vector<std::string> all;
  for (const Case* c : cases) {
    for (const auto& [dimension, size] : c->dims) {
      if (std::ranges::find(all, dimension) == all.end()) all.push_back(dimension);
    }
  }
  std::unordered_set<std::string> chosen;
  std::vector<std::string> texts(cases.size());
  for (std::size_t distinct = 1; distinct < cases.size();) {
    std::string best;
    std::vector<std::string> best_texts;
    for (const std::string& dimension : all) {
      std::vector<std::string> longer = texts;
      for (std::size_t i = 0; i < cases.size(); ++i) longer[i] += size_text(*cases[i], dimension) + ",";
      const std::size_t different = std::unordered_set<std::string>(longer.begin(), longer.end()).size();
      if (different <= distinct) continue;
      distinct = different;
      best = dimension;
      best_texts = std::move(longer);
    }
    if (best.empty()) break;
    chosen.insert(best);
    texts = std::move(best_texts);
  }
  return chosen;
}

std::string chosen_sizes(const Case& c, const std::unordered_set<std::string>& dimensions) {
  Dims chosen;
  std::ranges::copy_if(c.dims, std::back_inserter(chosen),
                       [&](const auto& dim) { return dimensions.contains(dim.first); });
  return to_string(chosen);
}

}  // namespace

char rate_prefix(std::string_view unit, std::string_view device_kind) {
  if (unit == "FLOP/s") return device_kind == "cuda" ? 'T' : 'G';
  return unit == "B/s" || unit == "bytes/s" ? 'G' : 'k';
}

std::string rate_text(double rate, const std::string& unit, const RowLayout& layout) {
  return layout.device_kind.empty() ? format_quantity(rate, unit)
                                    : format_with_prefix(rate, unit, rate_prefix(unit, layout.device_kind));
}

std::string rate_cell(const CaseRecord& record, const RowLayout& layout) {
  return visible((timing_unreliable(record.summary) ? "~" : "") +
                 rate_text(record.derived.headline, record.derived.headline_unit, layout));
}

std::string row_name(const CaseRecord& record, const RowLayout& layout) {
  return name_of_row(record.c, record.key(), layout);
}

RowLayout row_layout(const std::string& device_kind, std::span<const Case> cases, const ConsoleStyle& style) {
  RowLayout layout{device_kind == "cuda" ? ShareColumn::of_peak : ShareColumn::of_best, device_kind};
  const auto shown = [&](const Case& c) {
    return c.suite + "\n" + case_of_row(c, name_of_row(c, c.key(), layout), columns_before_case(layout), style).text;
  };
  for (const auto& [text, alike] : grouped(cases, shown)) {
    if (alike.size() == 1) continue;
    const std::unordered_set<std::string> dimensions = distinguishing_dimensions(alike);
    for (const Case* c : alike) layout.sizes[c->key()] = chosen_sizes(*c, dimensions);
  }
  for (const auto& [text, alike] : grouped(cases, shown)) {
    if (alike.size() == 1) continue;
    for (const Case* c : alike) layout.alike.insert(c->key());
  }
  return layout;
}

std::string result_header(const ConsoleStyle& style, const RowLayout& layout) {
  const RowCells titles{"verdict",  Tone::plain,
                        "rate",     layout.share == ShareColumn::of_best ? "% best" : "% peak",
                        "time",     style.utf8 ? "±95%" : "+-95%",
                        "err/bound"};
  const std::string line = columns_of_row(titles, layout, style);
  if (columns(line) > width_of(style)) return "";  // narrow_lines() label their numbers
  return line + (columns(line) + 6 <= width_of(style) ? "  case\n" : "\n");
}

std::string result_line(const CaseRecord& record, const ConsoleStyle& style, const RowLayout& layout) {
  const RowCells cells = cells_of(record, layout);
  const int width = width_of(style);
  const int before = columns(columns_of_row(cells, layout, {})) + 2;
  const bool wide = before <= width;
  const RowCase row = case_of_row(record.c, row_name(record, layout), wide ? before : width + 1, style);
  std::string text = (wide ? columns_of_row(cells, layout, style) : narrow_lines(cells, layout, style)) + row.text;
  if (!record.summary.flags.empty()) {
    const std::string flags = fmt::format("[{}]", visible(joined(record.summary.flags)));
    const bool fits = row.end + 2 + columns(flags) <= width;
    text += (fits ? "  " : "\n" + std::string(indent_below, ' ')) +
            paint(fits ? flags : fitted(flags, style.width, indent_below), Tone::doubtful, style);
  }
  text += "\n";
  const bool passed = record.verdict == Verdict::pass;
  if (!passed || style.verbosity > 0 || !row.whole || layout.alike.contains(record.key()))
    text += line_below(visible(record.key()), style);
  if (!passed && !record.reason.empty()) text += line_below(visible(record.reason), style);
  if (style.verbosity > 0) text += details_text(record, style);
  return text;
}

std::string RowSequence::next(const CaseRecord& record) {
  std::string text = begun_ ? "" : result_header(style_, layout_);
  begun_ = true;
  // Quiet rows are failures, whose ids contain the suite.
  if (!style_.quiet && record.c.suite != suite_)
    text += clipped(visible(record.c.suite), width_of(style_), style_) + "\n";
  suite_ = record.c.suite;
  return text + result_line(record, style_, layout_);
}

}  // namespace gpubench
