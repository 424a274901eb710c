#include "harness/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/record.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/console.h"
#include "harness/report/record_text.h"
#include "harness/report/report_json.h"

namespace gpubench::page {
namespace {

constexpr Verdict shown[] = {Verdict::pass,       Verdict::fail,       Verdict::error,       Verdict::downgraded,
                             Verdict::not_proven, Verdict::unverified, Verdict::unsupported, Verdict::skipped};

struct Coverage {
  std::int64_t checks = 0, judged = 0, elements = 0, mutations = 0, rejected = 0;
  const CaseRecord* worst = nullptr;  // of passing cases
};

Coverage coverage_of(const Report& report) {
  Coverage all;
  for (const CaseRecord& record : report.cases) {
    const auto add = [&all](const auto& checked, int checks, int rejected) {
      add_count<std::int64_t>(all.checks, checks);
      add_count(all.judged, checked.judged);
      add_count(all.elements, checked.elements);
      add_count<std::int64_t>(all.mutations, checked.mutations);
      add_count<std::int64_t>(all.rejected, rejected);
    };
    for (const OpParity& op : record.parity.ops) add(op, 1, op.mutations_rejected);
    for (const PassedOps& sums : record.parity.passed.value_or(std::vector<PassedOps>{}))
      add(sums, sums.ops, sums.mutations);
    if (record.verdict != Verdict::pass || record.parity.ops.empty()) continue;
    if (all.worst == nullptr || record.parity.error_over_bound > all.worst->parity.error_over_bound)
      all.worst = &record;
  }
  return all;
}

std::string_view tone_of(const std::string& word) {
  if (word == "PASS") return "good";
  return word == "FAIL" || word == "ERROR" || word == "DOWNGRADED" || word == "NOT_PROVEN" ? "bad" : "doubtful";
}

void add_counts(Html& html, const Totals& totals) {
  const bool all_passed = totals.count(Verdict::pass) == totals.cases;
  if (!all_passed) html.raw("<ul class=\"counts\">");
  for (const Verdict verdict : shown) {
    const int count = totals.count(verdict);
    if (count == 0 || verdict == Verdict::pass) continue;
    html.raw(fmt::format("<li class=\"v-{0}\"><b>{1}</b> {2}</li>", name(verdict), format_count(count),
                         spaced(name(verdict))));
  }
  if (!all_passed) html.raw("</ul>\n");
  html.raw("<div class=\"shares\" aria-hidden=\"true\">");
  for (const Verdict verdict : shown) {
    if (totals.count(verdict) > 0)
      html.raw(fmt::format("<i class=\"v-{}\" style=\"flex-grow:{}\"></i>", name(verdict), totals.count(verdict)));
  }
  html.raw("</div>\n");
}

void add_fact(Html& html, std::string_view title, std::string_view value, std::string_view more) {
  html.raw("<div>").element("dt", title).raw("<dd>").element("b", value).raw(" ").id(more).raw("</dd></div>\n");
}

void add_facts(Html& html, const Report& report, const Totals& totals) {
  const Coverage all = coverage_of(report);
  html.raw("<dl class=\"facts\">\n");
  if (all.elements > 0) {
    const double share = static_cast<double>(all.judged) / static_cast<double>(all.elements);
    add_fact(html, "Elements judged", format_count(all.judged),
             fmt::format("against an fp64 textbook: {} of all, in {} of ops", percent_text(share),
                         format_count(all.checks) + (all.checks == 1 ? " check" : " checks")));
  }
  if (all.worst != nullptr)
    add_fact(html, "Worst error that passed", error_text(all.worst->parity), "of its bound, in " + all.worst->id);
  if (all.mutations > 0)
    add_fact(html, "Corrupted outputs caught",
             fmt::format("{} of {}", format_count(all.rejected), format_count(all.mutations)),
             "injected, to show that each check can fail");
  const double seconds = std::difftime(report.run.finished_at, report.run.started_at);
  const bool parts = totals.check_s > 0.0 && totals.time_s > 0.0;
  add_fact(html, "Took", seconds > 0.0 ? format_duration(seconds) : "under 1 s",
           parts ? fmt::format("of which checking {}, timing {}", format_duration(totals.check_s),
                               format_duration(totals.time_s))
                 : "");
  html.raw("</dl>\n");
}

// Total time of all calls in a list of shapes.
void add_calls(Html& html, const Report& report) {
  const std::vector<CallsTotal> totals = calls_totals(report.cases);
  if (totals.empty()) return;
  html.raw("<dl class=\"facts\">\n");
  for (const CallsTotal& total : totals)
    add_fact(html, fmt::format("All calls, {}, {}", total.suite, total.recipe), time_of(total), explanation_of(total));
  html.raw("</dl>\n");
  if (!report.run.shapes) return;
  html.element(
          "p",
          fmt::format("Of {} ({}): each shape's calls times its median, one after another; 95% intervals added up.",
                      report.run.shapes->file, report.run.shapes->format),
          "class=\"note\"")
      .raw("\n");
  for (const ShapesExcept& except : report.run.shapes->excepts)
    html.element("p", text_of(except), "class=\"note\"").raw("\n");
}

void add_warnings(Html& html, const Report& report, const Totals& totals) {
  const auto warn = [&](const std::string& text) { html.element("p", text, "class=\"warning\""); };
  if (!report.run.complete) warn("The run was interrupted: cases that it did not reach are skipped.");
  if (totals.count(Verdict::unverified) > 0)
    warn("Nothing was verified (--check off): these numbers are not results, and none of them is in a chart.");
  if (const std::vector<std::string> untried = untried_lines(report.run); !untried.empty())
    warn("Untried calls that the implementation takes: " + joined(untried, "; "));
  if (!report.run.injected.empty())
    warn(fmt::format("A fault was injected: {}. This report says nothing about the device.", report.run.injected));
}

Entries failures_of(std::span<const Side> sides) {
  Entries failures;
  for (const Side& side : sides) {
    for (const CaseRecord& record : side.report->cases) {
      if (went_wrong(record.verdict)) failures.push_back({&side, &record});
    }
  }
  return failures;
}

std::string headline(const Totals& totals) {
  return fmt::format("{} of {} passed", format_count(totals.count(Verdict::pass)),
                     counted(static_cast<std::size_t>(totals.cases), "case"));
}

constexpr std::size_t max_failures_named = 5;
constexpr std::size_t max_failures_in_full = 100;
constexpr std::size_t max_reason_bytes = 100;

}  // namespace

void add_verdict(Html& html, std::span<const Side> sides) {
  for (const Side& side : sides) {
    const Report& report = *side.report;
    const Totals totals = totals_of(report.cases);
    const std::string word = verdict_word_of_run(report.cases, report.run.complete);
    html.raw(fmt::format("<div class=\"verdict {}\">\n", tone_of(word)));
    if (!side.letter.empty()) html.element("h2", side.name);
    html.raw("<p class=\"word\">").element("b", spaced(word)).raw(" ").element("span", headline(totals));
    if (const std::string unreliable = unreliable_text(report.cases); !unreliable.empty())
      html.raw(" ").element("span", unreliable, "class=\"doubt\"");
    html.raw("</p>\n");
    add_counts(html, totals);
    add_warnings(html, report, totals);
    html.raw("</div>\n");
  }
}

void add_coverage(Html& html, const Material& material) {
  for (const Side& side : material.sides) {
    if (!side.letter.empty()) html.element("h3", side.name);
    add_facts(html, *side.report, totals_of(side.report->cases));
    add_calls(html, *side.report);
  }
}

void add_first_failures(Html& html, std::span<const Side> sides) {
  const Entries all = failures_of(sides);
  const std::span<const Entry> failures(all);
  html.raw("<h2>Failed cases</h2>\n");
  if (failures.empty()) {
    html.raw("<p>Nothing failed.</p>\n");
    return;
  }
  html.raw("<ul>\n");
  for (const Entry& failure : failures.first(std::min(failures.size(), max_failures_named))) {
    html.raw("<li>").element("b", spaced(verdict_word(failure.record->verdict)), "class=\"tag\"").raw(" ");
    if (!failure.side->letter.empty()) html.text(failure.side->letter).raw(" ");
    html.raw("<code>").id(failure.record->key()).raw("</code> ");
    html.element("span", shortened(failure.record->reason, max_reason_bytes)).raw("</li>\n");
  }
  html.raw("</ul>\n");
  if (failures.size() > max_failures_named)
    html.raw(fmt::format("<p><a href=\"#checks\">and {} more</a></p>\n", failures.size() - max_failures_named));
}

namespace {

// Bands of rows by bands of columns; darker for more wrong elements.
void add_picture(Html& html, const WrongPlaces& places) {
  constexpr int cell = 8;
  constexpr std::int64_t max_bands = 32;  // reports are untrusted
  if (places.column_bands > max_bands || places.counts.size() > max_bands * max_bands) return;
  const auto columns = static_cast<std::size_t>(places.column_bands);
  const std::size_t rows = places.counts.size() / columns;
  const std::int64_t most = *std::ranges::max_element(places.counts);
  html.raw(
      fmt::format("<figure class=\"places\"><svg role=\"img\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
                  "{1}\"><rect width=\"{0}\" height=\"{1}\" fill=\"#8883\"/>",
                  columns * cell, rows * cell));
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::int64_t count = places.counts[row * columns + column];
      if (count == 0) continue;
      const double share =
          0.3 + 0.7 * static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(1, most));
      html.raw(
          fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#d55e00\" "
                      "fill-opacity=\"{:.2f}\"><title>{}</title></rect>",
                      column * cell, row * cell, cell, cell, share, count));
    }
  }
  html.raw("</svg>").element("figcaption", fmt::format("Wrong elements of {}, {} rows by {} columns (the last axis)",
                                                       places.tensor, places.rows, places.columns));
  html.raw("</figure>\n");
}

