// Records whose members all differ from their defaults, so that a forgotten member shows; and a small consistent
// report, in which a test's change is the only error.
#pragma once

#include <limits>
#include <span>
#include <string>

#include "harness/core/record.h"
#include "harness/measure/statistics.h"
#include "harness/report/console.h"
#include "harness/report/report_json.h"

namespace gpubench {

inline OpParity sample_op(Verdict verdict) {
  OpParity op;
  op.label = "gemm.forward";
  op.kind = "gemm";
  op.phase = "recheck";
  op.implementation = "onednn:brg:avx512_core_amx_bf16";
  op.verdict = verdict;
  op.reason = verdict == Verdict::pass ? "" : "3 of 64 elements outside their bound, first at c[0, 17]";
  op.error_over_bound = verdict == Verdict::pass ? 0.25 : 3.5;
  op.judged = 64;
  op.elements = 4096;
  op.bad = verdict == Verdict::pass ? 0 : 3;
  op.worst = Worst{"c", {0, 17}, -1.84375, -1.8390312, 0.0012};
  op.projected = 4096;
  op.projected_fault = 0.25;
  op.places = WrongPlaces{"c", "all 3 are in [0-1, 17]", 8, 32, 2, {3, 0, 0, 0}};
  op.mutations = 4;
  op.mutations_rejected = 4;
  return op;
}

/// Two rounds of three intervals of two runs: medians 2 us and 4 us per run by the device's clock.
inline CaseRecord sample_record(Verdict verdict = Verdict::pass) {
  CaseRecord r;
  r.c.suite = "gemm";
  r.c.workload = "square";
  r.c.dims = {{"m", 64}, {"n", 32}, {"k", 16}};
  r.c.recipe = "bf16";
  r.c.modes = {"warm"};
  r.c.label = "a label";
  r.c.calls = 24.5;
  r.c.tier = Tier::standard;
  r.c.cache = CacheMode::warm;
  r.id = r.c.id();
  r.def_hash = "0123456789abcdef";
  r.verdict = verdict;
  r.reason = verdict == Verdict::pass ? "" : "gemm.forward: 3 of 64 elements outside their bound, first at c[0, 17]";
  r.implementation = "onednn:brg:avx512_core_amx_bf16";
  r.rewrites = std::vector<std::string>{"sum+norm = residual_norm_forward"};
  r.parity.ops = {sample_op(Verdict::pass), sample_op(verdict)};
  PlanArithmetic& plan = r.parity.arithmetic.emplace().emplace_back();
  plan.label = "gemm.forward";
  plan.kind = "gemm";
  plan.implementation = "onednn:brg:avx512_core_amx_bf16";
  plan.ops = 3;
  plan.unit = "Hopper, 8-bit, emptied every 128 products";
  plan.inputs = "exact";
  plan.products = "fused";
  plan.bits = 14;
  plan.rounding = "cut";
  plan.at_once = 32;
  plan.fraction = 13;
  plan.emptied = 128;
  plan.partial = "bf16";
  plan.store = "nearest even";
  plan.denormals = "flushed: a, output";
  plan.specials = "overflow saturates";
  plan.order = "32 at once, in order";
  plan.note = "a note";
  plan.verdict = verdict == Verdict::pass ? Verdict::pass : Verdict::downgraded;
  plan.reason = verdict == Verdict::pass ? "" : "partial sums in bf16, declared: 24 (f32)";
  r.parity.error_over_bound = r.parity.ops[1].error_over_bound;
  r.parity.worst_op = "gemm.forward";
  r.parity.coverage = "all 1 ops, sampled 1.6%";
  r.parity.seed = 9223372036854775807ULL;  // the limit of the tests' schema validator
  r.batch = 2;
  r.copies = 7;
  r.memory_bytes = 123456789;
  r.memory = {{"weights", 4096}, {"optimizer state", 8192}};
  r.rounds = {{{{4000, 3800, 4600}, {4100, 3900, 4700}}, true, ""},
              {{{8000, 7000, 9000}, {8100, 7100, 9100}}, false, "throttled"}};
  r.rounds[0].telemetry = RoundTelemetry{42,
                                         2.125,
                                         Spread{1700, 1755.5, 1980},
                                         Spread{3200, 3201, 3202},
                                         61,
                                         650.25,
                                         1300.5,
                                         3,
                                         17,
                                         0.125,
                                         {"sw_power_cap"},
                                         2,
                                         {"Xid 94 (contained ECC error)"}};
  r.summary = {2,   6, 3000.5, 2900.25,           3100.125, 10, 1900, 1950, 4400, 3033.3333333333335,
               0.1, 1, -0.02,  {"noisy", "drift"}};
  r.derived = {65536,    7168,     2.184e10,
               2.39e9,   1e6,      "tokens",
               2.184e10, "FLOP/s", {{"gemm.forward", "gemm", "onednn", 2500.5, 0.83, 65536, 7168}},
               0.17,     0.0025};
  r.derived.peak = PeakShare{"bf16", 2.184e10, 4e10,  "Made Up, sourced: a page",  0.546,
                             3e10,   0.728,    0.875, "gemm/square/m=128/bf16/x1", "above"};
  r.rounds[0].times.ranks = std::vector<RankTimes>{{{4000, 3700, 4600}}, {{3900, 3800, 4500}}};
  r.derived.collective = CollectiveRates{1048576, 2.5e9, 3.75e9};
  r.derived.ranks = RankSpread{8, 0.0625, 1, 0.75, 2500.5, 0.1875, 0.9375, std::vector{1, 0}};
  r.rerun = "gpubench run --filter '^gemm/square/m=64,n=32,k=16/bf16/warm/x1$' --tier standard --seed 42";
  r.plan_s = 0.0625;
  r.check_s = 0.125;
  r.time_s = 0.5;
  return r;
}

/// A case that did not run.
inline CaseRecord sample_without_run(Verdict verdict, std::string reason) {
  CaseRecord r;
  r.c.suite = "conv";
  r.c.workload = "forward";
  r.c.dims = {{"n", 1}};
  r.c.recipe = "f32";
  r.id = r.c.id();
  r.verdict = verdict;
  r.reason = std::move(reason);
  return r;
}

inline Report sample_report() {
  Report report;
  report.host = {
      "a-host",          "/usr/bin/gpubench", 2, 2000, true, {{"Data", 1, 32768, 1}, {"Unified", 2, 1048576, 2}},
      {0.5, 0.25, 0.125}};
  report.run.tool_version = "0.1.0";
  report.run.build = {{"compiler", "g++ 12.2.0"}, {"type", "Release"}};
  report.run.argv = {"--suite", "gemm"};
  report.run.suites = {"gemm"};
  report.run.seed = 42;
  report.run.tier = "smoke";
  report.run.invocation = "0123456789abcdef";
  report.run.preset = "gate";
  report.run.injected = "gemm=25%";
  report.run.locked_clock_mhz = 1755;
  report.run.check = "sample";
  report.run.arithmetic = {"tf32", "bf16_sums"};
  report.run.shapes = ShapesContext{"step.log", "ONEDNN_VERBOSE", {{"primitive reorder", 3.0, true}}};
  report.run.implementations = {{"my_gemm", "0123456789abcdef", "2.1"}};
  report.run.env = {{"OMP_NUM_THREADS", "2"}};
  report.run.devices = {
      {"cpu", "A Processor", 2, 8000000000, 4000000000, 33554432, {{"isa", "avx2"}}, {{"oneDNN", "2.6.3"}}}};
  report.run.started_at = 1795228459;  // 2026-11-21T02:34:19Z
  report.run.finished_at = 1795228469;
  report.run.complete = true;
  report.cases = {sample_record(), sample_record(Verdict::fail),
                  sample_without_run(Verdict::skipped, "needs 34 GB, 20 GB are free")};
  report.cases.back().unfinished =
      Unfinished{"SIGTERM", "64 of 4096 elements", "onednn", 4, {{{{16000}, {16400}}, true, "throttled"}}};
  return report;
}

/// A passing case of two ranks with two rounds of three samples and every optional member.
inline CaseRecord holding_record() {
  CaseRecord r = sample_record();
  r.c.ranks = 2;
  r.id = r.c.id();
  r.rounds[1].valid = true;
  r.rounds[1].note = "";
  r.rounds[0].times.device_ns = {4000, 3800, 4600};
  r.rounds[0].times.ranks = std::vector<RankTimes>{{{4000, 3700, 4600}}, {{3900, 3800, 4500}}};
  r.choice = Choice::timed;
  r.parity.ops[0].choice = Choice::timed;
  r.parity.ops[0].rejected = {"cublaslt:algo=21: 130 of 4000 judged elements of 'c' outside their bound"};
  r.parity.end_to_end = {{"w'", "parameter", 12.5, 0.001, 0.004}};
  r.parity.passed = {{"gemm", 2, 128, 8192, 8, 0.125, "recheck"}};
  r.parity.implementations.emplace().emplace_back("up", "own");
  r.workspace_bytes = 4096;
  const std::vector<std::string> flags{"power capped"};
  r.summary = summarize(r.rounds, r.batch);
  r.summary.flags.insert(r.summary.flags.end(), flags.begin(), flags.end());
  Derived& d = r.derived;
  const double seconds = r.summary.median_ns * 1e-9;
  d.flop_per_s = d.flop / seconds;
  d.bytes_per_s = d.bytes / seconds;
  d.headline = d.flop_per_s;
  d.breakdown[0].share = d.breakdown[0].median_ns / r.summary.median_ns;
  d.remainder = 1.0 - d.breakdown[0].share;
  d.energy_per_work_j = 1e-9;
  d.peak->of_peak = d.peak->rate / *d.peak->peak;
  return r;
}

/// One passed, one failed, one skipped.
inline Report holding_report() {
  Report report = sample_report();
  report.run.suites = {"gemm", "conv"};
  CaseRecord failed = holding_record();
  failed.c.workload = "other";
  failed.id = failed.c.id();
  failed.verdict = Verdict::fail;
  failed.reason = "op 'gemm.forward' (gemm) failed in timed";
  failed.parity.ops[1] = sample_op(Verdict::fail);
  failed.parity.ops[1].phase = "timed";
  failed.parity.ops[1].worst->got = std::numeric_limits<double>::quiet_NaN();
  failed.parity.error_over_bound = 3.5;
  report.cases = {holding_record(), failed, sample_without_run(Verdict::skipped, "needs 34 GB, 20 GB are free")};
  return report;
}

inline std::string result_rows(std::span<const CaseRecord> records, const ConsoleStyle& style,
                               const RowLayout& layout = {}) {
  std::string text;
  RowSequence rows(style, layout);
  for (const CaseRecord& record : records) text += rows.next(record);
  return text;
}

}  // namespace gpubench
