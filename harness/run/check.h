// The check of a case: each op alone before timing (CaseCheck), the results of every timed round (RoundCheck), and a
// replay of the timed launch (CaseCheck). All judge single ops on given contents of their storages (OpJudge).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/core/program.h"
#include "harness/core/record.h"
#include "harness/parity/judge.h"
#include "harness/run/case_record.h"
#include "harness/run/prepared_case.h"
#include "harness/run/recheck_plan.h"
#include "harness/run/run.h"

namespace gpubench {

/// fp64 operations allowed for judging a case, in each of check and recheck.
[[nodiscard]] double budget_flop(Tier tier);

struct StorageBytes {
  StorageBytes(const std::byte* host) : data(host) {}  // NOLINT(google-explicit-constructor)
  StorageBytes(const std::byte* device_data, Backend* owner) : data(device_data), device(owner) {}
  const std::byte* data;
  Backend* device = nullptr;  ///< owner of the memory; null: the host may read it
};

/// Reads each storage of one copy at most once.
class StorageReader {
 public:
  explicit StorageReader(PreparedCase& prepared, int copy = 0) : prepared_(prepared), memory_(prepared.memory(copy)) {}
  const std::byte* operator[](StorageId id);
  /// An output to judge. It stays on the device if the backend examines its memory itself and the layout is rows,
  /// unless the textbook reads the op's outputs or the host has read the storage already.
  [[nodiscard]] StorageBytes output(const OpCall& call, ValueId id);

 private:
  PreparedCase& prepared_;
  CaseMemory& memory_;
  std::map<int, HostBytes> read_;
};

/// `storages`: the contents of each value's storage, in the order of `ids`.
[[nodiscard]] std::vector<TensorView> views_of(const Program& program, std::span<const ValueId> ids,
                                               std::span<const StorageBytes> storages);

/// --save-failures: writes the folder `folder`/<key>/<label>.<phase>; characters unfit for file names become "_".
///  - <operand>.npy: each input and output as stored; types that NumPy lacks as their bits.
///  - <operand>.expected.npy and <operand>.bound.npy, for each output: the textbook's values and bounds in f64, or NaN.
///    All of them where the textbook needs at most 5e8 operations, else evenly spaced ones and the worst.
///  - load.py loads these files and prints the worst elements.
/// Each tensor reduces `room` [bytes]; a tensor that does not fit is left out. Existing files are never overwritten.
/// Returns text for the op's reason: where the files are, or why they could not be written.
[[nodiscard]] std::string save_failure(const std::string& folder, const std::string& key, const Program& program,
                                       int op, const OpView& view, const OpParity& parity, std::int64_t& room);

/// Limit of the tensors of one case.
inline constexpr std::int64_t max_saved_bytes = std::int64_t{1} << 30U;

class OpJudge {
 public:
  /// Both arguments must outlive it.
  OpJudge(const PreparedCase& prepared, const RunOptions& options);

  /// `inputs`, `outputs`: contents of the storages of the op's values, in order. `suspects`: see OpView::suspects.
  [[nodiscard]] OpParity judge(int op, std::span<const StorageBytes> inputs, std::span<const StorageBytes> outputs,
                               const std::string& phase, std::span<const std::vector<std::int64_t>> suspects = {},
                               const SumsOfData& sums = {}) const;
  /// fp64 operations allowed for the op: its share of the case's.
  [[nodiscard]] double budget(int op) const;
  /// `sample` or `full` for CheckMode::own.
  [[nodiscard]] CheckMode mode_of(int op) const;
  /// Whether the op's plan also runs on other data. With CheckMode::own only in an implementation under test.
  [[nodiscard]] bool has_further_launches(int op) const;

 private:
  [[nodiscard]] JudgePolicy policy_for(int op, std::string_view phase) const;

