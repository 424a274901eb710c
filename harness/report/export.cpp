#include "harness/report/export.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "harness/core/record.h"
#include "harness/core/text/text_table.h"
#include "harness/core/text/visible_text.h"
#include "harness/measure/statistics.h"
#include "harness/report/console.h"
#include "harness/report/json.h"
#include "harness/report/record_members.h"

namespace gpubench {
namespace {

double finite(double value, std::string_view what, const CaseRecord& record) {
  if (std::isfinite(value)) return value;
  throw ExportError(
      fmt::format("{}: {} is {}, which the formats of export cannot represent", record.key(), what, value));
}

void require_finite_times(const CaseRecord& record) {
  finite(record.summary.median_ns, "the median", record);
  for (const RoundRecord& round : record.rounds) {
    if (!round.valid) continue;
    for (const double ns : round.times.device_ns) finite(ns, "a sample", record);
    for (const double ns : round.times.wall_ns) finite(ns, "a sample", record);
  }
}

Json gbench(const Report& report, bool summary) {
  for (const CaseRecord& record : report.cases) {
    if (record.verdict == Verdict::pass) require_finite_times(record);
  }
  Json entries = Json::array();
  for (Json& entry : benchmarks_json(report.cases)) {
    if (!summary || entry["run_type"] == "aggregate") entries.push_back(std::move(entry));
  }
  return {{"context", google_context_json(report)}, {"benchmarks", std::move(entries)}};
}

// Lower and upper bound of a time swap in its rate.
Json bmf(const Report& report) {
  Json cases = Json::object();
  for (const CaseRecord& record : report.cases) {
    if (record.verdict != Verdict::pass) continue;
    const Summary& s = record.summary;
    const double work = finite(record.derived.headline, "the headline rate", record) * s.median_ns;
    cases[record.key()] = {{"latency",
                            {{"value", finite(s.median_ns, "the median", record)},
                             {"lower_value", finite(s.ci95_low_ns, "the interval", record)},
                             {"upper_value", finite(s.ci95_high_ns, "the interval", record)}}},
                           {"throughput",
                            {{"value", record.derived.headline},
                             {"lower_value", finite(work / s.ci95_high_ns, "the interval of the rate", record)},
                             {"upper_value", finite(work / s.ci95_low_ns, "the interval of the rate", record)}}}};
  }
  return cases;
}

// The larger distance of the 95% interval from the median, as the tool's charts show it.
std::string range_of(const CaseRecord& record, double value) {
  const Summary& s = record.summary;
  const double share = std::max(s.ci95_high_ns - s.median_ns, s.median_ns - s.ci95_low_ns) / s.median_ns;
  return fmt::format("± {:.3g}", finite(share * value, "the interval", record));
}

Json action(const Report& report, bool times) {
  Json list = Json::array();
  for (const CaseRecord& record : report.cases) {
    if (record.verdict != Verdict::pass) continue;
    const double value = finite(times ? record.summary.median_ns : record.derived.headline, "the value", record);
    list.push_back(
        {{"name", record.key()},
         {"unit", times ? "ns" : record.derived.headline_unit},
         {"value", value},
         {"range", range_of(record, value)},
         {"extra", fmt::format("{} rounds, {} samples, error {:.3g} of its bound{}", record.summary.rounds,
                               record.summary.samples, finite(record.parity.error_over_bound, "the error", record),
                               timing_unreliable(record.summary) ? ", unreliable timing" : "")}});
  }
  return list;
}

std::string label(std::string_view key, std::string_view value) {
  return fmt::format("{}=\"{}\"", key, prometheus_label(value));
}

std::string device_of(const Report& report) {
  return report.run.devices.empty() ? "" : report.run.devices.front().name;
}

std::string family(std::string_view metric, std::string_view help) {
  return fmt::format("# HELP {} {}\n# TYPE {} gauge\n", metric, help, metric);
}

// One sample per passing case.
std::string by_case(const Report& report, std::string_view metric, std::string_view help,
                    const std::function<double(const CaseRecord&)>& value, bool with_item = false) {
  std::string samples;
  for (const CaseRecord& r : report.cases) {
    if (r.verdict != Verdict::pass) continue;
    std::string labels = label("case", r.key()) + "," + label("suite", r.c.suite) + "," + label("recipe", r.c.recipe);
    if (with_item) labels += "," + label("item", r.derived.item);
    samples += fmt::format("{}{{{}}} {}\n", metric, labels, finite_text(value(r), metric, r));
  }
  return samples.empty() ? "" : family(metric, help) + samples;
}

}  // namespace

std::string exported(const Report& report, ExportFormat format, Detail detail) {
  switch (format) {
    case ExportFormat::report: return report_json_text(report, detail);
    case ExportFormat::gbench: return dump(gbench(report, false), 1) + "\n";
    case ExportFormat::gbench_summary: return dump(gbench(report, true), 1) + "\n";
    case ExportFormat::bmf: return dump(bmf(report), 1) + "\n";
    case ExportFormat::action_smaller: return dump(action(report, true), 1) + "\n";
    case ExportFormat::action_bigger: return dump(action(report, false), 1) + "\n";
    case ExportFormat::csv: return exported_csv(report);
    case ExportFormat::csv_cases: return exported_csv_cases(report);
    case ExportFormat::prometheus: return exported_prometheus(report);
  }
  return "";
}

std::string finite_text(double value, std::string_view what, const CaseRecord& record) {
  return fmt::format("{}", finite(value, what, record));
}

std::string exported_prometheus(const Report& report) {
  std::string text = family("gpubench_cases", "Planned cases by verdict.");
  const Totals totals = totals_of(report.cases);
  for (const Verdict verdict : enum_values<Verdict>)
    text += fmt::format("gpubench_cases{{{}}} {}\n", label("verdict", name(verdict)), totals.count(verdict));
  text += family("gpubench_run_complete", "1 if the run came to its end, 0 if it was interrupted.");
  text += fmt::format("gpubench_run_complete {}\n", report.run.complete ? 1 : 0);
  text += family("gpubench_run_finished_time_seconds", "When the run ended, seconds since 1970.");
  text += fmt::format("gpubench_run_finished_time_seconds {}\n", static_cast<std::int64_t>(report.run.finished_at));
  text += family("gpubench_run_info", "Always 1; the labels say what ran.");
  text += fmt::format("gpubench_run_info{{{},{},{}}} 1\n", label("version", report.run.tool_version),
                      label("tier", report.run.tier), label("device", device_of(report)));
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

// RFC 4180. exported_csv(): a row per case and metric, for pivot tables. exported_csv_cases(): a row per case, to sort
// and filter.

namespace {

constexpr std::string_view names =
    "case,suite,workload,params,recipe,modes,ranks,label,tier,cache,status,reason,device";
constexpr std::string_view numbers =
    "rate,rate_unit,median_ns,ci95_low_ns,ci95_high_ns,min_ns,mean_ns,p10_ns,p50_ns,p90_ns,p99_ns,rounds,samples,"
    "flop_per_s,bytes_per_s,items_per_s,item,of_peak,of_best,energy_j,error_over_bound,flags";

struct Metric {
  const char* name;
  double value;
  std::string unit;
};

std::vector<Metric> metrics_of(const CaseRecord& r) {
  const Summary& s = r.summary;
  const Derived& d = r.derived;
  std::vector<Metric> metrics{{"median", s.median_ns, "ns"},
                              {"ci95_low", s.ci95_low_ns, "ns"},
                              {"ci95_high", s.ci95_high_ns, "ns"},
                              {"mad", s.mad_ns, "ns"},
                              {"min", s.min_ns, "ns"},
                              {"p10", s.p10_ns, "ns"},
                              {"p90", s.p90_ns, "ns"},
                              {"mean", s.mean_ns, "ns"},
                              {"round_sd", s.round_sd, "log"},
                              {"drift", s.drift, "log"},
                              {"rounds", static_cast<double>(s.rounds), "count"},
                              {"samples", static_cast<double>(s.samples), "count"},
                              {"unreliable", timing_unreliable(s) ? 1.0 : 0.0, "0 or 1"},
                              {"severe", static_cast<double>(s.severe), "count"},
                              {"headline", d.headline, d.headline_unit},
                              {"flop_per_s", d.flop_per_s, "FLOP/s"},
                              {"bytes_per_s", d.bytes_per_s, "B/s"},
                              {"items_per_s", d.items_per_s, d.item + "/s"},
                              {"error_over_bound", r.parity.error_over_bound, "ratio"}};
  if (d.energy_j) metrics.push_back({"energy", *d.energy_j, "J"});
  if (d.peak && d.peak->of_peak) metrics.push_back({"of_peak", *d.peak->of_peak, "ratio"});
  if (d.ranks) metrics.push_back({"straggler", d.ranks->straggler, "ratio"});
  return metrics;
}

// Without a trailing comma.
std::string names_of(const CaseRecord& r, const std::string& device) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_cell(r.key()), csv_cell(r.c.suite),
                     csv_cell(r.c.workload), csv_cell(to_string(r.c.dims)), csv_cell(r.c.recipe),
                     csv_cell(joined(r.c.modes, "/")), r.c.ranks, csv_cell(r.c.label), name(r.c.tier), name(r.c.cache),
                     name(r.verdict), csv_cell(r.reason), csv_cell(device));
}

// In the order of `numbers`; empty unless the case passed.
std::string numbers_of(const CaseRecord& r) {
  const std::string flags = csv_cell(joined(r.summary.flags, "; "));
  constexpr std::string_view before_flags = ",,,,,,,,,,,,,,,,,,,,,";
  if (r.verdict != Verdict::pass) return std::string(before_flags) + flags;
  const Summary& s = r.summary;
  const Derived& d = r.derived;
  const std::vector<double> samples = samples_per_run_ns(r);
  const auto told = [&r](std::optional<double> value, const char* what) {
    return value ? finite_text(*value, what, r) : std::string();
  };
  const auto share = [&d](std::optional<double> PeakShare::*which) {
    return d.peak ? (*d.peak).*which : std::optional<double>();
  };
  const auto p99 = samples.size() >= min_for_p99 ? std::optional(quantile(samples, 0.99)) : std::nullopt;
  const std::vector<std::string> cells{told(d.headline, "headline"),
                                       csv_cell(d.headline_unit),
                                       told(s.median_ns, "median"),
                                       told(s.ci95_low_ns, "ci95_low"),
                                       told(s.ci95_high_ns, "ci95_high"),
                                       told(s.min_ns, "min"),
                                       told(s.mean_ns, "mean"),
                                       told(s.p10_ns, "p10"),
                                       told(s.median_ns, "p50"),
                                       told(s.p90_ns, "p90"),
                                       told(p99, "p99"),
                                       fmt::format("{}", s.rounds),
                                       fmt::format("{}", s.samples),
                                       told(d.flop_per_s, "flop_per_s"),
                                       told(d.bytes_per_s, "bytes_per_s"),
                                       told(d.items_per_s, "items_per_s"),
                                       csv_cell(d.item),
                                       told(share(&PeakShare::of_peak), "of_peak"),
                                       told(share(&PeakShare::of_best), "of_best"),
                                       told(d.energy_j, "energy"),
                                       told(r.parity.error_over_bound, "error_over_bound"),
                                       flags};
  return joined(cells, ",");
}

}  // namespace

std::string exported_csv(const Report& report) {
  std::string text = fmt::format("{},metric,value,unit\r\n", names);
  for (const CaseRecord& r : report.cases) {
    const std::string row = names_of(r, device_of(report)) + ",";
    if (r.verdict != Verdict::pass) {
      text += row + ",,\r\n";
      continue;
    }
    for (const Metric& m : metrics_of(r))
      text += fmt::format("{}{},{},{}\r\n", row, m.name, finite_text(m.value, m.name, r), csv_cell(m.unit));
  }
  return text;
}

std::string exported_csv_cases(const Report& report) {
  std::string text = fmt::format("{},{}\r\n", names, numbers);
  for (const CaseRecord& r : report.cases)
    text += fmt::format("{},{}\r\n", names_of(r, device_of(report)), numbers_of(r));
  return text;
}

}  // namespace gpubench
