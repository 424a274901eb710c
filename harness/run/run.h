// Running planned cases: the interface that the command line calls.
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

/// Implementations that plans must take: by case id, then by the op's label.
using Pins = std::map<std::string, std::map<std::string, std::string>>;

struct RunOptions {
  Tier tier = Tier::quick;               ///< sets the fp64 budget of the check, and the protocol where no preset does
  std::optional<Preset> preset{};        ///< sets the protocol
  std::optional<int> rounds{};           ///< exactly this many, instead of the protocol's stopping rule
  int locked_clock_mhz = 0;              ///< the SM clock that the user locked; 0: not locked
  std::optional<Slowdown> slowdown{};    ///< a fault for trying out gates
  std::optional<InjectedError> error{};  ///< a wrong result, to see what a failure looks like
  CheckMode check = CheckMode::sample;
  std::optional<double> check_flop{};  ///< fp64 work for judging a case, in each of check and recheck; else the tier's
  /// Called with each op that was judged, with what it read and wrote; may be empty.
  std::function<void(const Program&, int op, const OpView&, const OpParity&)> judged{};
  /// Arithmetic below what ops declare that is accepted (--arithmetic): names of LowerArithmetic.
  std::vector<std::string> arithmetic{};
  int rechecks = 0;  ///< more launches of each case after its rounds, each compared with what was checked
  std::uint64_t seed = 42;
  /// A worker may be silent for three times what its case should take, within these limits. A floor of 0: for ever.
  double deadline_floor_s = 30.0;
  double deadline_cap_s = 1800.0;
  double opening_deadline_s = 60.0;                      ///< the same for a new worker, until its first message
  double plan_limit_s = 0.0;                             ///< the floor while a case is prepared, where that is longer
  std::unordered_map<std::string, double> expected_s{};  ///< what cases should take, by key; 0 for others
  std::int64_t memory_limit_bytes = 0;                   ///< 0: what the device reports as available
  std::string rerun_prefix = "gpubench run";             ///< the start of rerun lines
  std::string save_failures{};                           ///< folder for the tensors of failing ops; empty: none
  bool energy = false;                                   ///< a window of 2 s for cases whose rounds are shorter
  bool deterministic = false;                            ///< only implementations that give the same bits in every run
  bool breakdown = true;                                 ///< ops of composite cases are timed alone as well
  Pins pins{};                                           ///< the backend chooses for all other ops
  std::map<std::string, std::int64_t> batches{};         ///< runs per sample by case id; estimated for others
  /// For a resumed run, by key: the cases that have their record and are not run again, and the rounds that others have
  /// so far.
  std::set<std::string> finished{};
  std::map<std::string, CaseRecord> in_flight{};
  /// Opens several ranks as one backend. Without it cases of more than one rank are unsupported. Throws Unsupported or
  /// BackendError, which become the records of the cases.
  /// `under_test` replaces ops on every rank; may be null.
  std::function<std::unique_ptr<Backend>(int ranks, const OwnImplementation* under_test)> open_ranks{};
  /// The implementations under test, which Case::contender names. A file is loaded by its first case, so that one which
  /// crashes costs its own cases only.
  std::vector<NamedImplementation> implementations{};
  /// Creates what reads the device's sensors around each round; may be empty.
  std::function<std::unique_ptr<Telemetry>(const DeviceInfo&)> open_telemetry{};
  /// Opens the choices of earlier runs on this device; nothing is cached if it is empty.
  std::function<std::unique_ptr<TuningCache>(const DeviceInfo&)> open_choices{};
  /// Decides, instead of the protocol, whether a case gets another round; called before each. May be empty.
  std::function<bool(const CaseRecord&)> another_round{};
  /// Called between the steps of a phase (ops, copies), to tell a working process from one that hangs. May be empty.
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
  /// A round has ended: the case so far, without the results of its check and with this round only; summary.rounds is
  /// its number, from 1.
  virtual void round(const CaseRecord& /*record*/) {}
  /// Something for the user that belongs to no case ("worker 2 died, starting another").
  virtual void note(std::string_view text) = 0;
  /// Called at least ten times a second while waiting, so that a progress line can move.
  virtual void tick() = 0;
};

/// Encodes records as text, so that this part needs no JSON; harness/report implements it.
class RecordCodec {
 public:
  virtual ~RecordCodec() = default;
  [[nodiscard]] virtual std::string encode(const CaseRecord& record) const = 0;
  /// Throws std::runtime_error if the text is not a record.
  [[nodiscard]] virtual CaseRecord decode(std::string_view text) const = 0;
};

/// Raised from a signal handler: 0, or the signal to stop for.
using StopFlag = std::atomic<int>;

/// Runs the cases in this process: prepares and checks a group that fits into memory together, times its rounds
/// interleaved in a seeded order, rechecks the timed launches. Every case gets exactly one record, in any order, except
/// those of RunOptions::finished, which have one. A case's exception becomes its record. Returns early, without the
/// unfinished cases, when `stop` is raised.
void run_in_process(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                    RunObserver& observer, const StopFlag& stop);

/// The worker's side: reads groups of case ids from `input_fd` until it closes, runs them, and writes records to
/// `output_fd`. `cases`: all declared cases (declared_cases), the same in worker and supervisor; the worker builds only
/// the programs of its own groups. Returns the process's exit status.
int serve(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options, const RecordCodec& codec,
          int input_fd, int output_fd);

/// How to start a worker: argv of this same program with the hidden flags that make it call serve(). The descriptors
/// are appended as --worker-input N --worker-output N.
struct WorkerCommand {
  std::vector<std::string> argv;
  /// Where its standard output and error go, a file opened to append: it is cut back to nothing where it becomes longer
  /// than longest_output_bytes. -1: to our standard error.
  int output_fd = -1;
  static constexpr std::int64_t longest_output_bytes = std::int64_t{16} << 20U;
};

/// The supervisor: hands groups of cases to a worker process, watches deadlines, and replaces a worker that crashed,
/// hung or sent garbage. The case that was running then gets a record with verdict `error`; the others continue in a
/// new worker. Every case gets exactly one record unless `stop` is raised, except those of RunOptions::finished.
void run_isolated(std::span<const PlannedCase> cases, const RunOptions& options, const WorkerCommand& worker,
                  const RecordCodec& codec, RunObserver& observer, const StopFlag& stop);

}  // namespace gpubench
