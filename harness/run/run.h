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
#include "harness/run/injected_fault.h"
#include "harness/run/own_implementation.h"

namespace gpubench {

/// Required implementations: by case id, then by the op's label.
using Pins = std::map<std::string, std::map<std::string, std::string>>;

struct RunOptions {
  Tier tier = Tier::quick;               ///< sets the fp64 budget of the check, and the protocol if there is no preset
  std::optional<Preset> preset{};        ///< sets the protocol
  std::optional<int> rounds{};           ///< replaces the protocol's stopping rule
  int locked_clock_mhz = 0;              ///< the SM clock that the user locked; 0: not locked
  std::optional<Slowdown> slowdown{};    ///< --inject-slowdown
  std::optional<InjectedError> error{};  ///< --inject-error
  CheckMode check = CheckMode::sample;
  std::optional<double> check_flop{};  ///< replaces budget_flop() of the tier
  /// Called with each judged op, its inputs and outputs; may be empty.
  std::function<void(const Program&, int op, const OpView&, const OpParity&)> judged{};
  /// Accepted arithmetic below the declared one (--arithmetic): names of LowerArithmetic.
  std::vector<std::string> arithmetic{};
  int rechecks = 0;  ///< more launches of each case after its rounds, each compared with the checked outputs
  std::uint64_t seed = 42;
  /// A worker may be silent for three times the expected time of its case, within these limits. A floor of 0: no limit.
  double deadline_floor_s = 30.0;
  double deadline_cap_s = 1800.0;
  double opening_deadline_s = 60.0;                      ///< of a new worker, until its first message
  double plan_limit_s = 0.0;                             ///< the floor while a case is prepared, where that is longer
  std::unordered_map<std::string, double> expected_s{};  ///< expected times of cases, by key; 0 for others
  std::int64_t memory_limit_bytes = 0;                   ///< 0: the device's available memory
  std::string rerun_prefix = "gpubench run";             ///< the start of rerun lines
  std::string save_failures{};                           ///< folder for the tensors of failing ops; empty: none
  bool energy = false;                                   ///< a window of 2 s for cases whose rounds are shorter
  bool deterministic = false;                            ///< only implementations with the same bits in every run
  bool breakdown = true;                                 ///< ops of composite cases are timed alone as well
  Pins pins{};                                           ///< the backend chooses for all other ops
  std::map<std::string, std::int64_t> batches{};         ///< runs per sample by case id; estimated for others
  /// For a resumed run, by key: the cases that have their record, and the rounds so far of the others.
  std::set<std::string> finished{};
  std::map<std::string, CaseRecord> in_flight{};
  /// Opens several ranks as one backend. If empty, cases of more than one rank are unsupported. Throws Unsupported or
  /// BackendError, which become the records of the cases. `under_test` replaces ops on every rank; may be null.
  std::function<std::unique_ptr<Backend>(int ranks, const OwnImplementation* under_test)> open_ranks{};
  /// The implementations under test, which Case::contender names. The first case of each loads its file, so that a
  /// crash costs only the cases of that implementation.
  std::vector<NamedImplementation> implementations{};
  /// May be empty.
  std::function<std::unique_ptr<Telemetry>(const DeviceInfo&)> open_telemetry{};
  /// Opens the choices of earlier runs on this device. If empty, nothing is cached.
  std::function<std::unique_ptr<TuningCache>(const DeviceInfo&)> open_choices{};
  /// Decides before each round, instead of the protocol, whether a case gets it. May be empty.
  std::function<bool(const CaseRecord&)> another_round{};
  /// Called between the steps of a phase (ops, copies), as a sign that the process does not hang. May be empty.
  std::function<void()> alive{};

  [[nodiscard]] Protocol protocol() const {
    Protocol protocol = protocol_of(preset.value_or(preset_of(tier)));
    if (rounds) {
      protocol.min_rounds = protocol.max_rounds = *rounds;
      protocol.min_samples = protocol.samples;
    }
    protocol.locked_clock_mhz = locked_clock_mhz;
    return protocol;
  }
};

/// Notifications while cases run, on the thread that called run_*().
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// A case enters a phase: "prepare", "check", "time", "recheck".
  virtual void phase(std::string_view key, std::string_view phase) = 0;
  virtual void finished(const CaseRecord& record) = 0;
  /// A round has ended. `record` has only this round, no results of the check, and its number (from 1) in
  /// summary.rounds.
  virtual void round(const CaseRecord& /*record*/) {}
  /// A message for the user that belongs to no case ("worker 2 died, starting another").
  virtual void note(std::string_view text) = 0;
  /// Called at least ten times a second while waiting, so that a progress line can move.
  virtual void tick() = 0;
};

/// Encodes records as text; harness/report implements it, so that harness/run needs no JSON.
class RecordCodec {
 public:
  virtual ~RecordCodec() = default;
  [[nodiscard]] virtual std::string encode(const CaseRecord& record) const = 0;
  /// Throws std::runtime_error if the text is not a record.
  [[nodiscard]] virtual CaseRecord decode(std::string_view text) const = 0;
};

/// Raised from a signal handler: 0, or the signal that stops the run.
using StopFlag = std::atomic<int>;

/// Runs the cases in this process, in groups that fit into memory together: prepares and checks them, times their
/// rounds interleaved in a seeded order, rechecks the timed launches. Every case gets exactly one record, in any order,
/// except those of RunOptions::finished. A case's exception becomes its record. Returns early, without the unfinished
/// cases, when `stop` is raised.
void run_in_process(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                    RunObserver& observer, const StopFlag& stop);

/// The worker: reads groups of case ids from `input_fd` until it closes, runs them, and writes records to `output_fd`.
/// `cases`: all declared cases (declared_cases), the same in worker and supervisor. Returns the process's exit status.
int serve(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options, const RecordCodec& codec,
          int input_fd, int output_fd);

/// How to start a worker: argv of this program with the hidden flags that make it call serve(). The supervisor appends
/// --worker-input N --worker-output N.
struct WorkerCommand {
  std::vector<std::string> argv;
  /// A file, opened to append, for the worker's standard output and error; truncated to 0 where it exceeds
  /// longest_output_bytes. -1: this process's standard error.
  int output_fd = -1;
  static constexpr std::int64_t longest_output_bytes = std::int64_t{16} << 20U;
};

/// The supervisor: hands groups of cases to a worker process, watches deadlines, and replaces a worker that crashed,
/// hung or sent garbage. The running case then gets a record with verdict `error`; the others continue in a new worker.
/// Every case gets exactly one record, except those of RunOptions::finished, unless `stop` is raised.
void run_isolated(std::span<const PlannedCase> cases, const RunOptions& options, const WorkerCommand& worker,
                  const RecordCodec& codec, RunObserver& observer, const StopFlag& stop);

}  // namespace gpubench
