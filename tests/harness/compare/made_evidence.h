// Cases made up for tests of the rule: logs of medians, one per invocation.
#pragma once

#include <vector>

#include "harness/compare/effect.h"

namespace gpubench {

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

/// The same with a calibration of 10 invocations that found this standard deviation.
inline Evidence calibrated_evidence(const std::vector<double>& baseline, const std::vector<double>& candidate,
                                    double spread, int runs = 10) {
  Evidence one = evidence_of(baseline, candidate);
  one.prior = Prior{spread * spread, runs};
  return one;
}

}  // namespace gpubench
