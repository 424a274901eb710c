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
#include "harness/report/record_text.h"

namespace gpubench::page {
namespace {

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
    if (const std::string_view meaning = meaning_of_flag(flag); !meaning.empty()) add_word(html, flag, meaning);
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
