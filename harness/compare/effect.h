// The slowdown of a case and its uncertainty.
//
// Effects are differences of natural logs: 0.03 is 3% slower to first order, and ratios add up. An invocation (one
// process, one report) counts as one value, the log of its median. Samples don't: those of one process share its memory
// layout, clocks and neighbours, and say nothing about the next process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// A case in one invocation.
struct CaseRun {
  double log_median = 0.0;   ///< natural log of the median over valid rounds, in ns per run of the program
  double round_error = 0.0;  ///< standard error of the mean log round median, within this invocation
  int rounds = 0;
  int samples = 0;
  std::int64_t batch = 1;
  std::optional<double> sm_mhz{};  ///< median clock over the rounds, if the device reports it
  std::optional<double>
      cpu_pressure{};  ///< median over the rounds of the share of time in which a task waited for a CPU
  bool drifting = false;
};

/// Fewest and most runs per sample, of both sides.
struct Batches {
  std::int64_t least = 1, most = 1;
  /// Samples last a set time, so a slower case has fewer runs per sample. Beyond a ratio of 2 samples are not alike:
  /// launches overlap less, caches are colder.
  [[nodiscard]] bool differ() const { return static_cast<double>(most) > 2.0 * static_cast<double>(least); }
};
[[nodiscard]] Batches batches_of(std::span<const CaseRun> baseline, std::span<const CaseRun> candidate);
/// The largest ratio of times attributed to different batches.
inline constexpr double factor_of_batches = 1.5;

/// Noise of a case between runs, known before these runs.
struct Prior {
  double variance = 0.0;  ///< of the log median between invocations
  int runs = 0;           ///< invocations of the estimate: one more than its degrees of freedom
  /// Estimated from the baseline's invocations: their spread must not count twice.
  bool from_baseline = false;
};

struct Evidence {
  std::vector<CaseRun> baseline;
  std::vector<CaseRun> candidate;
  std::optional<Prior> prior{};
  std::optional<double> tau{};  ///< relevant change, if the case has its own
};

/// The smallest relevant change as a share of the time: 0.03 is 3%. Noisy suites, such as collectives, get a larger
/// one.
struct Tau {
  double all = 0.03;
  std::map<std::string, double> by_suite{};  ///< instead of `all`

  Tau() = default;
  Tau(double of_all) : all(of_all) {}  // NOLINT(google-explicit-constructor): mostly there is but the one

  [[nodiscard]] double of(const std::string& suite) const {
    const auto own = by_suite.find(suite);
    return own == by_suite.end() ? all : own->second;
  }
};

enum class NoiseSource {
  calibration,  ///< earlier invocations of one build, pooled with the spread within the sides
  sides,        ///< spread within the sides, shrunk towards the suite's median
  assumed,      ///< a default for the kind of device
  rounds        ///< for contenders of one run: between rounds taken in turns (compare_contenders())
};

struct Effect {
  double delta = 0.0;  ///< mean log median of the candidate minus that of the baseline
  double spread = 0.0;
  double error = 0.0;
  double degrees = 0.0;
  NoiseSource source = NoiseSource::assumed;
  double usual_spread = 0.0;  ///< expected spread: calibrated, or the suite's
};

/// Runs per side needed to estimate its spread.
inline constexpr int enough_runs = 3;
/// Invocations needed for a calibration to replace repeated runs.
inline constexpr int enough_calibration = 5;
/// Lower limit of the spread between invocations: the resolution of clocks.
inline constexpr double min_spread = 0.001;

/// Assumed standard deviation between runs: shared processor, GPU with varying clocks, GPU with a locked clock. 2.5 to
/// 5% was measured on a shared processor; the GPU's values are assumptions.
[[nodiscard]] double assumed_spread(std::string_view device_kind, bool clock_locked = false);

/// The effect of every case; each side needs at least one run.
///
/// With K_b and K_c invocations, their variances v_b and v_c, and a known s0^2 with d0 degrees of freedom:
///   s^2 = ((K_b - 1) v_b + (K_c - 1) v_c + d0 s0^2) / d,  d = K_b + K_c - 2 + d0,
///   error = s sqrt(1 / K_b + 1 / K_c).
///
/// s0^2 is the case's own from the calibration. Without one it is the median of the pooled variances of all cases with
/// at least 3 runs a side, and d0 = 4 (a moderated t: Smyth, "Linear models and empirical Bayes methods", 2004). With
/// neither, s^2 is `assumed`^2 plus the variance that rounds leave open, and d = 4.
///
/// s^2 is at least the mean variance of rounds within a run: three runs may agree by chance, and on a machine whose
/// speed changes every few seconds ten rounds of a run say no more than one.
[[nodiscard]] std::vector<Effect> effects_of(std::span<const Evidence> cases, double assumed);

}  // namespace gpubench
