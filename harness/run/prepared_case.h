// One case ready to run: its program built, planned, filled and bound, with cold copies and what restores its state.
// check.h judges it, timing.h times it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/program.h"
#include "harness/core/tuning_cache.h"
#include "harness/parity/probe_data.h"
#include "harness/parity/textbook_outputs.h"
#include "harness/plan/memory_plan.h"
#include "harness/plan/plan.h"
#include "harness/run/case_memory.h"
#include "reference/ops/transform/fuse.h"

namespace gpubench {

/// The case is too large for this device; the text has the numbers.
class DoesNotFit : public std::runtime_error {
 public:
  explicit DoesNotFit(const std::string& what) : std::runtime_error(what) {}
};

/// "34.5 GB"
[[nodiscard]] std::string readable_bytes(std::int64_t bytes);
/// Throws DoesNotFit: "needs 34.5 GB, 20.1 GB are available".
void require_fit(std::int64_t needed, std::int64_t available);

/// How the ops of a case are planned.
struct PlanRequest {
  std::map<std::string, std::string> pins = {};  ///< implementations by op label
  const TuningCache* tuning_cache = nullptr;     ///< choices of earlier runs for all other ops; may be null
  bool deterministic = false;                    ///< see PlanOptions
  std::span<const std::string> arithmetic = {};  ///< what is accepted below what ops declare (with_arithmetic())
  std::function<void()> alive = {};              ///< called before each op, and PlanOptions::alive; may be empty
};

class PreparedCase {
 public:
  /// Builds the program, inserts the backend's fused ops (unless the case forbids it), plans, allocates, fills and
  /// binds one copy. If `available_bytes` is too little to keep every value, memory is reused, in as few segments as
  /// fit. Throws DoesNotFit if none do, and Unsupported if the backend does not choose a pinned implementation or a
  /// pinned op does not exist. Backend, arena and planned case must outlive it.
  PreparedCase(Backend& backend, Arena& arena, const PlannedCase& planned, std::uint64_t seed,
               std::int64_t available_bytes, const PlanRequest& request = {});

  [[nodiscard]] Backend& backend() const { return backend_; }
  [[nodiscard]] const PlannedCase& planned() const { return planned_; }
  [[nodiscard]] const Program& program() const { return fused_.program; }
  /// The same with the arithmetic that its results are judged by.
  [[nodiscard]] const Program& judged_program() const { return judged_ ? *judged_ : program(); }
  /// The fusions, in the order of the ops; empty if the program is as declared.
  [[nodiscard]] const std::vector<std::string>& rewrites() const { return fused_.rewrites; }
  /// Indices of the ops of a phase, in order.
  [[nodiscard]] const std::vector<int>& ops(Phase phase) const {
    return phase == Phase::setup ? setup_ops_ : timed_ops_;
  }
  [[nodiscard]] std::string implementation(int op) const {
    return plans_.at(static_cast<std::size_t>(op))->implementation();
  }
  /// Alike for ops that do the same by the same implementation: kind, constants, arithmetic, shapes and types.
  [[nodiscard]] std::string plan_key(int op) const;
  /// How that was chosen; empty if there was no choice.
  [[nodiscard]] std::optional<Choice> choice(int op) const;
  /// PlanImpl::rejected(); empty if nothing was rejected.
  [[nodiscard]] std::optional<std::vector<std::string>> rejected(int op) const;
  /// What was timed for this case, or for an equal call before it: cached once the case has passed.
  [[nodiscard]] const Choices& timed_choices() const { return timed_choices_; }
  /// How the storages of a copy are placed.
  [[nodiscard]] const MemoryPlan& memory_plan() const { return memory_plan_; }
  /// Device memory of all copies and the workspace.
  [[nodiscard]] std::int64_t memory_bytes() const { return memory_bytes_; }
  /// Scratch memory, of all ranks together.
  [[nodiscard]] std::int64_t workspace_bytes() const;
  /// Seconds that its plans took.
  [[nodiscard]] double plan_s() const { return plan_s_; }
  /// GuardedBlock::check_guards() for the workspaces of all ranks and the kept state.
  [[nodiscard]] std::string check_workspace_guards();

  [[nodiscard]] int copies() const { return static_cast<int>(copies_.size()); }
  [[nodiscard]] CaseMemory& memory(int copy) { return *copies_.at(static_cast<std::size_t>(copy)).memory; }
  /// One op alone.
  [[nodiscard]] const Launch& launch(int copy, int op) const;
  /// The timed launch: all timed ops in sequence.
  [[nodiscard]] const Launch& timed(int copy) const { return copies_.at(static_cast<std::size_t>(copy)).timed; }
  /// The timed launch of every copy.
  [[nodiscard]] std::vector<Launch> timed_launches() const;
  /// A sequence of the timed ops with index in [first, last), on copy 0; launched as the case is, or in another mode.
  [[nodiscard]] Launch segment(int first, int last, std::optional<LaunchMode> mode = {}) const;
  /// A sequence of the timed ops of copy 0 except the collectives; null if there are none.
  [[nodiscard]] Launch without_collectives() const;

