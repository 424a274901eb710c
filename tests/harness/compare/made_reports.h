// Reports with known times for tests of comparisons.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "harness/compare/effect.h"
#include "harness/compare/invocation.h"
#include "harness/report/content_digest.h"
#include "harness/report/json.h"
#include "harness/report/report_json.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {

/// A case of suite gemm that passed, with 10 rounds of 10 samples of 4 runs, all of which took `ns` each.
inline CaseRecord timed_record(const std::string& workload, double ns) {
  CaseRecord record = sample_record();
  record.c.workload = workload;
  record.id = record.c.id();
  record.batch = 4;
  RoundRecord round;
  round.times.device_ns.assign(10, 4.0 * ns);
  round.times.wall_ns.assign(10, 4.0 * ns);
  record.rounds.assign(10, round);
  record.summary.median_ns = ns;
  record.summary.flags.clear();
  return record;
}

/// `second`: distinguishes reports of one machine.
inline Report timed_report(std::vector<CaseRecord> cases, int second = 0) {
  Report report = sample_report();
  report.run.injected.clear();
  report.run.started_at += second;
  report.run.invocation = fmt::format("{:016x}", second);
  report.cases = std::move(cases);
  return report;
}

inline Invocation read_back(const Report& report, const std::string& source = "a.json") {
  return parse_invocation(sealed_text(report_json(report)), source);
}

/// An invocation per value; case "gemm/a/..." took that many ns.
inline std::vector<Invocation> side_of(const std::vector<double>& ns, const std::string& workload = "a") {
  std::vector<Invocation> side;
  for (std::size_t i = 0; i < ns.size(); ++i)
    side.push_back(
        read_back(timed_report({timed_record(workload, ns[i])}, static_cast<int>(i)), fmt::format("{}.json", i)));
  return side;
}

/// Invocations with these log medians, each of 10 rounds of 10 samples with batch 4.
inline std::vector<CaseRun> runs_of(const std::vector<double>& log_medians) {
  std::vector<CaseRun> runs;
  for (const double y : log_medians) {
    CaseRun run;
    run.log_median = y;
    run.rounds = 10;
    run.samples = 10;
    run.batch = 4;
    runs.push_back(run);
  }
  return runs;
}

inline Evidence evidence_of(const std::vector<double>& baseline, const std::vector<double>& candidate) {
  return {runs_of(baseline), runs_of(candidate)};
}

/// With a calibration of 10 invocations with this standard deviation.
inline Evidence calibrated_evidence(const std::vector<double>& baseline, const std::vector<double>& candidate,
                                    double spread, int runs = 10) {
  Evidence one = evidence_of(baseline, candidate);
  one.prior = Prior{spread * spread, runs};
  return one;
}

}  // namespace gpubench
