// The check of a case: each op alone before timing (CaseCheck), what every timed round left (RoundCheck), and the timed
// launch replayed (CaseCheck again). All judge single ops on given contents of their storages (OpJudge).
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

/// The fp64 work allowed for judging a case, in each of check and recheck.
[[nodiscard]] double budget_flop(Tier tier);

/// The bytes of a storage, on the host or still on the device.
struct StorageBytes {
  StorageBytes(const std::byte* host) : data(host) {}  // NOLINT(google-explicit-constructor)
  StorageBytes(const std::byte* device_data, Backend* owner) : data(device_data), device(owner) {}
  const std::byte* data;
  Backend* device = nullptr;  ///< whose memory it is; null: the host may read it
};

/// The storages of one copy, each read by the host at most once.
class StorageReader {
 public:
  explicit StorageReader(PreparedCase& prepared, int copy = 0) : prepared_(prepared), memory_(prepared.memory(copy)) {}
  const std::byte* operator[](StorageId id);
  /// An output that will be judged. It stays on the device if the backend examines its memory itself and the layout is
  /// rows, unless the textbook reads what the op wrote or the host has the storage already.
  [[nodiscard]] StorageBytes output(const OpCall& call, ValueId id);

 private:
  PreparedCase& prepared_;
  CaseMemory& memory_;
  std::map<int, HostBytes> read_;
};

/// Views of the values; `storages` has the contents of each one's storage.
[[nodiscard]] std::vector<TensorView> views_of(const Program& program, std::span<const ValueId> ids,
                                               std::span<const StorageBytes> storages);

/// --save-failures: writes a folder `folder`/<key>/<label>.<phase>, where characters that a case's key or an op's label
/// has and no file should are "_": each input and output as it was stored, <operand>.npy (types that NumPy lacks as
/// their bits), and for each output <operand>.expected.npy and <operand>.bound.npy, the textbook's values and bounds in
/// f64, NaN where they were not worked out: all of them where that takes the textbook at most 5e8 operations, else
/// evenly spaced ones and the worst. load.py loads them and prints the worst elements. A tensor that does not fit into
/// `room` bytes, from which each is taken, is left out.
///
/// Returns the sentence for the op's reason: where the files are, or why they could not be written (a file that is
/// there already is never overwritten).
[[nodiscard]] std::string save_failure(const std::string& folder, const std::string& key, const Program& program,
                                       int op, const OpView& view, const OpParity& parity, std::int64_t& room);

/// What the tensors of one case may take.
inline constexpr std::int64_t max_saved_bytes = std::int64_t{1} << 30U;

class OpJudge {
 public:
  /// Both must outlive it.
  OpJudge(const PreparedCase& prepared, const RunOptions& options);

  /// Judges `outputs` given `inputs`: the contents of the storages of the op's values, in their order. `suspects`: see
  /// OpView::suspects.
  [[nodiscard]] OpParity judge(int op, std::span<const StorageBytes> inputs, std::span<const StorageBytes> outputs,
                               const std::string& phase, std::span<const std::vector<std::int64_t>> suspects = {},
                               const SumsOfData& sums = {}) const;
  /// The fp64 work allowed for the op: its share of the case's.
  [[nodiscard]] double budget(int op) const;
  /// How much of the op is judged: `sample` or `full` for CheckMode::own.
  [[nodiscard]] CheckMode mode_of(int op) const;
  /// Whether its plan also runs on data other than the case's: with CheckMode::own, only in an implementation under
  /// test.
  [[nodiscard]] bool has_further_launches(int op) const;

 private:
  [[nodiscard]] JudgePolicy policy_for(int op, std::string_view phase) const;

  const PreparedCase& prepared_;
  const RunOptions& options_;
  mutable std::int64_t room_for_failures_ = max_saved_bytes;
  double total_work_ = 0.0;  ///< fp64 work of judging everything, estimated from costs
};

/// Adds a fault that no element shows, if there is one: the op fails, and the fault comes first in its reason.
[[nodiscard]] OpParity with_fault(OpParity parity, const std::string& fault);

/// Fingerprints of the storages of a copy, by index, to find what changed.
using Fingerprints = std::map<int, std::uint64_t>;
[[nodiscard]] Fingerprints fingerprints_of(PreparedCase& prepared, int copy, const std::vector<StorageId>& storages);

/// The chance that one of so many rechecks sees a fault that one of `launches` launches has, each on its own.
[[nodiscard]] double detection_probability(int rechecks, int launches);
/// "1000 rechecks: a fault in 1 of 1,000 launches is seen with 63%"
[[nodiscard]] std::string recheck_text(int rechecks);

/// Compares what every round left in every copy with what the check saw, to find intermittent faults.
///
/// Equal inputs must give equal bits, so a fingerprint of each output after each round shows whether anything differs;
/// then the contents are compared by element, and the textbook judges the elements that differ. A program with state
/// does not leave the same after each round; its rounds are compared with each other: the same number of runs from the
/// same state.
///
/// It cannot see a wrong result that a later run of the same round overwrites. For a program without state it sees the
/// last run in each copy; a state carries every wrong run on to the end of its round.
class RoundCheck {
 public:
  /// All must outlive it.
  RoundCheck(PreparedCase& prepared, const OpJudge& judge, CaseRecord& record);

