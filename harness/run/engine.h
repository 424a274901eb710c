// The engine: takes cases through prepare, check, rounds and recheck on one backend, in groups that fit memory
// together. run_in_process() and a worker's serve() both drive it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "harness/run/arena.h"
#include "harness/run/run.h"

namespace gpubench {

/// The order of a pass: positions 0 ... ids.size() - 1, shuffled by seed, pass and ids alone.
[[nodiscard]] std::vector<std::size_t> order_of_pass(std::span<const std::string> ids, std::uint64_t seed, int pass);

class Engine {
 public:
  /// `backend` runs the cases of one rank; those of several are run on what RunOptions::open_ranks gives. Both must
  /// outlive the engine.
  Engine(Backend& backend, const RunOptions& options);

  /// One record per case, through `observer`; none for unfinished cases once `stop` is raised. Exceptions of a case
  /// become its record; those of the observer pass through, and DeviceLost once the case that met it has its record.
  void run(std::span<const PlannedCase> cases, RunObserver& observer, const StopFlag& stop);

 private:
  struct Active;
  /// A backend and the memory that cases share there.
  struct DeviceContext {
    std::unique_ptr<Backend> owned;
    Backend& backend;
    Arena arena;
  };
  /// Leaves behind what hangs.
  struct LeakIfHung {
    void operator()(DeviceContext* station) const;
  };
  using OwnedDevice = std::unique_ptr<DeviceContext, LeakIfHung>;
  /// `owner`: of `device`, where nobody else keeps it alive.
  [[nodiscard]] OwnedDevice open(Backend& device, std::unique_ptr<Backend> owner) const;
  /// Opens it where it is asked for first.
  [[nodiscard]] DeviceContext& station(int ranks);
  [[nodiscard]] std::int64_t available_bytes(const Backend& backend) const;
  /// Device and host memory that the case will take, cold copies and kept state included.
  [[nodiscard]] std::int64_t footprint(const PlannedCase& planned) const;
  void run_group(std::span<const PlannedCase> group, RunObserver& observer, const StopFlag& stop);
  template <class Step>
  void to_the_end(Active& active, RunObserver& observer, const Step& step);
  void prepare(Active& active, RunObserver& observer);
  void rounds(std::vector<Active>& group, RunObserver& observer, const StopFlag& stop);
  void look_after_round(Active& active);
  /// Takes the rounds that the case had before its run was interrupted.
  void adopt_rounds(CaseRecord& record, const Protocol& protocol) const;
  /// The number of runs per sample that was asked for, before the first round.
  void hold_to_batch(CaseRecord& record) const;
  /// The last round, where --inject-slowdown asks for it.
  void slow_on_purpose(Active& active);
  void conclude(Active& active, RunObserver& observer);
  /// Of the rounds, or, where it is asked for, of a longer window.
  [[nodiscard]] std::optional<double> joules_per_run(Active& active, RunObserver& observer);
  void finish(Active& active, RunObserver& observer);
  void tell_complaint(RunObserver& observer);

  Backend& backend_;
  const RunOptions& options_;
  std::map<int, OwnedDevice> stations_;  ///< by number of ranks
  std::unique_ptr<Telemetry> telemetry_;
  std::unique_ptr<TuningCache> memory_;
};

}  // namespace gpubench
