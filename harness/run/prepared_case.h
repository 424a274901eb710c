// One case ready to run: its program built, planned, filled and bound, with cold copies and a saved state.
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

class DoesNotFit : public std::runtime_error {
 public:
  explicit DoesNotFit(const std::string& what) : std::runtime_error(what) {}
};

/// "34.5 GB"
[[nodiscard]] std::string readable_bytes(std::int64_t bytes);
/// Throws DoesNotFit: "needs 34.5 GB, 20.1 GB are available".
void require_fit(std::int64_t needed, std::int64_t available);

struct PlanRequest {
  std::map<std::string, std::string> pins = {};  ///< implementations by op label
  const TuningCache* tuning_cache = nullptr;     ///< choices for all other ops; may be null
  bool deterministic = false;                    ///< see PlanOptions
  std::span<const std::string> arithmetic = {};  ///< accepted arithmetic below the declared one (with_arithmetic())
  std::function<void()> alive = {};              ///< called before each op, and PlanOptions::alive; may be empty
};

class PreparedCase {
 public:
  /// Builds the program, inserts the backend's fused ops (unless the case forbids it), plans, allocates, fills and
  /// binds one copy. If `available_bytes` cannot keep every value, memory is reused, in as few segments as fit. Throws
  /// DoesNotFit if nothing fits, and Unsupported if the backend does not choose a pinned implementation or a pinned op
  /// does not exist. Backend, arena and planned case must outlive it.
  PreparedCase(Backend& backend, Arena& arena, const PlannedCase& planned, std::uint64_t seed,
               std::int64_t available_bytes, const PlanRequest& request = {});

  [[nodiscard]] Backend& backend() const { return backend_; }
  [[nodiscard]] const PlannedCase& planned() const { return planned_; }
  [[nodiscard]] const Program& program() const { return fused_.program; }
  /// program() with the arithmetic that its results are judged by.
  [[nodiscard]] const Program& judged_program() const { return judged_ ? *judged_ : program(); }
  [[nodiscard]] const std::vector<std::string>& rewrites() const { return fused_.rewrites; }
  [[nodiscard]] const std::vector<int>& ops(Phase phase) const {
    return phase == Phase::setup ? setup_ops_ : timed_ops_;
  }
  [[nodiscard]] std::string implementation(int op) const {
    return plans_.at(static_cast<std::size_t>(op))->implementation();
  }
  /// Equal for ops of equal kind, constants, arithmetic, shapes, types and implementation.
  [[nodiscard]] std::string plan_key(int op) const;
  /// How the implementation was chosen; empty if there was no choice.
  [[nodiscard]] std::optional<Choice> choice(int op) const;
  /// PlanImpl::rejected(); empty if nothing was rejected.
  [[nodiscard]] std::optional<std::vector<std::string>> rejected(int op) const;
  /// Choices timed for this case, or for an equal call before it. Cached once the case has passed.
  [[nodiscard]] const Choices& timed_choices() const { return timed_choices_; }
  [[nodiscard]] const MemoryPlan& memory_plan() const { return memory_plan_; }
  /// Of all copies and the workspace, on the device.
  [[nodiscard]] std::int64_t memory_bytes() const { return memory_bytes_; }
  /// Of all ranks together.
  [[nodiscard]] std::int64_t workspace_bytes() const;
  [[nodiscard]] double plan_s() const { return plan_s_; }
  /// GuardedBlock::check_guards() for the workspaces of all ranks and the kept state.
  [[nodiscard]] std::string check_workspace_guards();

  [[nodiscard]] int copies() const { return static_cast<int>(copies_.size()); }
  [[nodiscard]] CaseMemory& memory(int copy) { return *copies_.at(static_cast<std::size_t>(copy)).memory; }
  [[nodiscard]] const Launch& launch(int copy, int op) const;
  /// All timed ops in sequence.
  [[nodiscard]] const Launch& timed(int copy) const { return copies_.at(static_cast<std::size_t>(copy)).timed; }
  [[nodiscard]] std::vector<Launch> timed_launches() const;
  /// A sequence of the timed ops with index in [first, last), on copy 0; `mode`: the case's if empty.
  [[nodiscard]] Launch segment(int first, int last, std::optional<LaunchMode> mode = {}) const;
  /// A sequence of the timed ops of copy 0 except the collectives; null if there are none.
  [[nodiscard]] Launch without_collectives() const;

