#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/core/record.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/measure/links.h"
#include "harness/report/console.h"
#include "harness/report/record_text.h"

namespace gpubench {
namespace {

bool has_run(Verdict verdict) { return verdict != Verdict::unsupported && verdict != Verdict::skipped; }

Verdict worst_of(std::span<const CaseRecord> records) {
  Verdict worst = Verdict::pass;
  for (const CaseRecord& record : records) {
    if (has_run(record.verdict)) worst = worse(worst, record.verdict);
  }
  return worst;
}

std::string best_cell(const std::vector<const CaseRecord*>& records, const RowLayout& layout) {
  const CaseRecord* best = best_of(records);
  if (best == nullptr) return "-";
  return fmt::format("{} {}", rate_text(best->derived.headline, best->derived.headline_unit, layout), best->c.recipe);
}

std::string worst_cell(const std::vector<const CaseRecord*>& records) {
  double worst = -1.0;
  for (const CaseRecord* r : records) {
    if (!r->parity.ops.empty() && !(r->parity.error_over_bound <= worst)) worst = r->parity.error_over_bound;
  }
  return worst < 0.0 ? "-" : fmt::format("{:.2f}", worst);
}

constexpr Verdict reported[] = {Verdict::pass,    Verdict::fail,       Verdict::error,      Verdict::unsupported,
                                Verdict::skipped, Verdict::downgraded, Verdict::not_proven, Verdict::unverified};

std::string efficiency_cell(const CaseRecord& record, std::span<const CaseRecord> records) {
  const bool alone = std::any_of(records.begin(), records.end(), [&](const CaseRecord& other) {
    return other.c.ranks == 1 && other.verdict == Verdict::pass &&
           other.c.id_without_ranks() == record.c.id_without_ranks();
  });
  return alone || record.derived.ranks->efficiency ? share_or_unknown(reliable_efficiency(record)) : "-";
}

std::string exposed_cell(const CaseRecord& record) {
  return record.derived.ranks->exposed_communication ? share_or_unknown(reliable_exposed(record)) : "-";
}

}  // namespace

Tone tone_of(Verdict verdict) {
  if (verdict == Verdict::pass) return Tone::good;
  if (went_wrong(verdict)) return Tone::bad;
  return verdict == Verdict::unverified ? Tone::doubtful : Tone::faint;
}

std::string counts_text(const Totals& totals) {
  std::vector<std::string> counts;
  for (const Verdict verdict : reported) {
    if (totals.count(verdict) > 0) counts.push_back(fmt::format("{} {}", totals.count(verdict), name(verdict)));
  }
  return joined(counts);
}

std::string verdict_word_of_run(std::span<const CaseRecord> records, bool complete) {
  if (!complete) return "INCOMPLETE";
  const bool ran = std::any_of(records.begin(), records.end(), [](const CaseRecord& r) { return has_run(r.verdict); });
  return ran ? verdict_word(worst_of(records)) : "NOTHING RAN";
}

const CaseRecord* best_of(std::span<const CaseRecord* const> records) {
  std::map<std::string, int> uses;
  for (const CaseRecord* r : records) uses[r->derived.headline_unit] += r->verdict == Verdict::pass ? 1 : 0;
  const auto usual = std::max_element(uses.begin(), uses.end(), [](auto& a, auto& b) { return a.second < b.second; });
  const CaseRecord* best = nullptr;
  for (const CaseRecord* r : records) {
    const bool counts = r->verdict == Verdict::pass && !timing_unreliable(r->summary);
    if (!counts || r->derived.headline_unit != usual->first) continue;
    if (best == nullptr || r->derived.headline > best->derived.headline) best = r;
  }
  return best;
}

std::string summary_text(std::span<const CaseRecord> records, const ConsoleStyle& style, const RowLayout& layout) {
  const Totals all = totals_of(records);
  std::vector<Column> titles{{"suite"}};
  std::vector<Verdict> shown;
  for (const Verdict verdict : reported) {
    const bool always = verdict == Verdict::pass || verdict == Verdict::fail || verdict == Verdict::error;
    if (!always && all.count(verdict) == 0) continue;
    shown.push_back(verdict);
    titles.push_back({std::string(name(verdict)), Align::right});
  }
  titles.push_back({"best rate", Align::right});
  titles.push_back({"worst err/bound", Align::right});
  TextTable table(std::move(titles));
  std::string list;
  for (const auto& [suite, chosen] : grouped(records, [](const CaseRecord& r) { return r.c.suite; })) {
    Totals totals;
    for (const CaseRecord* record : chosen) totals.add(*record);
    std::vector<std::string> row{suite};
    for (const Verdict verdict : shown) row.push_back(fmt::format("{}", totals.count(verdict)));
    row.push_back(best_cell(chosen, layout));
    row.push_back(worst_cell(chosen));
    const std::string extremes = visible(fmt::format("best {}, worst err/bound {}", row[row.size() - 2], row.back()));
    list += fmt::format("{}: {}\n  {}\n", visible(suite),
                        fitted(counts_text(totals), style.width, columns(visible(suite)) + 2),
                        fitted(extremes, style.width, 2));
    table.add(std::move(row));
  }
  const std::string text = table.text();
  return style.width == 0 || columns(text.substr(0, text.find('\n'))) <= style.width ? text : list;
}

std::string legend_text(std::span<const CaseRecord> records, const ConsoleStyle& style) {
  std::vector<CaseRecord> shown;
  std::copy_if(records.begin(), records.end(), std::back_inserter(shown),
               [&](const CaseRecord& record) { return !style.quiet || went_wrong(record.verdict); });
  std::string text;
  for (const auto& [word, meaning] : legend_entries(shown)) {
    text += fitted(fmt::format("[{}] {}", visible(word), meaning), style.width, 4) + "\n";
  }
  return text.empty() ? "" : "\n" + paint(text, Tone::faint, style);
}

namespace {
constexpr std::size_t max_untried = 10;
}

std::vector<std::string> untried_lines(const RunContext& run) {
  std::vector<std::string> lines;
  for (const ImplementationFile& file : run.implementations.value_or(std::vector<ImplementationFile>{})) {
    const std::vector<std::string> own = file.untried.value_or(std::vector<std::string>{});
    lines.insert(lines.end(), own.begin(), own.end());
  }
  return lines;
}

std::string verdict_text(std::span<const CaseRecord> records, const Ending& ending, const ConsoleStyle& style) {
  const Totals totals = totals_of(records);
  const Verdict overall = worst_of(records);
  const std::string word = verdict_word_of_run(records, ending.complete);
  const Tone tone = word == "PASS" ? Tone::good : overall == Verdict::pass ? Tone::doubtful : tone_of(overall);
  const std::string rest =
      fmt::format("{} of {} cases in {} (check {}, time {})", counts_text(totals), totals.cases,
                  format_duration(ending.seconds), format_duration(totals.check_s), format_duration(totals.time_s));
  constexpr int indent = 9;
  const std::string unreliable = unreliable_text(records);
  const bool part = word == "PASS" && !ending.untried.empty();
  const std::string_view correct = part ? " (part)" : word == "PASS" && !unreliable.empty() ? " (correct)" : "";
  std::string text = fmt::format("VERDICT  {}{}  {}\n", paint(word, tone, style), correct,
                                 fitted(rest, style.width, indent + columns(word) + columns(correct) + 2));
  if (!unreliable.empty()) text += std::string(indent, ' ') + fitted(unreliable, style.width, indent) + "\n";
  for (std::size_t i = 0; i < std::min(ending.untried.size(), max_untried); ++i)
    text += fmt::format("untried  {}\n", fitted(visible(ending.untried[i]), style.width, indent));
  if (ending.untried.size() > max_untried)
    text += fmt::format("         and {} more ops, in the report\n", ending.untried.size() - max_untried);
  if (totals.count(Verdict::unverified) > 0) {
    text += paint(fitted("NOTHING WAS VERIFIED: --check off; these numbers are not results and are not in `benchmarks`",
                         style.width, 0) +
                      "\n",
                  Tone::doubtful, style);
  }
  if (!ending.page_path.empty()) text += fmt::format("page     {}\n", visible(ending.page_path));
  if (!ending.report_path.empty()) text += fmt::format("report   {}\n", visible(ending.report_path));
  if (!ending.resume.empty()) text += fmt::format("resume   {}\n", visible(ending.resume));
  const std::string code = fmt::format("exit {}   ", ending.exit_code);
  text += code + fitted(ending.explanation, style.width, columns(code)) + "\n";
  return text;
}

std::string scaling_text(std::span<const CaseRecord> records, const ConsoleStyle& style, const RowLayout& layout) {
  TextTable table({{"case"},
                   {"rate", Align::right},
                   {"efficiency", Align::right},
                   {"exposed", Align::right},
                   {"slowest", Align::right}});
  bool any = false;
  for (const CaseRecord& record : records) {
    // A collective alone has no efficiency and no work to hide behind.
    if (record.verdict != Verdict::pass || !record.derived.ranks || record.derived.collective) continue;
    if (record.c.has_mode("virtual")) continue;
    const bool needs_id = style.verbosity > 0 || layout.alike.contains(record.key());
    table.add({needs_id ? record.key() : row_name(record, layout), rate_cell(record, layout),
               efficiency_cell(record, records), exposed_cell(record),
               fmt::format("+{:.1f}%", 100.0 * record.derived.ranks->straggler)});
    any = true;
  }
  if (!any) return "";
  constexpr int usual_width = 92;
  return wrap(
             "Scaling. Each rank has the work of one rank alone; in steps named strong, shared, stages and sequences, "
             "and with tp, pp or cp, a part of it. Efficiency: rate per processor or SM relative to one rank, if that "
             "ran too; exposed: communication that computing does not hide; slowest: how late the last rank is. "
             "Unknown: the timings are too uncertain to tell.",
             width_up_to(usual_width, style), 0) +
         "\n" + table.text(style) + "\n";
}

std::string links_text(std::span<const CaseRecord> records, const ConsoleStyle& style,
                       std::span<const RankPlace> places) {
  constexpr int usual_width = 92;
  constexpr std::size_t max_parts = 8;
  std::string text;
  const auto say = [&](const std::string& line, int indent) {
    text += std::string(static_cast<std::size_t>(indent), ' ') + fitted(line, style.width, indent + 2) + "\n";
  };
  for (const LinkMap& map : link_maps(records)) {
    const auto slowest = std::max_element(map.links.begin(), map.links.end(),
                                          [](const Link& a, const Link& b) { return a.median_ns < b.median_ns; });
    const auto time_and_rate = [&](double ns) {
      return fmt::format("{} ({} each way)", format_time_ns(ns), format_quantity(map.rate(ns), "B/s"));
    };
    say(visible(map.name), 0);
    say(fmt::format("{} links, the median {}, the slowest {}, between ranks {} and {}", map.links.size(),
                    time_and_rate(map.middle_ns), time_and_rate(slowest->median_ns),
                    visible(rank_text(slowest->a, places)), visible(rank_text(slowest->b, places))),
        2);
    const std::vector<LatePart> late = late_parts(map, places);
    for (std::size_t i = 0; i < std::min(late.size(), max_parts); ++i) {
      say(fmt::format("{}: {:.1f}% behind, in {} of {} rounds", visible(late[i].name), 100.0 * late[i].lateness.late,
                      late[i].lateness.rounds_late, late[i].lateness.rounds),
          2);
    }
    if (late.size() > max_parts) say(fmt::format("and {} more, in the report", late.size() - max_parts), 2);
    if (late.empty()) say("none is certainly behind", 2);
    const auto unreliable = std::ranges::count_if(map.links, [](const Link& l) { return l.lateness.unreliable; });
    if (unreliable > 0) say(fmt::format("{} with timings too uncertain to tell", unreliable), 2);
  }
  if (text.empty()) return "";
  return wrap(
             "Links. Pairs of ranks exchange a message, all pairs of a round at once. Ranks whose links are over 5% "
             "behind the median one in most rounds are named, and single links of other ranks.",
             width_up_to(usual_width, style), 0) +
         "\n" + text + "\n";
}

}  // namespace gpubench
