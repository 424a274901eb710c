// add_all_cases(): see verdict.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/page/sections.h"
#include "harness/page/table_html.h"
#include "harness/page/verdict.h"
#include "harness/report/console.h"
#include "harness/report/quantity.h"
#include "harness/report/text_table.h"

namespace gpubench::page {
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
    // A time without a verdict is not told as one.
    const bool timed = ranked(r);
    std::vector<std::string> row{
        std::string(name(r.verdict)),
        r.id,
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

// Cases that did not run, by reason: forty of one recipe that the device lacks are one line.
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
      reason.example = r.id;
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

void add_all_cases(Html& html, std::span<const Side> sides) {
  add_words(html, sides);
  for (const Side& side : sides) {
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
