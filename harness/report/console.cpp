#include "harness/report/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/report/quantity.h"
#include "harness/report/report_json.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr int verdict_width = 11;
constexpr int rate_width = 15;
constexpr int time_width = 8;
constexpr int interval_width = 6;
constexpr int error_width = 6;
constexpr int peak_width = 6;

bool has_run(Verdict verdict) { return verdict != Verdict::unsupported && verdict != Verdict::skipped; }

Verdict worst_of(std::span<const CaseRecord> records) {
  Verdict worst = Verdict::pass;
  for (const CaseRecord& record : records) {
    if (has_run(record.verdict)) worst = worse(worst, record.verdict);
  }
  return worst;
}

Tone tone_of(Verdict verdict) {
  if (verdict == Verdict::pass) return Tone::good;
  if (went_wrong(verdict)) return Tone::bad;
  return verdict == Verdict::unverified ? Tone::doubtful : Tone::faint;
}

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

std::string columns_of_line(const Cells& cells, PeakColumn peak, const ConsoleStyle& style) {
  const std::string of_peak = peak == PeakColumn::present ? padded(cells.peak, peak_width, Align::right) + " " : "";
  return fmt::format("{} {} {}{} {} {}  ", paint(padded(cells.verdict, verdict_width), cells.tone, style),
                     padded(cells.rate, rate_width, Align::right), of_peak,
                     padded(cells.time, time_width, Align::right), padded(cells.interval, interval_width, Align::right),
                     padded(cells.error, error_width, Align::right));
}

// Below a composite step: what each op takes alone, and what is left over.
std::string breakdown_lines(const Derived& derived, const ConsoleStyle& style) {
  if (derived.breakdown.empty()) return "";
  TextTable table({{"  alone", Align::right}, {"share", Align::right}, {"op"}, {"by"}});
  for (const OpShare& op : derived.breakdown) {
    table.add({format_time_ns(op.median_ns), fmt::format("{:.1f}%", 100.0 * op.share),
               fmt::format("{} ({})", op.label, op.kind), op.implementation});
  }
  table.add({"", fmt::format("{:+.1f}%", 100.0 * derived.remainder), "remainder (gaps +, overlap and warm caches -)"});
  return paint(table.text(verdict_width + 1), Tone::faint, style);
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
std::string ranks_text(const Derived& derived) {
  std::vector<std::string> parts;
  if (derived.ranks && derived.ranks->efficiency)
    parts.push_back(fmt::format("efficiency {:.2f} against one rank", *derived.ranks->efficiency));
  if (derived.ranks && derived.ranks->exposed_communication)
    parts.push_back(
        fmt::format("{} of the step is exposed communication", percent(*derived.ranks->exposed_communication)));
  if (derived.collective) {
    parts.push_back(fmt::format("busbw {}", format_quantity(derived.collective->bus_bytes_per_s, "B/s")));
    parts.push_back(fmt::format("algbw {}", format_quantity(derived.collective->algorithm_bytes_per_s, "B/s")));
  }
  if (derived.ranks) parts.push_back(fmt::format("the slowest rank is {} late", percent(derived.ranks->straggler)));
  return joined(parts);
}

std::string detail_lines(const CaseRecord& record, const ConsoleStyle& style) {
  const std::string indent(verdict_width + 1, ' ');
  std::string lines;
  if (!record.implementation.empty()) {
    const std::string how = record.choice ? fmt::format(" ({})", name(*record.choice)) : "";
    lines += fmt::format("{}by {}{}\n", indent, visible(record.implementation), how);
  }
  if (record.rewrites) lines += fmt::format("{}fused {}\n", indent, visible(joined(*record.rewrites)));
  if (!record.parity.coverage.empty()) lines += fmt::format("{}checked {}\n", indent, visible(record.parity.coverage));
  if (record.derived.peak) lines += fmt::format("{}reached {}\n", indent, visible(peak_text(*record.derived.peak)));
  if (record.derived.ranks) lines += fmt::format("{}ranks: {}\n", indent, ranks_text(record.derived));
  if (record.derived.energy_j) lines += fmt::format("{}took {}\n", indent, visible(energy_text(record.derived)));
  return paint(lines, Tone::faint, style) + breakdown_lines(record.derived, style);
}

std::vector<std::string> suites_of(std::span<const CaseRecord> records) {
  std::vector<std::string> suites;
  for (const CaseRecord& record : records) {
    if (std::find(suites.begin(), suites.end(), record.c.suite) == suites.end()) suites.push_back(record.c.suite);
  }
  return suites;
}

std::vector<CaseRecord> of_suite(std::span<const CaseRecord> records, const std::string& suite) {
  std::vector<CaseRecord> chosen;
  std::copy_if(records.begin(), records.end(), std::back_inserter(chosen),
               [&](const CaseRecord& record) { return record.c.suite == suite; });
  return chosen;
}

// The highest headline of passing cases in the unit that most of them use.
std::string best_cell(std::span<const CaseRecord> records) {
  std::map<std::string, int> uses;
  for (const CaseRecord& r : records) uses[r.derived.headline_unit] += r.verdict == Verdict::pass ? 1 : 0;
  const auto usual = std::max_element(uses.begin(), uses.end(), [](auto& a, auto& b) { return a.second < b.second; });
  const CaseRecord* best = nullptr;
  for (const CaseRecord& r : records) {
    if (r.verdict != Verdict::pass || r.derived.headline_unit != usual->first) continue;
    if (best == nullptr || r.derived.headline > best->derived.headline) best = &r;
  }
  return best == nullptr ? "-"
                         : fmt::format("{} {}", format_quantity(best->derived.headline, usual->first), best->c.recipe);
}

std::string worst_cell(std::span<const CaseRecord> records) {
  double worst = -1.0;
  for (const CaseRecord& r : records) {
    if (!r.parity.ops.empty() && !(r.parity.error_over_bound <= worst)) worst = r.parity.error_over_bound;
  }
  return worst < 0.0 ? "-" : fmt::format("{:.2f}", worst);
}

constexpr Verdict reported[] = {Verdict::pass,    Verdict::fail,       Verdict::error,      Verdict::unsupported,
                                Verdict::skipped, Verdict::downgraded, Verdict::not_proven, Verdict::unverified};

}  // namespace

