// The rule of the gate: which cases became slower, by more than matters and more than chance explains.
//
// A test alone alarms in most suites of unchanged code, a fixed threshold alone works only far above the noise; the
// rule asks for both, and says "inconclusive" where the numbers cannot tell. How well it does is measured by
// tests/harness/compare/gate_simulation_test.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/effect.h"
#include "harness/core/enum_names.h"

namespace gpubench {

/// In the order in which they are tried.
enum class GateVerdict {
  parity_failed,   ///< the candidate's numeric check failed, or it did not get through a case that the baseline passed
  missing,         ///< in the baseline only
  added,           ///< "new": in the candidate only
  not_comparable,  ///< the same id over other work
  regressed,
  improved,
  unchanged,
  inconclusive
};
template <>
inline constexpr auto enum_names<GateVerdict> = std::to_array<std::string_view>(
    {"parity_failed", "missing", "new", "not_comparable", "regressed", "improved", "unchanged", "inconclusive"});

/// Why a case is inconclusive.
enum class InconclusiveReason {
  none,
  noise,          ///< the interval holds both "unchanged" and a difference that matters
  unknown_noise,  ///< too few runs a side, and no calibration
  few_samples,    ///< fewer than 5 valid rounds of 5 samples
  batch,          ///< samples of the sides are of different numbers of runs, which may explain the difference
  bimodal,        ///< runs of one side differ by more than noise does: the case has several speeds
  clock,          ///< the device's clock differed, and explains it
  busy,           ///< other work took the processors, more often than not
  drift           ///< it drifted within a run, and there are too few runs to know that it does so always
};
template <>
inline constexpr auto enum_names<InconclusiveReason> = std::to_array<std::string_view>(
    {"none", "noise", "unknown_noise", "few_samples", "batch", "bimodal", "clock", "busy", "drift"});

struct GateRule {
  double tau = 0.03;             ///< a change that matters, of cases without their own: 0.03 is 3%
  /// Share of findings that may be false, Benjamini and Hochberg's q; also the share of unchanged gates that fail where
  /// noise is larger than tau.
  double false_findings = 0.01;
  double assumed_spread = 0.03;  ///< effect.h
};

/// What the rule says about one case, with its numbers.
struct Judgement {
  GateVerdict verdict = GateVerdict::inconclusive;
  InconclusiveReason doubt = InconclusiveReason::none;
  Effect effect;
  std::optional<double> q_slower{}, q_faster{};  ///< where the noise is known
  double low95 = 0.0, high95 = 0.0;              ///< of delta; no correction for many cases
  /// `detectable_slowdown` of a case whose noise is known, and that ran on a processor that was not busy.
  std::optional<double> detectable{};
  /// Of an inconclusive case: runs a side, beyond those of the side with fewer, after which the same difference and
  /// noise would be settled. Empty where no number below 200 does, or where more runs are not what is missing.
  std::optional<int> more_runs{};
};

/// One judgement per case, in order. Every case was measured on both sides.
///
/// Slower with q < 0.01 over all cases and delta >= log(1 + tau): regressed; the mirror: improved; the 90% interval
/// within +-log(1 + tau): unchanged. Where the noise is only assumed, regressed needs
/// delta > max(log(1 + tau), 5 sqrt(2) assumed), and improved the mirror; nothing else is concluded. Where batches
/// differ (effect.h), regressed needs an interval beyond factor_of_batches, and improved the mirror. Throws
/// std::invalid_argument for a tau that is not in (0, 10).
[[nodiscard]] std::vector<Judgement> judge_cases(std::span<const Evidence> cases, const GateRule& rule);

/// How well delta is known.
struct Precision {
  double error = 0.0;  ///< its standard error
  double degrees = 0.0;
};
/// With `runs` runs a side of this spread; `prior_degrees`: what was known of the spread before.
[[nodiscard]] Precision precision_of(double spread, double prior_degrees, int runs);

/// The slowdown, as a fraction, that a gate detects with 90% power:
///   log(1 + slowdown) = max(log(1 + tau), t(1 - q / tests, degrees) error) + t(0.9, degrees) error
/// `tests` is the number of cases that are tested together.
[[nodiscard]] double detectable_slowdown(const Precision& precision, double tests, const GateRule& rule);

/// Detectable slowdowns over the tested cases that have one: the noise is known, and the processor was not busy.
struct Power {
  double median = 0.0;       ///< half of the cases detect this
  double worst_tenth = 0.0;  ///< 90% of the cases detect this
  /// Fewest runs a side with which half of the cases detect twice tau. Empty above 200.
  std::optional<int> runs_for_twice_tau{};
};
/// Empty if there is none. `judgements` are those of `cases`.
[[nodiscard]] std::optional<Power> power_of(std::span<const Evidence> cases, std::span<const Judgement> judgements,
                                            const GateRule& rule);

/// Where most cases moved the same way: at least 20 cases, median beyond 1%, 70% of one sign. A lost compiler flag
/// looks like a slower machine, so it is reported and never subtracted.
struct CommonShift {
  double median = 0.0;  ///< log
  double share = 0.0;   ///< of cases that moved this way
};
[[nodiscard]] std::optional<CommonShift> common_shift(std::span<const Judgement> judgements);

/// Benjamini and Hochberg's adjusted p-values, in the order of `p`: calling everything with q < 0.01 a finding makes at
/// most 1% of the findings false on average. For the i-th smallest of n: the least p_j n / j over j >= i, at most 1.
/// Source: Benjamini, Hochberg, "Controlling the false discovery rate", J. R. Statist. Soc. B 57 (1995).
[[nodiscard]] std::vector<double> false_discovery_rates(std::span<const double> p);

}  // namespace gpubench
