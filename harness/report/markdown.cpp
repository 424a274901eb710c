#include "harness/report/markdown.h"

#include <fmt/format.h>

#include "harness/core/backend.h"
#include "harness/report/case_order.h"
#include "harness/report/console.h"
#include "harness/report/device_text.h"
#include "harness/report/escape.h"
#include "harness/report/quantity.h"
#include "harness/report/reliability_text.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

// One text must not take the room of all other rows.
constexpr std::size_t most_cell_bytes = 2000;

std::string cell(std::string_view text) { return markdown_cell(shortened(text, most_cell_bytes)); }

std::string head_of(const Report& report) {
  const RunContext& run = report.run;
  const Totals totals = totals_of(report.cases);
  std::string text =
      fmt::format("### gpubench: {}\n\n{} of {} cases{}\n\n",
                  cell(verdict_with_reliability(verdict_word_of_run(report.cases, run.complete), report.cases)),
                  cell(counts_text(totals)), totals.cases, run.complete ? "" : "; interrupted, this report is partial");
  for (const DeviceInfo& device : run.devices) {
    const std::string libraries = libraries_text(device);
    text += fmt::format("- {}, {}{}{}\n", cell(device.name), units_text(device), libraries.empty() ? "" : ", ",
                        cell(libraries));
    if (const std::string limited = cpu_isa_text(device); !limited.empty())
      text += fmt::format("- {}\n", cell(limited));
  }
  text +=
      fmt::format("- gpubench {}, tier {}, check {}, seed {}, on {} at {}\n", cell(run.tool_version), cell(run.tier),
                  cell(run.check), run.seed, cell(report.host.host_name), cell(iso_time(run.started_at)));
  if (!run.injected.empty()) text += fmt::format("- a fault was injected on purpose: {}\n", cell(run.injected));
  if (!report.cases.empty())
    text += "\n| verdict | rate | time | ±95% | err/bound | case |\n| --- | ---: | ---: | ---: | ---: | --- |\n";
  return text;
}

std::string row_of(const CaseRecord& record) {
  const Summary& s = record.summary;
  const bool timed = s.rounds > 0 && s.median_ns > 0.0;
  std::string row = fmt::format("| {} | {} | {} | {} | {} | {}", verdict_word(record.verdict),
                                timed ? cell(rate_text_of(record)) : "-", timed ? format_time_ns(s.median_ns) : "-",
                                timed ? cell(format_interval(s.median_ns, s.ci95_low_ns, s.ci95_high_ns)) : "-",
                                error_text(record.parity), cell(record.id));
  if (record.verdict != Verdict::pass && !record.reason.empty()) row += "<br>" + cell(record.reason);
  if (went_wrong(record.verdict) && !record.rerun.empty())
    row += fmt::format("<br><code>{}</code>", cell(record.rerun));
  return row + " |\n";
}

}  // namespace

std::string with_rows(std::string head, std::size_t count, const std::function<std::string(std::size_t)>& row,
                      std::size_t most_bytes) {
  constexpr std::size_t spare = 200;  // for the line that counts what is left out
  if (head.size() > most_bytes) {
    const std::size_t end = most_bytes == 0 ? std::string::npos : head.rfind('\n', most_bytes - 1);
    return head.substr(0, end == std::string::npos ? 0 : end + 1);
  }
  std::string text = std::move(head);
  std::size_t rows = 0;
  for (; rows < count; ++rows) {
    const std::string next = row(rows);
    if (text.size() + next.size() + spare > most_bytes) break;
    text += next;
  }
  const std::string rest = rows < count ? fmt::format("\n{} more cases are left out here.\n", count - rows) : "";
  return text.size() + rest.size() <= most_bytes ? text + rest : text;
}

std::string markdown_text(const Report& report, std::size_t limit_bytes) {
  const std::vector<const CaseRecord*> order = worst_first(report.cases);
  return with_rows(
      head_of(report), order.size(), [&](std::size_t i) { return row_of(*order[i]); }, limit_bytes);
}

}  // namespace gpubench
