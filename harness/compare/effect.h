// How much slower a case became, and how far that number can be trusted.
//
// All effects are differences of logs: 0.03 is 3% slower to first order, and ratios add up.
//
// The unit of evidence is the invocation (one process, one report), not the sample: samples of one process share its
// memory layout, its clocks and its neighbours, so that a thousand of them say no more about the next process than one
// does. Each invocation of a case counts as one value, the log of its median.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// A case as one invocation measured it.
struct CaseRun {
  double log_median = 0.0;   ///< natural log of the median over all valid rounds, in nanoseconds per run of the program
  double round_error = 0.0;  ///< standard error of the mean log round median: what this invocation itself knows
  int rounds = 0;            ///< valid ones
  int samples = 0;           ///< in the valid round that has the fewest
  std::int64_t batch = 1;    ///< runs per sample
  std::optional<double> sm_mhz{};  ///< median clock over the rounds, if the device reports it
  std::optional<double>
      cpu_pressure{};     ///< median over the rounds of the share of time in which a task waited for a CPU
  bool drifting = false;  ///< its later rounds differ from its earlier ones
};

/// The fewest and the most runs per sample of both sides.
struct Batches {
  std::int64_t least = 1, most = 1;
  /// Samples last a set time, so a case that becomes slower has fewer runs per sample: one that is 4 times slower has a
  /// quarter of them. Beyond a ratio of 2 samples are of another kind: launches overlap less, caches are colder.
  [[nodiscard]] bool differ() const { return static_cast<double>(most) > 2.0 * static_cast<double>(least); }
};
[[nodiscard]] Batches batches_of(std::span<const CaseRun> baseline, std::span<const CaseRun> candidate);
/// The largest ratio of times that other batches alone are taken to explain.
inline constexpr double factor_of_batches = 1.5;

/// Run-to-run noise of a case that was known before these runs.
struct Prior {
  double variance = 0.0;  ///< of the log median, from one invocation to the next
  int runs = 0;           ///< invocations that it was estimated from; one degree of freedom less
  /// The baseline's own invocations are that estimate, so that their spread must not count a second time.
  bool from_baseline = false;
};

/// One case on both sides.
struct Evidence {
  std::vector<CaseRun> baseline;
  std::vector<CaseRun> candidate;
  std::optional<Prior> prior{};
  std::optional<double> tau{};  ///< a change that matters, where this case has its own
};

/// How large a change must be to matter, as a share of the time: 0.03 is 3%. Collectives, say, are noisier than
/// products, and so are asked for more.
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

/// Where the run-to-run noise that an effect is compared with comes from.
enum class NoiseSource {
  calibration,  ///< earlier invocations of one build, pooled with the spread within the sides
  sides,        ///< the spread within the sides, drawn towards the suite's median spread
  assumed,      ///< not measured: a default for the kind of device
  rounds        ///< of contenders of one run: from one round taken in turns to the next (compare_contenders())
};

struct Effect {
  double delta = 0.0;   ///< mean log median of the candidate less that of the baseline
  double spread = 0.0;  ///< standard deviation of one invocation
  double error = 0.0;   ///< standard error of delta
  double degrees = 0.0;
  NoiseSource source = NoiseSource::assumed;
  double usual_spread = 0.0;  ///< what the case was expected to have: calibrated, or the suite's
};

/// Runs of one side below which its own spread says too little.
inline constexpr int enough_runs = 3;
/// Invocations below which a calibration cannot stand in for repeated runs.
inline constexpr int enough_calibration = 5;
/// The least that invocations vary by: clocks are not read more precisely.
inline constexpr double least_spread = 0.001;

/// Run-to-run standard deviation to assume where it was not measured: a processor shared with others, a GPU whose
/// clocks move, one whose clock is locked. (2.5 to 5% was seen on a shared processor; those of the GPU are
/// assumptions.)
[[nodiscard]] double assumed_spread(std::string_view device_kind, bool clock_locked = false);

/// The effect of every case. Each side of each case has at least one run.
///
/// With K_b and K_c invocations, v_b and v_c their variances, and s0^2 with d0 degrees of freedom known before:
///   s^2 = ((K_b - 1) v_b + (K_c - 1) v_c + d0 s0^2) / d,  d = K_b + K_c - 2 + d0,  error = s sqrt(1 / K_b + 1 / K_c).
/// s0^2 is the case's own from the calibration; without one it is the median of the pooled variances of all cases with
/// at least 3 runs a side, and d0 = 4 (a moderated t: Smyth, "Linear models and empirical Bayes methods", 2004).
/// s^2 is never below the mean variance of rounds within a run. By luck three runs lie closer together than that, and
/// where a machine has two speeds that last for seconds (another's work on the same core), ten rounds of a run tell
/// no more than one. With neither, s^2 is `assumed`^2 plus what the rounds themselves leave open, and d = 4.
[[nodiscard]] std::vector<Effect> effects_of(std::span<const Evidence> cases, double assumed);

}  // namespace gpubench
