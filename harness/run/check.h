// The check of a case, three times: each op alone before timing, what the timed rounds left, and the timed launch
// replayed.
#pragma once

#include <cstdint>
#include <map>

#include "harness/run/case_verdict.h"
#include "harness/run/prepared_case.h"

namespace gpubench {

/// fp64 work that judging a case may cost, in each of check and recheck.
[[nodiscard]] double budget_flop(Tier tier);

/// Fingerprints of what a copy holds, to find what changed.
using Fingerprints = std::map<int, std::uint64_t>;
[[nodiscard]] Fingerprints fingerprints_of(PreparedCase& prepared, int copy, const std::vector<StorageId>& storages);

/// Judges the ops of one case. Results go to the record; wrong numbers are never exceptions.
class CaseCheck {
 public:
  CaseCheck(PreparedCase& prepared, const RunOptions& options, CaseRecord& record);

  /// Runs and judges the ops of copy 0 one by one, set-up ops first, each on the inputs that it read; looks for changed
  /// inputs and guards. With the check off it only runs the set-up ops.
  void alone();

  /// After the last round: the very buffers that were timed must hold, bit for bit, what the check has judged; a copy
  /// that does not is judged itself. (State has been updated many times by then: it is judged in the replay only.)
  void timed_buffers();

  /// Replays the timed launch of copy 0 once, on other data, and judges every op on what it left.
  void replay();

  /// How often the replay paused to keep what was going to be overwritten.
  [[nodiscard]] int pauses() const { return pauses_; }

 private:
  void alone(int op);
  void judge_left(int copy, const std::string& phase);
  void look_at_guards(int copy, const std::string& where);
  void look_at_constants(int copy, const Fingerprints& before, const std::string& where);
  [[nodiscard]] JudgePolicy policy_for(int op, std::string_view phase) const;
  void judge_op(int op, std::span<const std::byte* const> inputs, std::span<const std::byte* const> outputs,
                const std::string& phase, const std::string& fault);

  PreparedCase& prepared_;
  const RunOptions& options_;
  CaseRecord& record_;
  double total_work_ = 0.0;      ///< fp64 work of judging everything, as far as costs tell
  Fingerprints judged_content_;  ///< of produced storages, after the check of ops alone
  Fingerprints constants_;
  int pauses_ = 0;
};

}  // namespace gpubench
