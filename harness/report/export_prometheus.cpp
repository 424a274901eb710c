// exported_prometheus(): Prometheus' text exposition format 0.0.4. No timestamps, which node_exporter's textfile
// collector refuses, and few labels, since each set of them is a time series of its own.
#include <fmt/format.h>

#include <functional>

#include "harness/core/reliability.h"
#include "harness/report/escape.h"
#include "harness/report/export.h"
#include "harness/report/record_members.h"

namespace gpubench {
namespace {

std::string label(std::string_view key, std::string_view value) {
  return fmt::format("{}=\"{}\"", key, prometheus_label(value));
}

std::string family(std::string_view metric, std::string_view help) {
  return fmt::format("# HELP {} {}\n# TYPE {} gauge\n", metric, help, metric);
}

// One sample for each case that passed.
std::string by_case(const Report& report, std::string_view metric, std::string_view help,
                    const std::function<double(const CaseRecord&)>& value, bool with_item = false) {
  std::string samples;
  for (const CaseRecord& r : report.cases) {
    if (r.verdict != Verdict::pass) continue;
    std::string labels = label("case", r.id) + "," + label("suite", r.c.suite) + "," + label("recipe", r.c.recipe);
    if (with_item) labels += "," + label("item", r.derived.item);
    samples += fmt::format("{}{{{}}} {}\n", metric, labels, finite_text(value(r), metric, r));
  }
  return samples.empty() ? "" : family(metric, help) + samples;
}

}  // namespace

std::string exported_prometheus(const Report& report) {
  std::string text = family("gpubench_cases", "Planned cases by verdict.");
  const Totals totals = totals_of(report.cases);
  for (const Verdict verdict : record_members::verdicts)
    text += fmt::format("gpubench_cases{{{}}} {}\n", label("verdict", name(verdict)), totals.count(verdict));
  text += family("gpubench_run_complete", "1 if the run came to its end, 0 if it was interrupted.");
  text += fmt::format("gpubench_run_complete {}\n", report.run.complete ? 1 : 0);
  text += family("gpubench_run_finished_time_seconds", "When the run ended, seconds since 1970.");
  text += fmt::format("gpubench_run_finished_time_seconds {}\n", static_cast<std::int64_t>(report.run.finished_at));
  text += family("gpubench_run_info", "Always 1; the labels say what ran.");
  text += fmt::format("gpubench_run_info{{{},{},{}}} 1\n", label("version", report.run.tool_version),
                      label("tier", report.run.tier),
                      label("device", report.run.devices.empty() ? "" : report.run.devices.front().name));
  text += by_case(report, "gpubench_case_time_seconds", "Median time of one run of the case.",
                  [](const CaseRecord& r) { return r.summary.median_ns * 1e-9; });
  text += by_case(report, "gpubench_case_time_low_seconds", "Lower end of the 95% interval of the time.",
                  [](const CaseRecord& r) { return r.summary.ci95_low_ns * 1e-9; });
  text += by_case(report, "gpubench_case_time_high_seconds", "Upper end of the 95% interval of the time.",
                  [](const CaseRecord& r) { return r.summary.ci95_high_ns * 1e-9; });
  text += by_case(report, "gpubench_case_time_unreliable",
                  "1 if the 95% interval is wider than +-25% of the time, or unknown.",
                  [](const CaseRecord& r) { return timing_unreliable(r.summary) ? 1.0 : 0.0; });
  text += by_case(report, "gpubench_case_flop_per_second", "Algorithmic FLOP by the median time.",
                  [](const CaseRecord& r) { return r.derived.flop_per_s; });
  text += by_case(report, "gpubench_case_bytes_per_second", "Compulsory bytes by the median time.",
                  [](const CaseRecord& r) { return r.derived.bytes_per_s; });
  text += by_case(
      report, "gpubench_case_items_per_second", "Items, such as tokens, by the median time.",
      [](const CaseRecord& r) { return r.derived.items_per_s; }, true);
  text += by_case(report, "gpubench_case_error_ratio", "Largest error over its bound; at most 1.",
                  [](const CaseRecord& r) { return r.parity.error_over_bound; });
  return text;
}

}  // namespace gpubench
