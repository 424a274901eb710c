// Soaking a device: the same launches over and over, each held against bits that were judged, to find results that are
// wrong now and then, when the device is hot, or in one of its units.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
inline constexpr std::size_t most_soak_findings = 100;

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

}  // namespace gpubench