  /// Storages that no op may change: filled by the harness or produced by set-up ops.
  [[nodiscard]] const std::vector<StorageId>& constants() const { return constants_; }
  /// Storages that the timed ops produce and do not reuse before the end; poisoned before a replay.
  [[nodiscard]] const std::vector<StorageId>& produced() const { return left_; }
  /// Storages that the timed ops overwrite; restored before a replay.
  [[nodiscard]] const std::vector<StorageId>& state() const { return state_; }
  /// A storage of the state as the set-up ops left it.
  [[nodiscard]] const GuardedBlock& kept_state(StorageId id) const { return *kept_state_.at(id.index); }

  /// Call once the set-up ops have run on copy 0: keeps the state as it is now.
  void keep_state();
  /// Runs the set-up ops of copy 0 and keeps the state.
  void set_up();
  /// set_up(), and where launches will be recorded as graphs every timed op once, alone: libraries load code when an op
  /// first runs, which a recording forbids. The timed ops' results and the state are then to be reset.
  void set_up_to_record();
  /// Sets the number of warm-up runs before each round and of its samples, from an estimate of their time.
  void set_round(int warmup_calls, int samples) {
    warmup_calls_ = warmup_calls;
    samples_ = samples;
  }
  [[nodiscard]] int warmup_calls() const { return warmup_calls_; }
  [[nodiscard]] int samples() const { return samples_; }
  /// Restores the state of a copy.
  void restore(int copy);
  /// Restores the part of copy 0's state that this op overwrites.
  void restore_after(int op);
  /// Restores the state and poisons what the timed ops produce, as if no timed op had run. With several stretches only
  /// one of each storage is poisoned: an op that does not run then still leaves poison.
  void reset(int copy, Stretch poisoned = {});
  /// Times the launch of a copy once, as a round of one run.
  RoundTimes time_once(int copy);
  /// Call before the ops with index in [first, last) run on a copy: poisons and guards those of their outputs that take
  /// over another storage's memory. reset() does it for the first storage in each place.
  void begin_storages(int copy, int first, int last);
  /// Adds the cold copies of the case's cache mode, with the bytes of copy 0; sequences and resets all copies.
  void make_copies(std::int64_t available_bytes);
  /// Gives copy 0 other data of the same kind (each source reversed), runs its set-up ops on them and resets it: a
  /// value cached from earlier runs, say a reordered weight, is now stale.
  void reverse_inputs();
  /// Gives copy 0 the data of another seed, runs its set-up ops on them and resets it.
  void refill(std::uint64_t seed);
  /// Writes a value of copy 0, an operand of a launch on data made for it. `data` has its shape and type. Guards of
  /// memory that storages share are written anew.
  void give(ValueId id, const HostTensor& data);
  /// The same of data most of which are alike, at the speed of memory where they are zeros.
  void give(ValueId id, const SparseTensor& data);
  /// Poisons and guards what an op of copy 0 writes and does not update, whatever was there before.
  void begin_outputs(int op);

 private:
  struct Copy {
    std::unique_ptr<CaseMemory> memory;
    std::vector<Launch> ops;
    Launch timed;
  };

  void write(ValueId id, const std::function<void(const TensorSpec& spec, std::byte* to)>& elements);
  void plan_ops(const PlanRequest& request);
  [[nodiscard]] std::vector<CallToPlan> calls_to_plan(const PlanRequest& request) const;
  void sort_storages();
  /// Chooses a memory plan that fits into `available_bytes` together with `other_bytes`.
  void plan_storages(std::int64_t other_bytes, std::int64_t available_bytes);
  void begin_storage(int copy, StorageId id, Stretch poisoned = {});
  /// Bytes of scratch memory that each rank needs.
  [[nodiscard]] std::vector<std::size_t> scratch_bytes() const;
  void fill_sources(std::uint64_t seed);
  [[nodiscard]] Copy bind_copy();
  /// `ops`: some of the timed ones, ascending.
  [[nodiscard]] Launch sequence_of(const Copy& copy, std::span<const int> ops,
                                   std::optional<LaunchMode> mode = {}) const;

  Backend& backend_;
  Arena& arena_;
  const PlannedCase& planned_;
  Fused fused_;
  std::optional<Program> judged_;  ///< where that is another
  std::vector<int> setup_ops_;
  std::vector<int> timed_ops_;
  std::vector<Plan> plans_;
  std::set<int> pinned_ops_;
  Choices timed_choices_;
  std::vector<StorageId> constants_;
  std::vector<StorageId> produced_;
  std::vector<StorageId> left_;  ///< of produced_
  MemoryPlan memory_plan_;
  std::vector<StorageId> state_;
  std::vector<ValueId> roots_;                             ///< the value that spans each storage
  std::vector<std::unique_ptr<GuardedBlock>> workspaces_;  ///< by rank; collectives have none
  std::vector<Copy> copies_;
  std::map<int, std::unique_ptr<GuardedBlock>> kept_state_;  ///< by storage, beside it
  std::int64_t memory_bytes_ = 0;
  double plan_s_ = 0.0;
  int warmup_calls_ = 1;
  int samples_ = 1;
};

}  // namespace gpubench
