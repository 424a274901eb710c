// The engine runs cases: prepare, check, rounds, recheck, in groups that fit into memory together. run_in_process() and
// serve() drive it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/run/memory_pool.h"
#include "harness/run/process_state.h"
#include "harness/run/run.h"

namespace gpubench {

/// The order of a pass: positions 0 ... ids.size() - 1, shuffled by seed, pass and ids only.
[[nodiscard]] std::vector<std::size_t> order_of_pass(std::span<const std::string> ids, std::uint64_t seed, int pass);

/// The sizes of the groups of `cases`, in their order. The rounds of a group are interleaved, and a worker gets one
/// group at a time: at most 16 cases or 2 GiB of tensors, but always all contenders of a case. Independent of the
/// device, so that a run has the same groups with and without workers.
[[nodiscard]] std::vector<std::size_t> group_sizes(std::span<const PlannedCase* const> cases);

class Engine {
 public:
  /// `backend` runs the cases of one rank; RunOptions::open_ranks opens one for several. Both must outlive the engine.
  Engine(Backend& backend, const RunOptions& options);

  /// Runs one group, split where the number of ranks changes and where its memory does not fit: contenders of a case
  /// may take half of the device's memory. Hands one record per case to `observer`, except for unfinished cases once
  /// `stop` is raised. A case's exception becomes its record. Throws the observer's exceptions, and DeviceLost once its
  /// case has a record.
  void run(std::span<const PlannedCase> cases, RunObserver& observer, const StopFlag& stop);
  /// Keys of the cases that have their record.
  [[nodiscard]] const std::set<std::string>& finished() const { return finished_; }

 private:
  struct Active;
  struct DeviceContext {
    std::unique_ptr<Backend> owned;
    Backend& backend;
    Arena arena;
  };
  /// Leaks a backend that hangs, since its threads may still use it.
  struct LeakIfHung {
    void operator()(DeviceContext* context) const;
  };
  using OwnedDevice = std::unique_ptr<DeviceContext, LeakIfHung>;
  /// `owner` keeps `device` alive if nothing else does.
  [[nodiscard]] OwnedDevice open(Backend& device, std::unique_ptr<Backend> owner) const;
  /// Opened on first use. `contender`: Case::contender.
  [[nodiscard]] DeviceContext& context(int ranks, const std::string& contender);
  /// Loaded on first use; null for the device's implementations. Throws BackendError if loading fails.
  [[nodiscard]] const OwnImplementation* under_test(const std::string& contender);
  [[nodiscard]] std::int64_t available_bytes(const Backend& backend) const;
  /// Bytes of device and host memory, with cold copies and kept state.
  [[nodiscard]] std::int64_t footprint(const PlannedCase& planned) const;
  /// Throws Unsupported if an implementation under test takes no timed op of the case.
  void expect_any_op(const PlannedCase& planned);
  void run_group(std::span<const PlannedCase> group, RunObserver& observer, const StopFlag& stop);
  template <class Step>
  void to_the_end(Active& active, RunObserver& observer, const Step& step);
  void prepare(Active& active, RunObserver& observer);
  void rounds(std::vector<Active>& group, RunObserver& observer, const StopFlag& stop);
  void check_round(Active& active);
  /// Notes a change of this process's processors by others, and flags the cases being timed. Cases with an
  /// implementation under test are checked by ImplProbes.
  void look_at_processors(std::vector<Active>& group, RunObserver& observer);
  /// Takes over the rounds from before an interruption.
  void adopt_rounds(CaseRecord& record, const Protocol& protocol) const;
  /// Sets the number of runs per sample from RunOptions::batches. Call before the first round.
  void hold_to_batch(CaseRecord& record) const;
  void inject_slowdown(Active& active);
  void conclude(Active& active, RunObserver& observer);
  void further_launches(Active& active);
  /// From the rounds or, with RunOptions::energy, from a longer window.
  [[nodiscard]] std::optional<double> joules_per_run(Active& active, RunObserver& observer);
  void finish(Active& active, RunObserver& observer);
  void note_cache_errors(RunObserver& observer);

  Backend& backend_;
  const RunOptions& options_;
  std::map<std::string, std::unique_ptr<OwnImplementation>> implementations_;  ///< by name
  std::map<std::pair<int, std::string>, OwnedDevice> contexts_;                ///< by number of ranks and contender
  std::unique_ptr<Telemetry> telemetry_;
  std::unique_ptr<TuningCache> tuning_cache_;
  std::set<std::string> finished_;
  UsableProcessors processors_;
};

}  // namespace gpubench