void add_places(Html& html, const Parity& parity) {
  for (const OpParity& op : parity.ops) {
    if (op.verdict != Verdict::fail || !op.places) continue;
    return add_picture(html, *op.places);
  }
}

}  // namespace

void add_failures(Html& html, const Material& material) {
  const Entries all = failures_of(material.sides);
  const std::span<const Entry> failures(all);
  for (const auto& [side, record] : failures.first(std::min(failures.size(), max_failures_in_full))) {
    html.raw("<article class=\"failure\">\n<h4>").element("b", spaced(verdict_word(record->verdict)), "class=\"tag\"");
    html.raw(" <code>").id(record->key()).raw("</code></h4>\n<dl>\n");
    if (!side->letter.empty()) html.element("dt", "report").element("dd", side->name);
    for (const auto& [title, text] : failure_facts(*record)) {
      html.element("dt", title).raw("<dd>");
      if (title == "rerun") {
        html.element("code", text, "class=\"rerun\"");
      } else {
        html.text(text);
      }
      html.raw("</dd>\n");
    }
    html.raw("</dl>\n");
    add_places(html, record->parity);
    html.raw("</article>\n");
  }
  if (failures.size() > max_failures_in_full)
    html.element("p", fmt::format("{} more are in the table of all cases.", failures.size() - max_failures_in_full),
                 "class=\"note\"");
}

}  // namespace gpubench::page
