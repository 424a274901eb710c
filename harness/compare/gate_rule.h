// The rule of the gate: a case fails if it became slower by more than is relevant and more than chance explains.
//
// A test alone raises alarms in most suites of unchanged code; a fixed threshold alone works only far above the noise.
// The rule requires both, and is "inconclusive" if the numbers don't decide.
// tests/harness/compare/gate_simulation_test.cpp measures its error rates.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/effect.h"
#include "harness/core/enum_names.h"

namespace gpubench {

/// In the order of the decision.
enum class GateVerdict {
  parity_failed,  ///< the candidate fails its numeric check, or does not finish a case that the baseline passed
  missing,
  added,           ///< "new": in the candidate only
  not_comparable,  ///< same id, other work
  regressed,
  improved,
  unchanged,
  inconclusive
};
template <>
inline constexpr auto enum_names<GateVerdict> = std::to_array<std::string_view>(
    {"parity_failed", "missing", "new", "not_comparable", "regressed", "improved", "unchanged", "inconclusive"});

enum class InconclusiveReason {
  none,
  noise,          ///< the interval contains both "unchanged" and a relevant difference
  unknown_noise,  ///< too few runs a side without calibration
  few_samples,    ///< fewer than 5 valid rounds of 5 samples
  batch,          ///< the sides have different runs per sample, which may explain the difference
  bimodal,        ///< runs of one side differ by more than noise: the case has several speeds
  clock,          ///< the device's clock differed and explains the difference
  busy,           ///< other processes used the processors more than half of the time
  drift           ///< drift within a run, and too few runs to know whether it always occurs
};
template <>
inline constexpr auto enum_names<InconclusiveReason> = std::to_array<std::string_view>(
    {"none", "noise", "unknown_noise", "few_samples", "batch", "bimodal", "clock", "busy", "drift"});

struct GateRule {
  double tau = 0.03;  ///< relevant change: 0.03 is 3%; for cases without their own
  /// The accepted share of false findings, Benjamini and Hochberg's q; also the share of unchanged gates that fail if
  /// noise exceeds tau.
  double false_findings = 0.01;
  double assumed_spread = 0.03;
};

struct Judgement {
  GateVerdict verdict = GateVerdict::inconclusive;
  InconclusiveReason doubt = InconclusiveReason::none;
  Effect effect;
  std::optional<double> q_slower{}, q_faster{};  ///< set if the noise is known
  double low95 = 0.0, high95 = 0.0;              ///< of delta; not corrected for the number of cases
  /// detectable_slowdown(), if the noise is known and the processor was not busy.
  std::optional<double> detectable{};
  /// For an inconclusive case: more runs a side, beyond those of the smaller side, that would settle the same
  /// difference and noise. Not set if that takes 200 or more, or if more runs don't help.
  std::optional<int> more_runs{};
};

/// A judgement per case, in order; every case was measured on both sides.
///
/// Regressed: q < 0.01 for slower over all cases, and delta >= log(1 + tau). Improved: the mirror image. Unchanged: the
/// 90% interval is within +-log(1 + tau). With assumed noise, regressed needs delta > max(log(1 + tau), 5 sqrt(2)
/// assumed), improved the mirror image, and nothing is unchanged. With different batches (effect.h), regressed needs an
/// interval beyond factor_of_batches, improved the mirror image. Throws std::invalid_argument for tau outside (0, 10).
[[nodiscard]] std::vector<Judgement> judge_cases(std::span<const Evidence> cases, const GateRule& rule);

/// The uncertainty of delta.
struct Precision {
  double error = 0.0;
  double degrees = 0.0;
};
/// With `runs` runs a side of this spread. `prior_degrees`: degrees of freedom of the known spread.
[[nodiscard]] Precision precision_of(double spread, double prior_degrees, int runs);

/// The slowdown, as a fraction, that a gate detects with 90% power among `tests` cases:
///   log(1 + slowdown) = max(log(1 + tau), t(1 - q / tests, degrees) error) + t(0.9, degrees) error
[[nodiscard]] double detectable_slowdown(const Precision& precision, double tests, const GateRule& rule);

/// Detectable slowdowns of cases with known noise on processors that were not busy.
struct Power {
  double median = 0.0;
  double worst_tenth = 0.0;
  /// Fewest runs a side that detect twice tau in half of the cases. Not set above 200.
  std::optional<int> runs_for_twice_tau{};
};
/// Not set if there are none. `judgements`: of `cases`.
[[nodiscard]] std::optional<Power> power_of(std::span<const Evidence> cases, std::span<const Judgement> judgements,
                                            const GateRule& rule);

/// Set if most cases moved the same way: at least 20 cases, median beyond 1%, 70% of one sign. Reported, never
/// subtracted: a lost compiler flag looks like a slower machine.
struct CommonShift {
  double median = 0.0;  ///< of logs
  double share = 0.0;   ///< of cases that moved this way
};
[[nodiscard]] std::optional<CommonShift> common_shift(std::span<const Judgement> judgements);

/// Benjamini and Hochberg's adjusted p-values, in the order of `p`: with findings at q < 0.01 at most 1% of them are
/// false on average. For the i-th smallest of n: the least p_j n / j over j >= i, at most 1. Source: Benjamini,
/// Hochberg, "Controlling the false discovery rate", J. R. Statist. Soc. B 57 (1995).
[[nodiscard]] std::vector<double> false_discovery_rates(std::span<const double> p);

}  // namespace gpubench