std::string counts_text(const Totals& totals) {
  std::vector<std::string> counts;
  for (const Verdict verdict : reported) {
    if (totals.count(verdict) > 0) counts.push_back(fmt::format("{} {}", totals.count(verdict), name(verdict)));
  }
  return joined(counts);
}

std::string error_text(const Parity& parity) {
  if (parity.ops.empty()) return "-";
  const double error = parity.error_over_bound;
  return std::isfinite(error) && error >= 999.5 ? fmt::format("{:.0e}", error) : fmt::format("{:.2f}", error);
}

std::string verdict_word_of_run(std::span<const CaseRecord> records, bool complete) {
  if (!complete) return "INCOMPLETE";
  const bool ran = std::any_of(records.begin(), records.end(), [](const CaseRecord& r) { return has_run(r.verdict); });
  return ran ? verdict_word(worst_of(records)) : "NOTHING RAN";
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
  const Cells titles{"verdict", Tone::plain, "rate", "% peak", "time", style.utf8 ? "±95%" : "+-95%", "err"};
  return columns_of_line(titles, peak, style) + "case\n";
}

std::string result_line(const CaseRecord& record, const ConsoleStyle& style, PeakColumn peak) {
  const Summary& s = record.summary;
  const std::string word = verdict_word(record.verdict);
  Cells cells{word, tone_of(record.verdict), "-", peak_cell(record.derived), "-", "-", error_text(record.parity)};
  if (s.rounds > 0 && s.median_ns > 0.0) {
    cells.rate = visible(format_quantity(record.derived.headline, record.derived.headline_unit));
    cells.time = format_time_ns(s.median_ns);
    cells.interval = format_interval(s.median_ns, s.ci95_low_ns, s.ci95_high_ns);
  }
  std::string line = columns_of_line(cells, peak, style);
  line += visible(record.id);
  if (!s.flags.empty()) line += paint(fmt::format("  [{}]", visible(joined(s.flags))), Tone::doubtful, style);
  line += "\n";
  if (record.verdict != Verdict::pass && !record.reason.empty()) {
    line += std::string(verdict_width + 1, ' ') + visible(record.reason) + "\n";
  }
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

std::string summary_text(std::span<const CaseRecord> records, const ConsoleStyle& /*style*/) {
  const Totals all = totals_of(records);
  std::vector<Column> columns{{"suite"}};
  std::vector<Verdict> shown;
  for (const Verdict verdict : reported) {
    const bool always = verdict == Verdict::pass || verdict == Verdict::fail || verdict == Verdict::error;
    if (!always && all.count(verdict) == 0) continue;
    shown.push_back(verdict);
    columns.push_back({std::string(name(verdict)), Align::right});
  }
  columns.push_back({"best rate", Align::right});
  columns.push_back({"worst err", Align::right});
  TextTable table(std::move(columns));
  for (const std::string& suite : suites_of(records)) {
    const std::vector<CaseRecord> chosen = of_suite(records, suite);
    const Totals totals = totals_of(chosen);
    std::vector<std::string> row{suite};
    for (const Verdict verdict : shown) row.push_back(fmt::format("{}", totals.count(verdict)));
    row.push_back(best_cell(chosen));
    row.push_back(worst_cell(chosen));
    table.add(std::move(row));
  }
  return table.text();
}

std::string verdict_text(std::span<const CaseRecord> records, const Ending& ending, const ConsoleStyle& style) {
  const Totals totals = totals_of(records);
  const Verdict overall = worst_of(records);
  const std::string word = verdict_word_of_run(records, ending.complete);
  const Tone tone = word == "PASS" ? Tone::good : overall == Verdict::pass ? Tone::doubtful : tone_of(overall);
  std::string text = fmt::format("VERDICT  {}  {} of {} cases in {} (check {}, time {})\n", paint(word, tone, style),
                                 counts_text(totals), totals.cases, format_duration(ending.seconds),
                                 format_duration(totals.check_s), format_duration(totals.time_s));
  if (totals.count(Verdict::unverified) > 0) {
    text += paint("NOTHING WAS VERIFIED: --check off; these numbers are not results and are not in `benchmarks`\n",
                  Tone::doubtful, style);
  }
  if (!ending.report_path.empty()) text += fmt::format("report   {}\n", visible(ending.report_path));
  text += fmt::format("exit {}   {}\n", ending.exit_code, ending.explanation);
  return text;
}

}  // namespace gpubench
