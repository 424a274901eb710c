// exported_csv(): RFC 4180, a row for each case and metric, so that any table program can pivot it; and
// exported_csv_cases(): a row for each case, for those who want to sort and filter.
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "harness/core/record.h"
#include "harness/measure/statistics.h"
#include "harness/report/console.h"
#include "harness/report/escape.h"
#include "harness/report/export.h"
#include "harness/report/text_table.h"

namespace gpubench {
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

std::string modes_of(const Case& c) {
  std::string text;
  for (const std::string& mode : c.modes) text += (text.empty() ? "" : "/") + mode;
  return text;
}

// What a case is, without the comma behind it.
std::string names_of(const CaseRecord& r, const std::string& device) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_cell(r.id), csv_cell(r.c.suite),
                     csv_cell(r.c.workload), csv_cell(to_string(r.c.dims)), csv_cell(r.c.recipe),
                     csv_cell(modes_of(r.c)), r.c.ranks, csv_cell(r.c.label), name(r.c.tier), name(r.c.cache),
                     name(r.verdict), csv_cell(r.reason), csv_cell(device));
}

std::string device_of(const Report& report) {
  return report.run.devices.empty() ? "" : report.run.devices.front().name;
}

// In the order of `numbers`; all empty unless the case passed.
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
  const auto p99 = samples.size() >= fewest_for_p99 ? std::optional(quantile(samples, 0.99)) : std::nullopt;
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
