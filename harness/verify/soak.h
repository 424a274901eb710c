// Soaking a device: repeats the same launches and compares each with judged bits, to find results that are wrong
// intermittently, when the device is hot, or in one of its units.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/backend.h"
#include "harness/run/run.h"

namespace gpubench {

struct SoakInterval {
  double at_s = 0.0;         ///< its end, since the soak began
  double seconds = 0.0;      ///< its length, without the textbook's time
  double device_s = 0.0;     ///< part of seconds: launches
  double clearing_s = 0.0;   ///< part of seconds: restoring state and poisoning outputs
  double comparing_s = 0.0;  ///< part of seconds: fingerprinting outputs
  std::int64_t launches = 0;
  std::int64_t ops = 0;  ///< in these launches
  double flop = 0.0;
  std::optional<RoundTelemetry> telemetry{};
};

/// A value after a launch, and the fingerprint of its storage.
struct SoakedValue {
  std::string op, kind, implementation, tensor;
  std::uint64_t print = 0;
};

/// Results of the launch that the textbook has judged and not rejected. Devices that soak from the same seed have the
/// same data in an epoch, so their results can be compared.
struct JudgedLaunch {
  std::int64_t epoch = 0;  ///< number of earlier judgements of all cases
  std::string case_id;
  std::vector<SoakedValue> values;  ///< in the order of the ops, each storage once
};

/// A launch whose bits differ from the judged ones.
struct Divergence {
  double at_s = 0.0;
  std::int64_t epoch = 0;
  std::string case_id;
  std::string text;                   ///< the op, the elements and bits that differ, and the next launch's result
  std::vector<std::uint64_t> left{};  ///< fingerprints, as JudgedLaunch::values
  std::optional<RoundTelemetry> telemetry{};  ///< since the interval began
  MemoryErrors errors_before{};               ///< when the interval began
  MemoryErrors errors_now{};
};

struct SoakEffort {
  double seconds = 300.0;  ///< after the first judgement of all cases
  double interval_s = 10.0;
  double recheck_s = 60.0;  ///< least time between judgements of all cases, each on other data
  /// Largest share of time for judgements, in which the device does not soak.
  double judging_share = 0.05;
};

/// Number of findings that are kept; all are counted.
inline constexpr std::size_t max_soak_findings = 100;

struct SoakResult {
  double seconds = 0.0;  ///< of the intervals; so are the next three
  double device_s = 0.0;
  double clearing_s = 0.0;
  double comparing_s = 0.0;
  double judging_s = 0.0;  ///< of the textbook
  std::int64_t launches = 0;
  std::int64_t ops = 0;
  double flop = 0.0;
  std::int64_t rechecks = 0;  ///< judgements of all cases
  std::vector<SoakInterval> intervals;
  std::vector<std::string> cases;
  std::vector<std::string> left_out;  ///< other cases, with reasons
  std::int64_t diverged = 0;          ///< launches
  std::vector<Divergence> divergences;
  std::int64_t rejected = 0;       ///< launches that the textbook rejected
  std::vector<std::string> wrong;  ///< reasons of rejections

  void add(SoakInterval interval);
  void add(Divergence divergence);
  void add_wrong(std::string what);
  /// Launches per second of device time, in the first interval and in the second half of the intervals.
  [[nodiscard]] double burst_rate() const;
  [[nodiscard]] double sustained_rate() const;
  [[nodiscard]] bool passed() const { return launches > 0 && diverged == 0 && rejected == 0; }
};

/// The smallest rate of independent faults for which `trials` trials without a fault have a probability of at most 5%.
[[nodiscard]] double excluded_rate(std::int64_t trials);

/// Called at each event, so that findings survive a crash. Any may be empty.
struct SoakObserver {
  /// Called before the first judgement, with the cases and those left out.
  std::function<void(const SoakResult&)> prepared{};
  std::function<void(const SoakInterval&)> interval{};
  std::function<void(const Divergence&)> divergence{};
  std::function<void(const std::string&)> wrong{};
  std::function<void(const JudgedLaunch&)> judged{};
  std::function<void(double seconds)> rechecked{};   ///< all cases
  std::function<void(std::string_view what)> now{};  ///< called before each launch
};

/// Runs the timed programs of `cases` in turn, with deterministic implementations, until the time is up or `stop` is
/// raised. Each launch starts from the same state and must give the fingerprints of the judged launch. A rejected case
/// waits for its next recheck. Cases that do not fit into half of the memory together are left out, as are cases of
/// several ranks. RunOptions::open_choices: the choices of another device.
[[nodiscard]] SoakResult soak(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                              const SoakEffort& effort, const SoakObserver& observer, const StopFlag& stop);

// A vote between devices that soak the same cases on the same data: a device that differs from a majority is wrong,
// even within the textbook's bounds.

/// The properties that must be equal for equal bits: "NVIDIA H200, 132 units, cublaslt 13.1, cudnn 9.12".
[[nodiscard]] std::string model_of(const DeviceInfo& device);

class SoakVote {
 public:
  explicit SoakVote(std::size_t devices) : models_(devices) {}

  /// Call first, for each device.
  void opened(std::size_t device, const DeviceInfo& info) { models_.at(device) = model_of(info); }

  // The next three return one sentence per finding. A launch is voted on once every device that has not ended has sent
  // it.

  /// "epoch 3, CASE: device 2 differs from the other 3 in op 'up' (gemm, by X), 'y'"; "devices 0 and 1 differ in op
  /// ...: there is no majority to say which is right".
  std::vector<std::string> judged(std::size_t device, const JudgedLaunch& launch);
  /// Finds that the device's judged launch is wrong if the others have the bits of `divergence`.
  std::vector<std::string> diverged(std::size_t device, const Divergence& divergence);
  /// Excludes the device from further votes.
  std::vector<std::string> ended(std::size_t device);

  /// Judged launches of two or more devices, with or without agreement.
  [[nodiscard]] std::int64_t voted() const { return voted_; }
  /// Reasons why results of some devices were not compared.
  [[nodiscard]] const std::set<std::string>& not_compared() const { return not_compared_; }

 private:
  using Devices = std::vector<std::size_t>;
  struct Ballot {
    std::map<std::size_t, std::vector<SoakedValue>> left;              ///< by device
    std::vector<std::pair<std::size_t, Divergence>> waiting;           ///< for the vote
    std::map<std::size_t, std::vector<std::uint64_t>> prints, others;  ///< after the vote: its own, the majority's
    bool is_voted = false;
  };
  using Launch = std::pair<std::string, std::int64_t>;  ///< case and epoch

  [[nodiscard]] bool is_complete(const Ballot& ballot) const;
  std::vector<std::string> vote(const Launch& launch, Ballot& ballot);
  void vote_among(const Devices& alike, const Launch& launch, Ballot& ballot, std::vector<std::string>& found);
  [[nodiscard]] std::vector<Devices> comparable(const Launch& launch, const Ballot& ballot);
  [[nodiscard]] static std::string verdict_on(std::size_t device, const Divergence& divergence, const Ballot& ballot);

  std::vector<std::string> models_;
  std::set<std::size_t> ended_;
  std::map<Launch, Ballot> ballots_;  ///< per case the latest two epochs that were voted on, and later ones
  std::set<std::string> not_compared_;
  std::int64_t voted_ = 0;
};

}  // namespace gpubench
