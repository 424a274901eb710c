// Rough estimates of the time and memory of planned cases, for --dry-run and the first line of a run; and the remaining
// time of a run.
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

/// Estimated times of a case, and its least number of rounds.
struct ExpectedCase {
  double checking_s = 0.0;
  double timing_s = 0.0;
  int rounds = 1;
  double planning_s = 0.0;

  [[nodiscard]] double seconds() const { return planning_s + checking_s + timing_s; }
};

[[nodiscard]] double total_s(const std::unordered_map<std::string, ExpectedCase>& cases);

struct Estimate {
  double seconds = 0.0;     ///< planning, checking and timing
  double planning_s = 0.0;  ///< part of seconds
  double checking_s = 0.0;  ///< part of seconds
  std::int64_t bytes = 0;   ///< one copy of the tensors, without cold copies (at most a quarter of the free memory)
};

/// `tier` sets the check, `preset` the rounds; without a preset `tier` sets both.
struct Effort {
  Tier tier;
  std::optional<Preset> preset{};
  CheckMode check = CheckMode::sample;
  double plan_s = 0.0;  ///< BackendEntry::plan_s
};

/// From the ops of the case, the protocol of the preset and the rates of `cores` cores of a server's processor
/// (estimate.cpp). Builds the case's program. Not fitted to GPUs.
[[nodiscard]] Estimate estimate(const PlannedCase& planned, const Effort& effort, int cores);

/// For Remaining, by id.
[[nodiscard]] std::unordered_map<std::string, ExpectedCase> expected_cases(std::span<const PlannedCase> planned,
                                                                           const Effort& effort, int cores);

/// Sum of the seconds, largest of the bytes.
[[nodiscard]] Estimate estimate(std::span<const PlannedCase> planned, const Effort& effort, int cores);

/// The remaining time of a run: the estimate of the remaining cases, scaled by the pace so far. Phases and rounds count
/// as parts of the estimate, since the cases of a group finish together.
class Remaining {
 public:
  Remaining() = default;
  /// Every planned case, by id.
  explicit Remaining(const std::unordered_map<std::string, ExpectedCase>& cases);

  void phase(const std::string& key, std::string_view phase);
  void finished(const std::string& key);

  /// Seconds left after `elapsed_s`: the rest of the estimate times elapsed / estimate of the finished part, where a
  /// twentieth of the run counts as finished as estimated. Empty without an estimate.
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
