// Soaking a device: the same launches over and over, each held against bits that were judged, to find results that are
// wrong now and then, when the device is hot, or in one of its units.
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

/// The work of some time. Launches are of whole programs.
struct SoakInterval {
  double at_s = 0.0;         ///< its end, since the soak began
  double seconds = 0.0;      ///< how long it was, without what the textbook took
  double device_s = 0.0;     ///< of these, in launches
  double clearing_s = 0.0;   ///< of these, restoring what launches change and poisoning what they leave
  double comparing_s = 0.0;  ///< of these, fingerprinting what they left
  std::int64_t launches = 0;
  std::int64_t ops = 0;  ///< in these launches
  double flop = 0.0;
  std::optional<RoundTelemetry> telemetry{};
};

/// A value that a launch left, and the fingerprint of its storage.
struct SoakedValue {
  std::string op, kind, implementation, tensor;
  std::uint64_t print = 0;
};

/// What the launch left that the textbook has judged and not rejected. Every device that soaks from the same seed has
/// the same data in an epoch, so what they leave can be compared.
struct JudgedLaunch {
  std::int64_t epoch = 0;  ///< how often the textbook had judged all cases before
  std::string case_id;
  std::vector<SoakedValue> values;  ///< in the order of the ops, each storage once
};

/// A launch that left other bits than the textbook has judged.
struct Divergence {
  double at_s = 0.0;
  std::int64_t epoch = 0;
  std::string case_id;
  std::string text;                   ///< the op, which elements differ in which bits, and what the next launch left
  std::vector<std::uint64_t> left{};  ///< fingerprints, as JudgedLaunch::values
  std::optional<RoundTelemetry> telemetry{};  ///< since the interval began
  MemoryErrors errors_before{};               ///< when the interval began
  MemoryErrors errors_now{};
};

struct SoakEffort {
  double seconds = 300.0;  ///< once everything has been judged for the first time
  double interval_s = 10.0;
  double recheck_s = 60.0;  ///< how often, at most, the textbook judges everything anew, on other data
  /// Of all the time, what this may take. The device does nothing meanwhile, or on a CPU something else.
  double judging_share = 0.05;
};

/// The first of them are kept, of all how many there were.
inline constexpr std::size_t max_soak_findings = 100;

struct SoakResult {
  double seconds = 0.0;  ///< of the intervals; so are the next three
  double device_s = 0.0;
  double clearing_s = 0.0;
  double comparing_s = 0.0;
  double judging_s = 0.0;  ///< that the textbook took
  std::int64_t launches = 0;
  std::int64_t ops = 0;
  double flop = 0.0;
  std::int64_t rechecks = 0;  ///< how often the textbook has judged all cases
  std::vector<SoakInterval> intervals;
  std::vector<std::string> cases;     ///< that took part
  std::vector<std::string> left_out;  ///< and why the others did not
  std::int64_t diverged = 0;          ///< launches
  std::vector<Divergence> divergences;
  std::int64_t rejected = 0;       ///< launches that the textbook has rejected
  std::vector<std::string> wrong;  ///< why

  void add(SoakInterval interval);
  void add(Divergence divergence);
  void add_wrong(std::string what);
  /// Launches a second that the device ran, in the first interval; in the second half of the intervals.
  [[nodiscard]] double burst_rate() const;
  [[nodiscard]] double sustained_rate() const;
  [[nodiscard]] bool passed() const { return launches > 0 && diverged == 0 && rejected == 0; }
};

/// The smallest rate of faults, each on its own, of which `trials` without one leave a chance of 5% at most.
[[nodiscard]] double excluded_rate(std::int64_t trials);

/// Told of as they happen, so that they are kept whatever comes. Any may be empty.
struct SoakObserver {
  /// Before anything is judged: the cases, and those left out.
  std::function<void(const SoakResult&)> prepared{};
  std::function<void(const SoakInterval&)> interval{};
  std::function<void(const Divergence&)> divergence{};
  std::function<void(const std::string&)> wrong{};
  std::function<void(const JudgedLaunch&)> judged{};
  std::function<void(double seconds)> rechecked{};   ///< all cases, which took so long
  std::function<void(std::string_view what)> now{};  ///< called before each launch: what comes next
};

/// Runs the timed programs of `cases` in turn, by implementations that give the same bits each time, until the time is
/// up or `stop` is raised. Each launch begins from the same state; what it leaves must have the fingerprints of what
/// the textbook has judged. A case that the textbook has rejected waits for its next recheck. Cases that do not fit
/// into half of the memory together are left out, as are those of several ranks. RunOptions::open_choices: of
/// implementations that have to be timed, those that another device has chosen.
[[nodiscard]] SoakResult soak(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                              const SoakEffort& effort, const SoakObserver& observer, const StopFlag& stop);

// Several devices that soak the same cases on the same data vote: a device whose bits are another's nowhere else is
// wrong, even where the textbook's bounds let it pass.

/// What has to be alike for two devices to leave the same bits: "NVIDIA H200, 132 units, cublaslt 13.1, cudnn 9.12".
[[nodiscard]] std::string model_of(const DeviceInfo& device);

class SoakVote {
 public:
  explicit SoakVote(std::size_t devices) : models_(devices) {}

  /// Call first of all for each device.
  void opened(std::size_t device, const DeviceInfo& info) { models_.at(device) = model_of(info); }

  // Each returns what comes out of it, a sentence for each finding: a launch is voted on once every device that has not
  // ended has left it.

  /// "epoch 3, CASE: device 2 differs from the other 3 in op 'up' (gemm, by X), 'y'"; "devices 0 and 1 differ in op
  /// ...: there is no majority to say which is right".
  std::vector<std::string> judged(std::size_t device, const JudgedLaunch& launch);
  /// Where the others have what this launch left: then it is the judged one that is wrong.
  std::vector<std::string> diverged(std::size_t device, const Divergence& divergence);
  /// The device takes no part from now on.
  std::vector<std::string> ended(std::size_t device);

  /// Judged launches that two devices or more have left, and agreed on or not.
  [[nodiscard]] std::int64_t voted() const { return voted_; }
  /// Why what some devices left was compared with nobody's, each reason once.
  [[nodiscard]] const std::set<std::string>& not_compared() const { return not_compared_; }

 private:
  using Devices = std::vector<std::size_t>;
  struct Ballot {
    std::map<std::size_t, std::vector<SoakedValue>> left;              ///< by device
    std::vector<std::pair<std::size_t, Divergence>> waiting;           ///< until it has been voted on
    std::map<std::size_t, std::vector<std::uint64_t>> prints, others;  ///< then: its own, and what most others left
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
  std::map<Launch, Ballot> ballots_;  ///< of each case the latest two epochs that were voted on, and later ones
  std::set<std::string> not_compared_;
  std::int64_t voted_ = 0;
};

}  // namespace gpubench
