// The cases of two sides, paired by id: the id is the work, on every machine.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/compare/invocation.h"

namespace gpubench {

/// What one side says about a case, over its invocations.
struct CaseOfSide {
  std::vector<const MeasuredCase*> cases;  ///< one per invocation that has the case; they outlive this
  std::vector<CaseRun> runs;               ///< of those that passed

  [[nodiscard]] bool planned() const { return !cases.empty(); }
  [[nodiscard]] bool passed() const { return !runs.empty(); }
  /// The first one that did not pass; nullptr where all did.
  [[nodiscard]] const MeasuredCase* unpassed() const;
  /// Geometric mean of the medians. Passed only.
  [[nodiscard]] double median_ns() const;
  /// The headline rate that goes with it. Passed only.
  [[nodiscard]] double work_per_s() const;
};

struct MatchedCase {
  std::string id;
  std::string suite;
  std::string unit;  ///< of the headline rate
  CaseOfSide baseline;
  CaseOfSide candidate;

  [[nodiscard]] bool both_passed() const { return baseline.passed() && candidate.passed(); }
};

/// Every case of either side, in the order of the baseline, then those that only the candidate has.
[[nodiscard]] std::vector<MatchedCase> match(std::span<const Invocation> baseline,
                                             std::span<const Invocation> candidate);

/// Why the same id stands for other work on the two sides; empty where it does not.
[[nodiscard]] std::string definition_conflict(const MatchedCase& one);

}  // namespace gpubench
