// Running planned cases: groups, workers, deadlines. What the command line calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/record.h"
#include "harness/core/telemetry.h"
#include "harness/core/tuning_cache.h"
#include "harness/measure/protocol.h"
#include "harness/parity/judge.h"
#include "harness/plan/plan.h"
#include "harness/run/injected_error.h"
#include "harness/run/slowdown.h"

namespace gpubench {

/// Implementations that plans must take: by case id, then by the op's label.
using Pins = std::map<std::string, std::map<std::string, std::string>>;

struct RunOptions {
  Tier tier = Tier::quick;               ///< sets the fp64 budget of the check, and the protocol where no preset does
  std::optional<Preset> preset{};        ///< sets the protocol
  std::optional<int> rounds{};           ///< exactly so many, whatever the protocol's stopping rule would say
  int locked_clock_mhz = 0;              ///< what the user locked the SM clock at; 0: it is free
  std::optional<Slowdown> slowdown{};    ///< a fault for trying gates
  std::optional<InjectedError> error{};  ///< a wrong result, to see what a failure looks like
  CheckMode check = CheckMode::sample;
  std::uint64_t seed = 42;
  /// A worker may say nothing for three times what its case should take, but at least and at most this long. A floor of
  /// 0: for ever.
  double deadline_floor_s = 30.0;
  double deadline_cap_s = 1800.0;
  double opening_deadline_s = 60.0;                      ///< the same for a new worker, until its first message
  std::unordered_map<std::string, double> expected_s{};  ///< what cases should take, by id; the floor holds for others
  std::int64_t memory_limit_bytes = 0;                   ///< 0: what the device says is available
  std::string rerun_prefix = "gpubench run";             ///< how a rerun line starts
  bool energy = false;                                   ///< a window of 2 s for cases whose rounds are shorter
  bool deterministic = false;                            ///< only implementations that give the same bits each time
  bool breakdown = true;                                 ///< ops of composite cases are timed alone as well
  Pins pins{};                                           ///< ops that are not named are the backend's choice
  std::map<std::string, std::int64_t> batches{};         ///< runs per sample by case id; of others from an estimate
  /// Of a run that is gone on with: cases that have their record, and are not run, and what others have of their
  /// rounds.
  std::set<std::string> finished{};
  std::map<std::string, CaseRecord> in_flight{};
  /// Opens several ranks as one backend. Without it cases of more than one rank are unsupported. Throws Unsupported or
  /// BackendError, which become the records of the cases.
  std::function<std::unique_ptr<Backend>(int ranks)> open_ranks{};
  /// Makes what reads the device's sensors around each round; none where it is empty.
  std::function<std::unique_ptr<Telemetry>(const DeviceInfo&)> open_telemetry{};
  /// Opens what earlier runs on this device found; nothing is remembered where it is empty.
  std::function<std::unique_ptr<TuningCache>(const DeviceInfo&)> open_choices{};
  /// Decides in the protocol's place whether a case gets another round; called before each. May be empty.
  std::function<bool(const CaseRecord&)> another_round{};
  /// Called between the steps of a phase (ops, copies), so that one that works is told from one that hangs. May be
  /// empty.
  std::function<void()> alive{};

  [[nodiscard]] Protocol protocol() const {
    Protocol protocol = protocol_of(preset.value_or(preset_of(tier)));
    if (rounds) protocol.min_rounds = protocol.max_rounds = *rounds;
    protocol.locked_clock_mhz = locked_clock_mhz;
    return protocol;
  }
};

/// What is told while cases run; called on the thread that called run_*().
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// A case enters a phase: "prepare", "check", "time", "recheck".
  virtual void phase(std::string_view case_id, std::string_view phase) = 0;
  virtual void finished(const CaseRecord& record) = 0;
  /// A round is over: the case as it is now, without what its check found, and with this round as its only one;
  /// summary.rounds says which it is, from 1.
  virtual void round(const CaseRecord& /*record*/) {}
  /// Something the user should know that belongs to no case ("worker 2 died, starting another").
  virtual void note(std::string_view text) = 0;
  /// Called at least ten times a second while waiting, so that a progress line can move.
  virtual void tick() = 0;
};

/// Records as text, so that this part needs no JSON; harness/report provides it.
class RecordCodec {
 public:
  virtual ~RecordCodec() = default;
  [[nodiscard]] virtual std::string encode(const CaseRecord& record) const = 0;
  /// Throws std::runtime_error for text that is not a record.
  [[nodiscard]] virtual CaseRecord decode(std::string_view text) const = 0;
};

/// Raised from a signal handler: 0, or the signal to stop for.
using StopFlag = std::atomic<int>;

/// Runs the cases in this process: prepares and checks a group that fits memory together, times its rounds interleaved
/// in a seeded order, rechecks the timed launches. Every case gets exactly one record, in any order. A case's exception
/// becomes its record; those of RunOptions::finished have one. Returns early, without the unfinished cases, when `stop`
/// is raised.
void run_in_process(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                    RunObserver& observer, const StopFlag& stop);

/// The worker's side: reads groups of case ids from `input_fd` until it closes, runs them, writes records to
/// `output_fd`. `cases`: all that are declared (declared_cases), which worker and supervisor find alike; the worker
/// builds the programs of its own groups alone. Returns the process's exit status.
int serve(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options, const RecordCodec& codec,
          int input_fd, int output_fd);

/// How to start a worker: argv of this same program with the hidden flags that lead it to serve(). The two descriptors
/// are passed at the end as --worker-input N --worker-output N.
struct WorkerCommand {
  std::vector<std::string> argv;
};

/// The supervisor: hands groups of cases to a worker process, watches deadlines, replaces a worker that crashed, hung
/// or sent garbage. Such a fault costs the case that was running one record with verdict `error`; the others run again.
/// Every case gets exactly one record unless `stop` is raised, or it is one of RunOptions::finished.
void run_isolated(std::span<const PlannedCase> cases, const RunOptions& options, const WorkerCommand& worker,
                  const RecordCodec& codec, RunObserver& observer, const StopFlag& stop);

}  // namespace gpubench