  const PreparedCase& prepared_;
  const RunOptions& options_;
  mutable std::int64_t room_for_failures_ = max_saved_bytes;
  double total_work_ = 0.0;  ///< fp64 operations to judge every element, estimated from costs
};

/// If `fault` is not empty, the op fails, and `fault` comes first in its reason.
[[nodiscard]] OpParity with_fault(OpParity parity, const std::string& fault);

/// Fingerprints of the storages of a copy, by storage index.
using Fingerprints = std::map<int, std::uint64_t>;
[[nodiscard]] Fingerprints fingerprints_of(PreparedCase& prepared, int copy, const std::vector<StorageId>& storages);

/// Probability that at least one of `rechecks` launches has an independent fault that one of `launches` launches has.
[[nodiscard]] double detection_probability(int rechecks, int launches);
/// "1000 rechecks: a fault in 1 of 1,000 launches is seen with 63%"
[[nodiscard]] std::string recheck_text(int rechecks);

/// Finds intermittent faults: compares the outputs of each round in each copy with those that the check judged.
///
/// Equal inputs must give equal bits, so fingerprints are compared first. If one differs, the contents are compared by
/// element, and the textbook judges the elements that differ. Rounds of a program with state are compared with each
/// other: the same number of runs from the same state.
///
/// Limit: a wrong result that a later run of the same round overwrites is not found. Without state only the last run in
/// each copy is seen; state carries every wrong run to the end of its round.
class RoundCheck {
 public:
  /// All arguments must outlive it.
  RoundCheck(PreparedCase& prepared, const OpJudge& judge, CaseRecord& record);

  /// `judged`: fingerprints from the check, of the storages that the timed ops produce.
  void expect(Fingerprints judged) { judged_ = std::move(judged); }

  /// Call after a round in which the first `copies` copies had a turn. Chooses the storages to compare: all if the
  /// backend examines its memory itself or `whole` is set; else up to 256 MiB in turn, since they cross the bus.
  void begin(int copies, bool whole);
  /// The chosen storages of the copy that differ from the expected ones. The first round sets the expected state.
  [[nodiscard]] std::vector<StorageId> differing(int copy);
  /// Whether begin() left out part of the last round.
  [[nodiscard]] bool partial() const { return partial_; }
  /// Launches once more on the copy, poisoned before, so that a launch without effect is found. Returns the storages
  /// that differ from the expected ones. `number` counts RunOptions::rechecks from 1.
  [[nodiscard]] std::vector<StorageId> recheck(int copy, int number);
  /// Judges the elements that differ or, if there is state, calls `again` to repeat the round or launch; `again`
  /// returns how often the program ran. Errors go to the record. True: a fault was found, so the rounds end.
  [[nodiscard]] bool settle(int copy, const std::vector<StorageId>& differing,
                            const std::function<std::int64_t()>& again);
  /// Reports the remaining faults. Call after the replay, which names the op if it finds the same fault.
  void report_deferred();

  /// "3 rounds: all of their results compared, bit for bit"; empty if no round was compared.
  [[nodiscard]] std::string coverage() const;

 private:
  struct Left;
  [[nodiscard]] bool judge_remaining(int copy, const std::vector<StorageId>& differing);
  [[nodiscard]] bool repeat(int copy, const std::vector<StorageId>& differing,
                            const std::function<std::int64_t()>& again);
  [[nodiscard]] std::string rounds_coverage() const;
  [[nodiscard]] std::string rechecks_coverage() const;
  [[nodiscard]] std::string writer_of(int storage) const;

  PreparedCase& prepared_;
  const OpJudge& judge_;
  CaseRecord& record_;
  std::vector<StorageId> watched_;
  Fingerprints judged_;
  Fingerprints rechecked_;  ///< of a program with state: after the first recheck
  std::map<std::tuple<int, std::int64_t, int>, std::uint64_t> states_;  ///< by copy, runs of the round, storage
  std::set<std::pair<int, int>> chosen_;                                ///< copies and storages of this round
  std::size_t next_ = 0;                                                ///< next in turn, if not all are chosen
  Fingerprints found_;                                                  ///< of the last compared copy
  bool varies_ = false;   ///< the bits differ from run to run within the bound
  std::set<int> passed_;  ///< ops that differed within their bound: recorded once
  std::vector<OpParity> deferred_;
  std::string deferred_reason_;
  std::int64_t compared_bytes_ = 0;
  std::int64_t left_bytes_ = 0;  ///< by all rounds
  std::int64_t within_bound_ = 0;
  std::size_t rounds_ = 0;
  int rechecks_ = 0;
  std::string event_;      ///< "round 2", "recheck 17"
  std::int64_t runs_ = 0;  ///< runs of the program in event_
  bool partial_ = false;
  bool counts_ = true;  ///< false if the same round is compared again
};

struct LaunchKind {
  std::string phase = "check";
  std::string_view data{};  ///< "an infinite gradient"; empty: the case's data or exact data
  SumsOfData sums{};
};

/// Checks one case. Results go to the record; wrong numbers throw nothing.
class CaseCheck {
 public:
  CaseCheck(PreparedCase& prepared, const RunOptions& options, CaseRecord& record);

