// compare: how much faster one side is than the other, case by case and suite by suite; it never judges. Cases are
// paired by id: the id is the work, on every machine.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/baseline.h"
#include "harness/compare/effect.h"
#include "harness/compare/invocation.h"
#include "harness/core/enum_names.h"
#include "harness/core/text/text_table.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// What one side says about a case, over its invocations.
struct CaseOfSide {
  std::vector<const MeasuredCase*> cases;  ///< one per invocation that has the case; they outlive this
  std::vector<CaseRun> runs;               ///< of those that passed

  [[nodiscard]] bool planned() const { return !cases.empty(); }
  [[nodiscard]] bool passed() const { return !runs.empty(); }
  /// The first one that did not pass; nullptr where all did.
  [[nodiscard]] const MeasuredCase* unpassed() const;
  /// Geometric mean of the medians. Passed only.
  [[nodiscard]] double median_ns() const;
  /// The headline rate that goes with it. Passed only.
  [[nodiscard]] double work_per_s() const;
};

struct MatchedCase {
  std::string id;
  std::string suite;
  std::string unit;  ///< of the headline rate
  CaseOfSide baseline;
  CaseOfSide candidate;

  [[nodiscard]] bool both_passed() const { return baseline.passed() && candidate.passed(); }
};

/// Every case of either side, in the order of the baseline, then those that only the candidate has.
[[nodiscard]] std::vector<MatchedCase> match(std::span<const Invocation> baseline,
                                             std::span<const Invocation> candidate);

/// Why one id stands for different work on the two sides; empty where it does not.
[[nodiscard]] std::string definition_conflict(const MatchedCase& one);

/// What the interval of a ratio says. `same`: it is within +-tau; `faster`, `slower`: it excludes 1; else `unsure`.
enum class Relation { faster, slower, same, unsure };
template <>
inline constexpr auto enum_names<Relation> = std::to_array<std::string_view>({"FASTER", "SLOWER", "SAME", "UNSURE"});

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
  std::string note{};  ///< why it is unsure whatever the interval says
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

/// The ratio of an effect with its interval.
[[nodiscard]] Speed speed_of(const Effect& effect);
/// The geometric means of `cases`, whose effects these are.
[[nodiscard]] std::vector<SuiteSpeed> suite_speeds(const std::vector<ComparedCase>& cases,
                                                   const std::vector<Effect>& effects);
[[nodiscard]] Tone tone_of(Relation relation);

/// The evidence of a case that passed on both sides. `noise` may be null. `one_setup`: both sides have the same, so
/// that five runs of the baseline tell the noise of the candidate too.
[[nodiscard]] Evidence evidence_of(const MatchedCase& one, const Noise* noise, bool one_setup);

// Comparisons for people and for programs.

/// One side in the head of a comparison.
struct SideLabel {
  std::string letter;              ///< "A", "B", "C"
  std::vector<std::string> files;  ///< one per invocation
  std::string device;              ///< its name
};

/// A pair of sides, and what came out; several share side A.
struct LabelledComparison {
  SideLabel a;
  SideLabel b;
  Comparison comparison;
};

/// Head with the set-ups and what differs, one line per case (the most different first), a line per suite, and how many
/// cases have no ratio; which ones, with `style.verbosity` of 1.
[[nodiscard]] std::string comparison_table(const LabelledComparison& one, const ConsoleStyle& style);
/// The same as GitHub's Markdown.
[[nodiscard]] std::string comparison_markdown(const LabelledComparison& one);
/// One document for all of them: schema "gpubench-comparison".
[[nodiscard]] Json comparison_json(std::span<const LabelledComparison> all);
/// One row per pair and case.
[[nodiscard]] std::string comparison_csv(std::span<const LabelledComparison> all);

/// What the side at this place is called: "A" to "Z", then "S27".
[[nodiscard]] std::string side_letter(std::size_t side);

/// "1.23x"; three digits, more near 1.
[[nodiscard]] std::string ratio_text(double ratio);
/// "[1.20x, 1.26x]"
[[nodiscard]] std::string interval_text(const Speed& speed);

// Implementations under test in one report (--impl, --versus): each as a side of its own, and how much faster one is
// than another by the rounds that they took in turns.

/// What a contender is called: "reference" for the device's own libraries (Case::contender is empty).
[[nodiscard]] std::string contender_title(const std::string& contender);

/// The values of Case::contender, each once, in the order of the cases.
[[nodiscard]] std::vector<std::string> contenders_of(std::span<const CaseRecord> cases);

/// The report with the cases of one contender only.
[[nodiscard]] Report of_contender(const Report& report, const std::string& contender);

/// Two contenders of one report, as from of_contender(). They were measured in one process, round by round in turns, so
/// a round of one is paired with the round of the other in the same pass: of n pairs the mean difference of log
/// medians, its standard error s / sqrt(n), n - 1 degrees of freedom, and no less than clocks can tell (least_spread).
///
/// Faster or slower: by tau or more, with Benjamini and Hochberg's q below 0.05 over all cases (gate_rule.h);
/// the same: the 90% interval within +-tau; else unsure. What another process would add, by its layout
/// of memory say, is in no interval.
[[nodiscard]] Comparison compare_contenders(const Report& a, const Report& b, const Tau& tau = {});

/// Of a run with several contenders: each against `base` (Case::contender), a line per case with the words faster,
/// slower, same or cannot tell, and the geometric means. Empty where there is nothing to compare.
[[nodiscard]] std::string contenders_text(const Report& report, const std::string& base, const ConsoleStyle& style);

}  // namespace gpubench
