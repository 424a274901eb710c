#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "harness/core/record.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/text_table.h"
#include "harness/page/html.h"
#include "harness/page/sections.h"
#include "harness/report/console.h"

namespace gpubench::page {
namespace {

std::string_view meaning_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass: return "";
    case Verdict::fail: return "an element is outside the bound that its arithmetic allows";
    case Verdict::downgraded:
      return "computed in less than the declared precision: a probe read it, or the results are right within a lower "
             "bound only";
    case Verdict::not_proven: return "nothing was compared, or the check accepted a corrupted output";
    case Verdict::unverified: return "not checked (--check off): its numbers are not results";
    case Verdict::unsupported: return "the device or its libraries do not implement it; the reason is quoted";
    case Verdict::skipped: return "not run: it does not fit in memory, or the run was interrupted";
    case Verdict::error: return "it crashed or hung, or a library failed while it ran";
  }
  return "";
}

struct Meaning {
  std::string_view flag;
  std::string_view text;
};
// Flags of harness/measure, harness/hardware and harness/run; other flags are listed without a meaning.
constexpr Meaning flags[] = {
    {"no interval", "one round only: the time has no interval"},
    {"severe", "more than 5% of the samples are outliers, beyond ten standard deviations and 5% of the median"},
    {"drift",
     "the second half of the rounds is faster or slower than the first by more than 1%, and by more than chance"},
    {"stragglers", "the slowest rank is more than 5% behind the middle one, not always the same"},
    {"throttled", "the device lowered its clock in a round that counts: heat, or its power supply"},
    {"power capped", "the device lowered its clock to stay within its power limit"},
    {"clock off", "the clock was more than 1% off the one it is locked at"},
    {"clock unknown", "the clock should be locked, and the device did not report it"},
    {"invalid rounds", "rounds were discarded, each with its reason in the report"},
    {"memory errors", "the device counted uncorrected memory errors"},
    {"device errors", "the driver reported an error of the device (Xid) in a round"},
    {"above peak", "faster than the device can be: the time, the work or the published peak is wrong"},
    {"injected slowdown", "--inject-slowdown: the time is not the device's"},
    {"injected error", "--inject-error: the results are not the device's"},
};

std::string meaning_of_flag(const std::string& flag) {
  if (flag == "noisy")
    return fmt::format(
        "the 95% interval of the time is wider than ±{:.0f}%: an unreliable timing, shown but used for nothing else",
        100.0 * max_half_width);
  if (flag.starts_with("rank ") && flag.ends_with(" straggles"))
    return "this rank is more than 5% behind the middle one, nearly always";
  const auto* found =
      std::find_if(std::begin(flags), std::end(flags), [&](const Meaning& m) { return m.flag == flag; });
  return found == std::end(flags) ? "" : std::string(found->text);
}

void add_word(Html& html, std::string_view word, std::string_view meaning) {
  html.element("dt", word).element("dd", meaning).raw("\n");
}

}  // namespace

void add_legend(Html& html, std::span<const Side> sides) {
  std::set<Verdict> verdicts;
  std::set<std::string> flags_seen;
  for (const Side& side : sides) {
    for (const CaseRecord& record : side.report->cases) {
      verdicts.insert(record.verdict);
      flags_seen.insert(record.summary.flags.begin(), record.summary.flags.end());
    }
  }
  html.raw("<dl class=\"words\">\n");
  add_word(html, "case",
           "suite/workload/dimensions/precision[/modes]/xranks: gemm/matmul/m=512,n=512,k=512/bf16/x1 is a bf16 matrix "
           "product on one rank. The same id is the same work on every machine; modes are part of it unless they are "
           "the default.");
  add_word(html, "error / bound", "the largest error as a share of its bound: 0 is exact, above 1 fails");
  add_word(html, "~",
           "before a rate: its timing is unreliable and counts in no best, mean, roof or efficiency; charts draw it "
           "hollow");
  for (const Verdict verdict : verdicts) {
    if (verdict == Verdict::pass) continue;
    add_word(html, spaced(name(verdict)), meaning_of(verdict));
  }
  for (const std::string& flag : flags_seen) {
    if (const std::string meaning = meaning_of_flag(flag); !meaning.empty()) add_word(html, flag, meaning);
  }
  html.raw("</dl>\n");
}

namespace {

DataTable cases_table(const Side& side) {
  const Report& report = *side.report;
  DataTable table;
  table.title = fmt::format("All cases: {}", report.cases.size());
  table.columns = {{"verdict"},
                   {"case"},
                   {"of"},
                   {"rate", true},
                   {"time", true, "s"},
                   {"±95%", true},
                   {"of the ceiling", true},
                   {"error / bound", true},
                   {"flags"}};
  for (const CaseRecord& r : report.cases) {
    // Times are shown only with a passing verdict.
    const bool timed = ranked(r);
    std::vector<std::string> row{
        std::string(name(r.verdict)),
        r.key(),
        r.c.label,
        timed ? marked_rate(r) : "-",
        timed ? format_time_ns(r.summary.median_ns) : "-",
        timed ? format_interval(r.summary.median_ns, r.summary.ci95_low_ns, r.summary.ci95_high_ns) : "-"};
    const auto share = reliable(r) ? share_of_ceiling(r, side.ceilings) : std::nullopt;
    row.push_back(share ? fmt::format("{} of {}", percent_text(share->fraction), share->of) : "-");
    row.push_back(error_text(r.parity));
    row.push_back(joined(r.summary.flags));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Cases that did not run, a row per reason.
DataTable not_run_table(const Report& report) {
  struct Reason {
    Verdict verdict = Verdict::skipped;
    std::size_t cases = 0;
    std::string example;
  };
  std::map<std::string, Reason> reasons;
  std::size_t all = 0;
  for (const CaseRecord& r : report.cases) {
    if (r.verdict != Verdict::unsupported && r.verdict != Verdict::skipped) continue;
    Reason& reason = reasons[r.reason];
    if (reason.cases++ == 0) {
      reason.verdict = r.verdict;
      reason.example = r.key();
    }
    ++all;
  }
  DataTable table;
  table.title = fmt::format("Why {} did not run", counted(all, "case"));
  table.columns = {{"verdict"}, {"cases", true}, {"reason"}, {"for example"}};
  for (const auto& [text, reason] : reasons)
    table.rows.push_back({std::string(name(reason.verdict)), fmt::format("{}", reason.cases), text, reason.example});
  return table;
}

}  // namespace

void add_all_cases(Html& html, const Material& material) {
  add_legend(html, material.sides);
  for (const Side& side : material.sides) {
    const std::string whose = side.letter.empty() ? "" : " of " + side.name;
    DataTable not_run = not_run_table(*side.report);
    not_run.title += whose;
    if (!not_run.rows.empty()) add_folded_table(html, not_run, not_run.title);
    const DataTable cases = cases_table(side);
    if (!side.letter.empty()) html.element("h3", side.name).raw("\n");
    html.raw("<div class=\"cases\">\n");
    add_table(html, cases, cases.title + whose);
    html.raw("</div>\n");
  }
}

}  // namespace gpubench::page