  /// Storages that no timed op may change: filled by the harness or produced by set-up ops.
  [[nodiscard]] const std::vector<StorageId>& constants() const { return constants_; }
  /// Storages that the timed ops produce and do not reuse before the end; poisoned before a replay.
  [[nodiscard]] const std::vector<StorageId>& produced() const { return left_; }
  /// Storages that the timed ops overwrite; restored before a replay.
  [[nodiscard]] const std::vector<StorageId>& state() const { return state_; }
  /// A storage of the state as after the set-up ops.
  [[nodiscard]] const GuardedBlock& kept_state(StorageId id) const { return *kept_state_.at(id.index); }

  /// Keeps copy 0's state as it is now. Call once the set-up ops have run.
  void keep_state();
  /// Runs the set-up ops of copy 0 and keeps the state.
  void set_up();
  /// set_up(); where launches will be recorded as graphs it also runs every timed op once, alone, since libraries load
  /// code when an op first runs, which a recording forbids. The caller must reset results and state afterwards.
  void set_up_to_record();
  void set_round(int warmup_calls, int samples) {
    warmup_calls_ = warmup_calls;
    samples_ = samples;
  }
  [[nodiscard]] int warmup_calls() const { return warmup_calls_; }
  [[nodiscard]] int samples() const { return samples_; }
  void restore(int copy);
  void restore_after(int op);
  /// Restores the state and poisons the timed ops' results, as if no timed op had run. With several stretches only one
  /// of each storage is poisoned, which suffices to find an op that does not run.
  void reset(int copy, Stretch poisoned = {});
  /// Times a round of one run of the copy.
  RoundTimes time_once(int copy);
  /// Call before the ops with index in [first, last) run on a copy: poisons and guards their outputs that take over
  /// another storage's memory. reset() does it for the first storage in each place.
  void begin_storages(int copy, int first, int last);
  /// Adds the cold copies of the case's cache mode, with the bytes of copy 0; sequences and resets all copies.
  void make_copies(std::int64_t available_bytes);
  /// Reverses each source of copy 0, runs its set-up ops and resets it: values cached from earlier runs, for example
  /// reordered weights, become stale.
  void reverse_inputs();
  /// Gives copy 0 the data of another seed, runs its set-up ops and resets it.
  void refill(std::uint64_t seed);
  /// Writes `data`, of the value's shape and type, to copy 0. Rewrites the guards of shared memory.
  void give(ValueId id, const HostTensor& data);
  /// The same at the speed of memory if all other elements are zero.
  void give(ValueId id, const SparseTensor& data);
  /// Poisons and guards the outputs of an op of copy 0 that it does not update in place.
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
  /// Chooses a memory plan that fits into `available_bytes` with `other_bytes`.
  void plan_storages(std::int64_t other_bytes, std::int64_t available_bytes);
  void begin_storage(int copy, StorageId id, Stretch poisoned = {});
  /// By rank.
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
  std::optional<Program> judged_;  ///< where it differs from program()
  std::vector<int> setup_ops_;
  std::vector<int> timed_ops_;
  std::vector<Plan> plans_;
  std::set<int> pinned_ops_;
  Choices timed_choices_;
  std::vector<StorageId> constants_;
  std::vector<StorageId> produced_;
  std::vector<StorageId> left_;  ///< those of produced_ that are not reused before the end
  MemoryPlan memory_plan_;
  std::vector<StorageId> state_;
  std::vector<ValueId> roots_;                             ///< by storage: the value that spans it
  std::vector<std::unique_ptr<GuardedBlock>> workspaces_;  ///< by rank; collectives have none
  std::vector<Copy> copies_;
  std::map<int, std::unique_ptr<GuardedBlock>> kept_state_;  ///< by storage
  std::int64_t memory_bytes_ = 0;
  double plan_s_ = 0.0;
  int warmup_calls_ = 1;
  int samples_ = 1;
};

}  // namespace gpubench