  /// Runs and judges the ops of copy 0 one by one, set-up ops first, each on the inputs that it read. Also checks that
  /// inputs and guards are unchanged. With the check off it only runs the set-up ops.
  void alone();

  /// Call after each round: its outputs in each copy must equal, bit for bit, those that the check judged; see
  /// RoundCheck. `whole`: compare all storages. False: a fault was found, so the rounds end.
  bool after_round(bool whole = false);

  /// Call after the last round: checks guards and constants, and compares the storages that after_round() left out.
  void timed_buffers();

  /// Runs and compares RunOptions::rechecks more launches of the copies in turn, until the first fault.
  void rechecks();

  /// Replays the timed launch of copy 0 once, on other data, and judges every op. Values that are overwritten before
  /// the end are judged in a replay in segments. If memory is reused (most values are overwritten), the whole launch
  /// must give the same bits as its segments.
  void replay();

  /// Runs each plan of the timed ops once more on special data:
  ///  - data that reveal faults which usual data hide (OpDefinition::revealing_data), unless that is too expensive;
  ///  - for sums of products, probes of the arithmetic (plan_probe.cpp);
  ///  - then, if the arithmetic is as declared, data whose sums are exact, judged bit for bit
  ///    (harness/parity/exact_data.h).
  /// A record that is `downgraded` gets only the probes. Afterwards copy 0 holds other data than the case's.
  void further_launches();

  /// How often the replay paused to keep values before they were overwritten.
  [[nodiscard]] int pauses() const { return pauses_; }
  /// RoundCheck::coverage(), and how reused memory limits the check.
  [[nodiscard]] std::string rounds_coverage() const;

 private:
  void alone(int op, const LaunchKind& kind = {});
  void for_each_plan(const std::function<void(int op)>& launch);
  void on_exact_data(int op);
  void on_revealing_data(int op);
  void end_to_end();
  [[nodiscard]] int touched() const;
  bool faulty(int copy, const std::vector<StorageId>& differing, const std::function<std::int64_t()>& again);
  void look_at_guards(int copy, const std::string& where);
  void look_at_constants(int copy, const Fingerprints& before, const std::string& where);
  /// By the op before which the replay paused.
  using KeptContents = std::map<int, StorageContents>;
  void replay_in_segments(const RecheckPlan& plan, KeptContents& kept);
  void judge_ops(const RecheckPlan& plan, std::optional<int> pause, const KeptContents& kept);
  void look_at_outputs(int first, int last);
  [[nodiscard]] Fingerprints final_fingerprints();
  void compare_with_segments(const Fingerprints& in_segments);
  void judge_op(int op, std::span<const StorageBytes> inputs, std::span<const StorageBytes> outputs,
                const LaunchKind& kind, const std::string& fault);

  PreparedCase& prepared_;
  const RunOptions& options_;
  CaseRecord& record_;
  OpJudge judge_;
  RoundCheck rounds_;
  Fingerprints constants_;
  int pauses_ = 0;
  bool segments_vary_ = false;
};

/// Probes the arithmetic of each plan of the timed products and quantizations to blocks, by up to three launches on
/// copy 0 (harness/parity/precision_probe.h), and adds the result to the record. `downgraded` where the arithmetic is
/// below the declared one and RunOptions::arithmetic does not allow it; `fail` where a launch writes outside its
/// outputs. Nothing may read copy 0 afterwards: it holds other data.
void probe_plans(PreparedCase& prepared, const RunOptions& options, const OpJudge& judge, CaseRecord& record);

}  // namespace gpubench
