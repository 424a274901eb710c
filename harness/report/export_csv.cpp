// exported_csv(): RFC 4180, a row for each case and metric, so that any table program can pivot it.
#include <fmt/format.h>

#include <vector>

#include "harness/core/reliability.h"
#include "harness/report/escape.h"
#include "harness/report/export.h"

namespace gpubench {
namespace {

constexpr std::string_view header =
    "case,suite,workload,params,recipe,modes,ranks,label,tier,cache,status,reason,device,metric,value,unit\r\n";

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

}  // namespace

std::string exported_csv(const Report& report) {
  std::string text(header);
  const std::string device = report.run.devices.empty() ? "" : report.run.devices.front().name;
  for (const CaseRecord& r : report.cases) {
    const std::string row = fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},", csv_cell(r.id), csv_cell(r.c.suite),
                                        csv_cell(r.c.workload), csv_cell(to_string(r.c.dims)), csv_cell(r.c.recipe),
                                        csv_cell(modes_of(r.c)), r.c.ranks, csv_cell(r.c.label), name(r.c.tier),
                                        name(r.c.cache), name(r.verdict), csv_cell(r.reason), csv_cell(device));
    if (r.verdict != Verdict::pass) {
      text += row + ",,\r\n";
      continue;
    }
    for (const Metric& m : metrics_of(r))
      text += fmt::format("{}{},{},{}\r\n", row, m.name, finite_text(m.value, m.name, r), csv_cell(m.unit));
  }
  return text;
}

}  // namespace gpubench