  /// Sets what the check has judged, for the storages that the timed ops produce.
  void expect(Fingerprints judged) { judged_ = std::move(judged); }

  /// Call after a round in which the first `copies` had a turn. Chooses what to compare: everything if the backend
  /// examines its memory itself or `whole` is set; else up to 256 MiB, since it crosses a bus, the storages in turn.
  void begin(int copies, bool whole);
  /// The chosen storages of the copy that differ from what is expected. The first round sets what a state should be.
  [[nodiscard]] std::vector<StorageId> differing(int copy);
  /// Whether part of the last round was not chosen.
  [[nodiscard]] bool partial() const { return partial_; }
  /// One more launch (RunOptions::rechecks; the `number`-th, from 1) on a copy: everything that it left and that
  /// differs from what is expected. The copy is poisoned before, so that a launch which does nothing shows.
  [[nodiscard]] std::vector<StorageId> recheck(int copy, int number);
  /// Finds out what a difference means: judges the elements that differ or, if there is state, calls `again` to repeat
  /// the round or launch; that returns how often the program ran. Errors go to the record. True: there is a fault, and
  /// more rounds make no sense.
  [[nodiscard]] bool settle(int copy, const std::vector<StorageId>& differing,
                            const std::function<std::int64_t()>& again);
  /// Call after the replay, which names the op if it finds the same fault: reports the faults that are left.
  void report_deferred();

  /// "outputs of 3 rounds as checked, bit for bit"; empty if no round was compared.
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
  Fingerprints rechecked_;  ///< of a program with state: what the first recheck left
  std::map<std::tuple<int, std::int64_t, int>, std::uint64_t> states_;  ///< by copy, runs of the round, storage
  std::set<std::pair<int, int>> chosen_;                                ///< copies and storages of this round
  std::size_t next_ = 0;                                                ///< the next in turn, if not all are chosen
  Fingerprints found_;                                                  ///< of the copy that was compared last
  bool varies_ = false;   ///< the bits differ from run to run although nothing is wrong
  std::set<int> passed_;  ///< ops that differed within their bound: recorded once
  std::vector<OpParity> deferred_;
  std::string deferred_reason_;
  std::int64_t compared_bytes_ = 0;
  std::int64_t left_bytes_ = 0;  ///< by all rounds
  std::int64_t within_bound_ = 0;
  std::size_t rounds_ = 0;
  int rechecks_ = 0;
  std::string event_;      ///< what is compared now: "round 2", "recheck 17"
  std::int64_t runs_ = 0;  ///< its runs of the program
  bool partial_ = false;
  bool counts_ = true;  ///< a round counts once, however often it is compared
};

/// A launch that is judged, and what it reads.
struct LaunchKind {
  std::string phase = "check";
  std::string_view data{};  ///< "an infinite gradient"; empty: the case's, or exact data
  SumsOfData sums{};
};

/// Checks one case. Results go to the record; wrong numbers are never exceptions.
class CaseCheck {
 public:
  CaseCheck(PreparedCase& prepared, const RunOptions& options, CaseRecord& record);

  /// Runs and judges the ops of copy 0 one by one, set-up ops first, each on the inputs that it read; finds changed
  /// inputs and guards. With the check off it only runs the set-up ops.
  void alone();

  /// Call after each round: what it left in each copy must equal, bit for bit, what the check has judged; see
  /// RoundCheck. `whole`: compare everything, whatever it costs. False: there is a fault, and more rounds make no
  /// sense.
  bool after_round(bool whole = false);

  /// Call after the last round: looks for writes to guards and constants, and compares what was left out after rounds.
  void timed_buffers();

  /// Runs RunOptions::rechecks more launches of the copies in turn, each compared as after a round, until one is
  /// faulty.
  void rechecks();

  /// Replays the timed launch of copy 0 once, on other data, and judges every op on what it left. Values that are
  /// overwritten before the end are judged in a replay in segments. If memory is reused those are most values, and the
  /// whole launch must leave, bit for bit, what its segments leave.
  void replay();

  /// Runs the timed ops once more on data made for it, each plan once:
  ///  - on what reveals faults that usual data hide (OpDefinition::revealing_data), unless that is too expensive;
  ///  - those that add up products on probes of their arithmetic (plan_probe.cpp), and then, unless that is not what it
  ///    should be, on data of which every sum is exact, judged bit for bit (harness/parity/exact_data.h).
  /// A record that is `downgraded` has the probes only. Copy 0 holds other data than the case's after that.
  void further_launches();

  /// How often the replay paused to keep values before they were overwritten.
  [[nodiscard]] int pauses() const { return pauses_; }
  /// RoundCheck::coverage(), and how memory that is reused limits the check.
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
  /// Contents of storages, by the op before which the replay paused.
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

/// On data made to show their arithmetic (harness/parity/precision_probe.h): probes each plan of the timed products and
/// quantizations to blocks, once, by up to three launches on copy 0, and adds what it reads to the record; `downgraded`
/// where that is below what the op declares and RunOptions::arithmetic does not allow it, `fail` where a launch writes
/// outside its outputs. Copy 0 holds other data after that: nothing may follow that reads it.
void probe_plans(PreparedCase& prepared, const RunOptions& options, const OpJudge& judge, CaseRecord& record);

}  // namespace gpubench
