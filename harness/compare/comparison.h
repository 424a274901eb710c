// compare: how much faster one side is than the other, case by case and suite by suite. It tells and never judges.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/effect.h"
#include "harness/compare/invocation.h"
#include "harness/compare/matching.h"
#include "harness/compare/noise.h"

namespace gpubench {

/// What the interval of a ratio says. `same`: it lies within +-tau; `faster`, `slower`: it leaves 1 out; else `unsure`.
enum class Relation { faster, slower, same, unsure };
/// "FASTER", "SLOWER", "SAME", "UNSURE".
[[nodiscard]] std::string_view name(Relation relation);

/// How fast B is as a multiple of A (2: twice as fast), with its 95% interval.
struct Speed {
  double ratio = 1.0;
  double low = 1.0;
  double high = 1.0;
};

struct ComparedCase {
  std::string id;
  std::string suite;
  std::string unit;     ///< of the rates
  double rate_a = 0.0;  ///< headline rate
  double rate_b = 0.0;
  double median_a_ns = 0.0;
  double median_b_ns = 0.0;
  Speed speed;
  Relation relation = Relation::unsure;
  std::string note;  ///< why it is unsure whatever the interval says
};

/// The geometric mean of a suite's ratios.
struct SuiteSpeed {
  std::string suite;
  int cases = 0;
  Speed speed;
};

/// A case without a ratio, and why.
struct LoneCase {
  std::string id;
  std::string why;  ///< "only in B", "A: fail (3 of 64 elements ...)"
};

struct Comparison {
  std::vector<Difference> decisive;  ///< of the set-ups
  std::vector<Difference> telling;
  int runs_a = 0;  ///< invocations
  int runs_b = 0;
  NoiseSource source = NoiseSource::assumed;  ///< the weakest that a case rests on
  double assumed_spread = 0.0;
  std::vector<ComparedCase> cases;  ///< that passed on both sides and are the same work
  std::vector<SuiteSpeed> suites;
  std::vector<LoneCase> lone;
};

struct CompareRule {
  Tau tau{};
  const Noise* noise = nullptr;  ///< of the set-up of both sides
};

/// Neither side is empty. The interval is Student's on the log scale (effect.h), each case for itself. That of a
/// suite's mean treats the mean as one more case: half of the variance between runs is common to all cases of a run,
/// the other half averages out over them (an assumption).
[[nodiscard]] Comparison compare(std::span<const Invocation> a, std::span<const Invocation> b, const CompareRule& rule);

/// The evidence of a case that passed on both sides. `noise` may be null. `one_setup`: both sides have the same, so
/// that five runs of the baseline tell the noise of the candidate too.
[[nodiscard]] Evidence evidence_of(const MatchedCase& one, const Noise* noise, bool one_setup);

}  // namespace gpubench
