// Cases made up for tests of the page: only what a figure reads, with figures that are easy to work out by hand.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "harness/page/report_page.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench::page {

/// A passing case whose one run takes 1 ms: 10 rounds of 4 samples of 2 runs, all alike, the 95% interval +-10%.
inline CaseRecord made_case(const std::string& workload, Dims dims, const std::string& recipe = "f32",
                            const std::string& suite = "gemm") {
  CaseRecord r;
  r.c.suite = suite;
  r.c.workload = workload;
  r.c.dims = std::move(dims);
  r.c.recipe = recipe;
  r.id = r.c.id();
  r.verdict = Verdict::pass;
  r.batch = 2;
  r.copies = 1;
  RoundRecord round;
  round.times.device_ns = {2e6, 2e6, 2e6, 2e6};
  round.times.wall_ns = round.times.device_ns;
  r.rounds.assign(10, round);
  r.summary.rounds = 10;
  r.summary.samples = 40;
  r.summary.median_ns = r.summary.p10_ns = r.summary.p90_ns = 1e6;
  r.summary.ci95_low_ns = 0.9e6;
  r.summary.ci95_high_ns = 1.1e6;
  OpParity op;
  op.label = op.kind = "gemm";
  op.phase = "check";
  op.verdict = Verdict::pass;
  op.error_over_bound = 0.25;
  op.judged = 100;
  op.elements = 400;
  op.mutations = op.mutations_rejected = 3;
  r.parity.ops = {op};
  r.parity.error_over_bound = 0.25;
  r.parity.worst_op = "gemm";
  return r;
}

/// `flop` and `bytes` of a run, which takes 1 ms; the headline in FLOP/s, B/s or items.
inline CaseRecord with_rate(CaseRecord r, double flop, double bytes, const std::string& unit = "FLOP/s",
                            double items = 0.0) {
  Derived& d = r.derived;
  d.flop = flop;
  d.bytes = bytes;
  d.flop_per_s = flop * 1e3;
  d.bytes_per_s = bytes * 1e3;
  d.items_per_s = items * 1e3;
  d.item = unit.substr(0, unit.find('/'));
  d.headline = unit == "FLOP/s" ? d.flop_per_s : unit == "B/s" ? d.bytes_per_s : d.items_per_s;
  d.headline_unit = unit;
  return r;
}

/// A square matrix product of size n.
inline CaseRecord made_gemm(std::int64_t n, const std::string& recipe = "f32") {
  const auto size = static_cast<double>(n);
  return with_rate(made_case("matmul", {{"m", n}, {"n", n}, {"k", n}}, recipe), 2.0 * size * size * size,
                   12.0 * size * size);
}

inline CaseRecord with_verdict(CaseRecord r, Verdict verdict, const std::string& reason) {
  r.verdict = verdict;
  r.reason = reason;
  r.rerun = "gpubench run --filter '^" + r.id + "$'";
  for (OpParity& op : r.parity.ops) op.verdict = verdict;
  return r;
}

inline Report made_report(std::vector<CaseRecord> cases, const std::string& kind = "cuda") {
  Report report;
  report.host.host_name = "a-host";
  report.host.num_cpus = 8;
  report.run.tool_version = "0.1.0";
  report.run.tier = "standard";
  report.run.check = "sample";
  report.run.seed = 42;
  report.run.started_at = 1795228459;  // 2026-11-21T02:34:19Z
  report.run.finished_at = 1795228519;
  report.run.complete = true;
  report.run.devices = {{kind, "A Device", 4, 80'000'000'000, 79'000'000'000, 50'000'000, {}, {{"cuBLASLt", "13.1"}}}};
  report.cases = std::move(cases);
  return report;
}

/// The sections of the page.
inline std::vector<Section> drawn_sections(const std::vector<Report>& reports, const PageOptions& options = {}) {
  std::vector<Section> sections = report_sections(reports, options);
  draw(sections, chart::Placement::page);
  return sections;
}

/// The part of that section with figures or a notice, or of that title; an empty one where the page has none.
inline SectionPart part_of(const std::vector<Report>& reports, const std::string& key, const std::string& title = "",
                           const PageOptions& options = {}) {
  for (Section& section : drawn_sections(reports, options)) {
    for (SectionPart& part : section.parts) {
      const bool tells = !part.figures.empty() || !part.notice.empty();
      if (section.key == key && (title.empty() ? tells : part.title == title)) return part;
    }
  }
  return {};
}
inline SectionPart part_of(const Report& report, const std::string& key, const std::string& title = "",
                           const PageOptions& options = {}) {
  return part_of(std::vector<Report>{report}, key, title, options);
}

inline const chart::PlotChart& plot(const Figure& figure) { return std::get<chart::PlotChart>(figure.chart); }

/// The column of that title.
inline std::vector<std::string> column_of(const DataTable& table, const std::string& title) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].title != title) continue;
    for (const std::vector<std::string>& row : table.rows) cells.push_back(row.at(i));
  }
  return cells;
}

}  // namespace gpubench::page
