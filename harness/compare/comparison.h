// compare: the ratio of speeds of two sides by case and suite, without a judgement. Cases are paired by id, which
// defines the work on every machine.
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

/// A case in the invocations of one side.
struct CaseOfSide {
  std::vector<const MeasuredCase*> cases;  ///< one per invocation with the case; they outlive this
  std::vector<CaseRun> runs;

  [[nodiscard]] bool planned() const { return !cases.empty(); }
  [[nodiscard]] bool passed() const { return !runs.empty(); }
  /// Null if all passed.
  [[nodiscard]] const MeasuredCase* unpassed() const;
  /// Geometric mean of the medians. Requires a pass.
  [[nodiscard]] double median_ns() const;
  /// The corresponding headline rate. Requires a pass.
  [[nodiscard]] double work_per_s() const;
};

struct MatchedCase {
  std::string id;
  std::string suite;
  std::string unit;
  CaseOfSide baseline;
  CaseOfSide candidate;

  [[nodiscard]] bool both_passed() const { return baseline.passed() && candidate.passed(); }
};

/// The cases of the baseline in order, then those only in the candidate.
[[nodiscard]] std::vector<MatchedCase> match(std::span<const Invocation> baseline,
                                             std::span<const Invocation> candidate);

/// Why the id means different work on the two sides; empty if it does not.
[[nodiscard]] std::string definition_conflict(const MatchedCase& one);

/// By the interval of a ratio. `same`: within +-tau; `faster`, `slower`: excludes 1; else `unsure`.
enum class Relation { faster, slower, same, unsure };
template <>
inline constexpr auto enum_names<Relation> = std::to_array<std::string_view>({"FASTER", "SLOWER", "SAME", "UNSURE"});

/// B's speed as a multiple of A's (2: twice as fast), with its 95% interval.
struct Speed {
  double ratio = 1.0;
  double low = 1.0;
  double high = 1.0;
};

struct ComparedCase {
  std::string id;
  std::string suite;
  std::string unit;
  double rate_a = 0.0;
  double rate_b = 0.0;
  double median_a_ns = 0.0;
  double median_b_ns = 0.0;
  Speed speed;
  Relation relation = Relation::unsure;
  std::string note{};  ///< why it is `unsure` whatever the interval
};

struct SuiteSpeed {
  std::string suite;
  int cases = 0;
  Speed speed;
};

struct UnmatchedCase {
  std::string id;
  std::string why;  ///< "only in B", "A: fail (3 of 64 elements ...)"
};

struct Comparison {
  std::vector<Difference> decisive;
  std::vector<Difference> telling;
  int runs_a = 0;
  int runs_b = 0;
  NoiseSource source = NoiseSource::assumed;  ///< the weakest of the cases
  double assumed_spread = 0.0;
  std::vector<ComparedCase> cases;  ///< passed on both sides, same work
  std::vector<SuiteSpeed> suites;
  std::vector<UnmatchedCase> lone;
};

struct CompareRule {
  Tau tau{};
  const Noise* noise = nullptr;  ///< null, or of the set-up of both sides
};

/// Both sides must not be empty. Case intervals are Student's on the log scale (effect.h). For a suite's mean it is
/// assumed that half of the variance between runs is common to all cases of a run; the other half averages out.
[[nodiscard]] Comparison compare(std::span<const Invocation> a, std::span<const Invocation> b, const CompareRule& rule);

[[nodiscard]] Speed speed_of(const Effect& effect);
/// Geometric means. `effects`: of `cases`, in order.
[[nodiscard]] std::vector<SuiteSpeed> suite_speeds(const std::vector<ComparedCase>& cases,
                                                   const std::vector<Effect>& effects);
[[nodiscard]] Tone tone_of(Relation relation);

/// For a case that passed on both sides. `noise` may be null. `one_setup`: the sides have one set-up, so that five runs
/// of the baseline give the noise of the candidate, too.
[[nodiscard]] Evidence evidence_of(const MatchedCase& one, const Noise* noise, bool one_setup);

struct SideLabel {
  std::string letter;
  std::vector<std::string> files;
  std::string device;
};

/// A pair of sides and its result; pairs share side A.
struct LabelledComparison {
  SideLabel a;
  SideLabel b;
  Comparison comparison;
};

/// Set-ups and their differences, a line per case (largest difference first), a line per suite, and the number of cases
/// without a ratio, with `style.verbosity` of 1 their names.
[[nodiscard]] std::string comparison_table(const LabelledComparison& one, const ConsoleStyle& style);
[[nodiscard]] std::string comparison_markdown(const LabelledComparison& one);
/// Schema "gpubench-comparison".
[[nodiscard]] Json comparison_json(std::span<const LabelledComparison> all);
[[nodiscard]] std::string comparison_csv(std::span<const LabelledComparison> all);

/// "A" to "Z", then "S27".
[[nodiscard]] std::string side_letter(std::size_t side);

/// "1.23x"; three digits, more near 1.
[[nodiscard]] std::string ratio_text(double ratio);
/// "[1.20x, 1.26x]"
[[nodiscard]] std::string interval_text(const Speed& speed);

// Implementations under test in one report (--impl, --versus): each is a side, compared by rounds taken in turns.

/// "reference" for the device's libraries, whose Case::contender is empty.
[[nodiscard]] std::string contender_title(const std::string& contender);

/// The values of Case::contender, each once, in the order of the cases.
[[nodiscard]] std::vector<std::string> contenders_of(std::span<const CaseRecord> cases);

[[nodiscard]] Report of_contender(const Report& report, const std::string& contender);

/// Compares two results of of_contender(). Their rounds were taken in turns in one process and are paired by pass: the
/// mean difference of log medians over n pairs, with standard error s / sqrt(n), at least min_spread, and n - 1
/// degrees of freedom.
///
/// Faster or slower: by tau or more, with Benjamini and Hochberg's q below 0.05 over all cases (gate_rule.h); same: the
/// 90% interval is within +-tau; else unsure. Intervals do not include differences between processes, such as the
/// layout of memory.
[[nodiscard]] Comparison compare_contenders(const Report& a, const Report& b, const Tau& tau = {});

/// Each contender of a run compared with `base` (Case::contender): a line per case with faster, slower, same or cannot
/// tell, and the geometric means. Empty without a contender to compare.
[[nodiscard]] std::string contenders_text(const Report& report, const std::string& base, const ConsoleStyle& style);

}  // namespace gpubench
