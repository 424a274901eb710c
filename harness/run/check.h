// The check of a case, three times: each op alone before timing, what each timed round left, and the timed launch
// replayed.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "harness/run/case_verdict.h"
#include "harness/run/op_judge.h"
#include "harness/run/prepared_case.h"
#include "harness/run/recheck_plan.h"
#include "harness/run/round_check.h"

namespace gpubench {

/// Judges the ops of one case. Results go to the record; wrong numbers are never exceptions.
class CaseCheck {
 public:
  CaseCheck(PreparedCase& prepared, const RunOptions& options, CaseRecord& record);

  /// Runs and judges the ops of copy 0 one by one, set-up ops first, each on the inputs that it read; looks for changed
  /// inputs and guards. With the check off it only runs the set-up ops.
  void alone();

  /// After each round: what it left in each copy must be, bit for bit, what the check has judged; RoundCheck says what
  /// happens where it is not. `whole`: all of it, whatever it costs. False: there is a fault, and no sense in more
  /// rounds.
  bool after_round(bool whole = false);

  /// After the last round: nobody has written where it must not, and what could not be compared after each round is
  /// compared now.
  void timed_buffers();

  /// Replays the timed launch of copy 0 once, on other data, and judges every op on what it left. What is overwritten
  /// before the end is judged in a replay in segments; where memory is reused that is most of it, and the launch must
  /// leave bit for bit what its segments leave.
  void replay();

  /// How often the replay paused to keep what was going to be overwritten.
  [[nodiscard]] int pauses() const { return pauses_; }
  /// RoundCheck::coverage(), and what memory that is reused takes from the check.
  [[nodiscard]] std::string rounds_coverage() const;

 private:
  void alone(int op);
  void end_to_end();
  [[nodiscard]] int touched() const;
  void look_at_guards(int copy, const std::string& where);
  void look_at_constants(int copy, const Fingerprints& before, const std::string& where);
  /// Contents of storages, by the op before which the replay paused.
  using KeptContents = std::map<int, StorageContents>;
  void replay_in_segments(const RecheckPlan& plan, KeptContents& kept);
  void judge_ops(const RecheckPlan& plan, std::optional<int> pause, const KeptContents& kept);
  void look_at_outputs(int first, int last);
  [[nodiscard]] Fingerprints what_is_left();
  void compare_with_segments(const Fingerprints& in_segments);
  void judge_op(int op, std::span<const StorageBytes> inputs, std::span<const StorageBytes> outputs,
                const std::string& phase, const std::string& fault);

  PreparedCase& prepared_;
  const RunOptions& options_;
  CaseRecord& record_;
  OpJudge judge_;
  RoundCheck rounds_;
  Fingerprints constants_;
  int pauses_ = 0;
  bool segments_vary_ = false;
};

}  // namespace gpubench
