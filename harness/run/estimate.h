// How long a planned case will take and how much memory it wants: rough, for --dry-run and the first line of a
// run; and how long a run still takes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "harness/measure/protocol.h"
#include "harness/parity/judge.h"
#include "harness/plan/plan.h"

namespace gpubench {

/// What a case is estimated to take, and the rounds that it is measured for at least.
struct ExpectedCase {
  double checking_s = 0.0;
  double timing_s = 0.0;
  int rounds = 1;
  double planning_s = 0.0;

  [[nodiscard]] double seconds() const { return planning_s + checking_s + timing_s; }
};

/// Of all of them together.
[[nodiscard]] double total_s(const std::unordered_map<std::string, ExpectedCase>& cases);

struct Estimate {
  double seconds = 0.0;     ///< planning, checking and timing
  double planning_s = 0.0;  ///< of them
  double checking_s = 0.0;  ///< of them
  std::int64_t bytes = 0;   ///< one copy of the tensors; cold copies come on top, at most a quarter of the free memory
};

/// What a run puts into a case: checks by the tier, rounds by the preset, or the tier's own.
struct Effort {
  Tier tier;
  std::optional<Preset> preset{};
  CheckMode check = CheckMode::sample;
  double plan_s = 0.0;  ///< BackendEntry::plan_s
};

/// From the ops of the case, the protocol of the preset and what a core of a server's processor reaches (estimate.cpp),
/// `cores` of them. Builds the case's program. A device that is no processor is not known to fit.
[[nodiscard]] Estimate estimate(const PlannedCase& planned, const Effort& effort, int cores);

/// The same for Remaining, by id.
[[nodiscard]] std::unordered_map<std::string, ExpectedCase> expected_cases(std::span<const PlannedCase> planned,
                                                                           const Effort& effort, int cores);

/// Sum of the seconds, largest of the bytes.
[[nodiscard]] Estimate estimate(std::span<const PlannedCase> planned, const Effort& effort, int cores);

/// How long a run still takes: what was estimated for the cases that are left, at the pace of those that are done.
/// Follows a run by the calls of its observer. Cases finish in bursts, as rounds of a group are interleaved; so phases
/// and rounds count as well, each for its part of the estimate.
class Remaining {
 public:
  Remaining() = default;
  /// By id: every planned case.
  explicit Remaining(const std::unordered_map<std::string, ExpectedCase>& cases);

  void phase(const std::string& key, std::string_view phase);
  void finished(const std::string& key);

  /// Seconds left after `elapsed_s`: the rest of the estimate, times elapsed over what was estimated for what is done.
  /// At the start the estimate itself counts, as if a twentieth of the run had gone as it says. Nothing where no
  /// estimate is known.
  [[nodiscard]] std::optional<double> seconds(double elapsed_s) const;

 private:
  struct Followed {
    ExpectedCase expected;
    int rounds_begun = 0;
    double done_s = 0.0;  // of the estimate
  };
  void reach(Followed& one, double done_s);

  std::unordered_map<std::string, Followed> cases_;
  double expected_s_ = 0.0;
  double done_s_ = 0.0;
};

}  // namespace gpubench
