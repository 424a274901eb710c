// A small report in which everything fits together, so that whatever a test changes is the only thing wrong with it.
#pragma once

#include "harness/measure/statistics.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {

/// A case of two ranks that passed: two rounds of three samples, every optional member there.
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

/// Three cases: one passed, one failed, one was skipped.
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

}  // namespace gpubench
