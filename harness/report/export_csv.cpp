// exported_csv(): RFC 4180, a row for each case and metric, so that any table program can pivot it.
#include <fmt/format.h>

#include <vector>

#include "harness/report/export.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr std::string_view header =
    "case,suite,workload,params,recipe,modes,ranks,label,tier,cache,status,reason,device,metric,value,unit\r\n";

// Text of a cell, on one line. Table programs take a cell that starts with one of these for a formula and may run it:
// an apostrophe before it says that it is text (OWASP, "CSV Injection"); so too before an apostrophe that was there.
std::string cell(std::string_view text) {
  constexpr std::string_view leads = "=+-@'\t\r";
  const std::string shown = visible(text);
  const bool formula = !shown.empty() && leads.find(shown.front()) != std::string_view::npos;
  std::string quoted = formula ? "'" : "";
  for (const char c : shown) quoted += c == '"' ? "\"\"" : std::string(1, c);
  const bool plain = quoted.find_first_of(",\"") == std::string::npos;
  return plain && !formula ? quoted : "\"" + quoted + "\"";
}

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
    const std::string row =
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},", cell(r.id), cell(r.c.suite), cell(r.c.workload),
                    cell(to_string(r.c.dims)), cell(r.c.recipe), cell(modes_of(r.c)), r.c.ranks, cell(r.c.label),
                    name(r.c.tier), name(r.c.cache), name(r.verdict), cell(r.reason), cell(device));
    if (r.verdict != Verdict::pass) {
      text += row + ",,\r\n";
      continue;
    }
    for (const Metric& m : metrics_of(r))
      text += fmt::format("{}{},{},{}\r\n", row, m.name, finite_text(m.value, m.name, r), cell(m.unit));
  }
  return text;
}

}  // namespace gpubench
