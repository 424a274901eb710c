// Cases for tests of the page: the members that figures read, with numbers that are easy to check by hand.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "harness/page/report_page.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench::page {

/// A passing case of 1 ms a run: 10 equal rounds of 4 samples of 2 runs; 95% interval +-10%.
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

/// `flop` and `bytes` per run of 1 ms; the headline in FLOP/s, B/s or items.
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

inline std::vector<Section> drawn_sections(const std::vector<Report>& reports, const PageOptions& options = {}) {
  std::vector<Section> sections = report_sections(reports, options);
  draw(sections, chart::Placement::page);
  return sections;
}

/// The part with that title, or the first with figures or a notice; empty if the page has none.
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

inline std::vector<std::string> column_of(const DataTable& table, const std::string& title) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].title != title) continue;
    for (const std::vector<std::string>& row : table.rows) cells.push_back(row.at(i));
  }
  return cells;
}

// A report as large as that of a real run: ids, rounds, checks and breakdowns.

namespace large {

constexpr const char* recipes[] = {"f32", "tf32", "bf16", "f16"};

inline void add_telemetry(CaseRecord& record, int seed) {
  for (std::size_t round = 0; round < record.rounds.size(); ++round) {
    RoundTelemetry t;
    t.readings = 10;
    t.window_s = 0.25;
    const double mhz = 1700.0 + (seed * 37 + static_cast<int>(round) * 11) % 200;
    t.sm_mhz = Spread{mhz - 20, mhz, mhz + 20};
    t.power_w = 500.0 + seed % 150;
    t.temperature_c = 50.0 + seed % 20;
    if (seed % 9 == 0) t.reasons = {"sw_power_cap"};
    record.rounds[round].telemetry = t;
  }
}

inline CaseRecord gemm(int i) {
  constexpr const char* workloads[] = {"linear_forward", "linear_backward_data", "linear_backward_weight", "matmul"};
  const std::int64_t size = 256 + 64 * (i / 16);
  CaseRecord record = made_case(workloads[i / 4 % 4], {{"m", size}, {"n", 3 * size}, {"k", size}}, recipes[i % 4]);
  record.c.label = fmt::format("gpt2-124m qkv, {} tokens", size);
  const auto s = static_cast<double>(size);
  return with_rate(std::move(record), 6 * s * s * s, 14 * s * s);
}

inline CaseRecord conv(int i) {
  const std::int64_t size = 7 + i / 12;
  Dims dims{{"n", 32}, {"h", size},   {"w", size}, {"c", 64},       {"k", 256},   {"r", 3},
            {"s", 3},  {"stride", 1}, {"pad", 1},  {"dilation", 1}, {"groups", 1}};
  constexpr const char* workloads[] = {"conv2d_forward", "conv2d_backward_data", "conv2d_backward_filter"};
  CaseRecord record = made_case(workloads[i / 4 % 3], std::move(dims), recipes[i % 4], "conv");
  record.c.label = fmt::format("resnet50 stage {}", i / 12);
  const auto s = static_cast<double>(size);
  return with_rate(std::move(record), 1e6 * s * s, 1e4 * s * s);
}

inline CaseRecord copy(int i) {
  const std::int64_t n = std::int64_t{1} << (10 + i / 4 % 20);
  CaseRecord record = made_case(i % 3 == 0 ? "copy" : "triad", {{"n", n}}, recipes[i % 4], "memory");
  return with_rate(std::move(record), static_cast<double>(n), 8.0 * static_cast<double>(n), "B/s");
}

inline CaseRecord collective(int i) {
  const std::int64_t bytes = std::int64_t{8} << (i / 4 % 24);
  CaseRecord record = made_case(i % 8 < 4 ? "all_reduce" : "all_gather", {{"bytes", bytes}}, "f32", "collectives");
  record.c.ranks = 2 << (i % 3);
  record = with_rate(std::move(record), 0.0, static_cast<double>(bytes), "B/s");
  record.derived.collective =
      CollectiveRates{static_cast<double>(bytes), 1e3 * static_cast<double>(bytes), 1.5e3 * static_cast<double>(bytes)};
  return record;
}

inline CaseRecord step(int i) {
  CaseRecord record =
      made_case("gpt2_train_step", {{"b", 8}, {"s", 1024}, {"layers", 1 + i}, {"h", 768}, {"heads", 12}},
                recipes[i % 4], "transformer");
  record = with_rate(std::move(record), 1e12, 1e10, "tokens/s", 8192);
  constexpr const char* kinds[] = {"gemm", "attention_forward", "layer_norm_forward", "gelu_forward", "adamw", "add"};
  for (int op = 0; op < 60; ++op) {
    const std::string kind = kinds[op % 6];
    record.derived.breakdown.push_back({fmt::format("block{}.{}", op / 6, kind), kind, "library", 1e4, 0.01, 1e9, 1e6});
    OpParity parity = record.parity.ops.front();
    parity.kind = kind;
    parity.label = record.derived.breakdown.back().label;
    record.parity.ops.push_back(parity);
  }
  record.derived.remainder = 0.4;
  return record;
}

inline CaseRecord record(int i) {
  switch (i % 10) {
    case 0:
    case 1:
    case 2:
    case 3: return gemm(i / 10 * 4 + i % 10);
    case 4:
    case 5:
    case 6: return conv(i / 10 * 3 + i % 10 - 4);
    case 7: return copy(i / 10);
    case 8: return collective(i / 10);
    default: return step(i / 10);
  }
}

}  // namespace large

/// Cases of six suites, with peaks and telemetry as on a GPU.
inline Report large_report(int cases) {
  std::vector<CaseRecord> records;
  for (int i = 0; i < cases; ++i) {
    CaseRecord record = large::record(i);
    record.c.modes = i >= 500 && record.c.suite != "transformer" ? std::vector<std::string>{"stream"} : record.c.modes;
    record.id = record.c.id();
    record.summary.ci95_high_ns += 1e3 * (i % 50);
    record.summary.p90_ns += 1e3 * (i % 37);
    record.derived.headline *= 1.0 + 0.01 * (i % 23);
    const bool bytes = record.derived.headline_unit == "B/s";
    const double rate = bytes ? record.derived.bytes_per_s : record.derived.flop_per_s;
    const double peak = bytes ? 4.8e15 : 9.89e17;
    record.derived.peak = PeakShare{
        bytes ? "memory" : record.c.recipe, rate, peak, "H200 SXM, datasheet", rate / peak, {}, {}, {}, "", ""};
    record.rerun = "gpubench run --filter '^" + record.id + "$' --tier standard --seed 42";
    large::add_telemetry(record, i);
    records.push_back(std::move(record));
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const CaseRecord& a, const CaseRecord& b) { return a.c.suite < b.c.suite; });
  return made_report(std::move(records));
}

}  // namespace gpubench::page
