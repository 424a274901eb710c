// The check: the outputs of an op against the fp64 textbook on the inputs that the op read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/program.h"
#include "harness/core/record.h"
#include "harness/core/tensor.h"
#include "reference/ops/definition.h"

namespace gpubench {

enum class CheckMode {
  off,
  sample,   ///< as much as the budget of work allows
  bitwise,  ///< as sample, and every element of outputs with one right value for each element
  own,      ///< every element of ops that an implementation under test runs; a sample of others
  full      ///< every element
};
template <>
inline constexpr auto enum_names<CheckMode> = std::to_array<std::string_view>({"off", "sample", "bitwise", "own",
                                                                               "full"});

struct SumsOfData {
  bool exact = false;  ///< no order of addition rounds a sum
  /// Results are whole multiples of this, exact in the output's type; 0 where they may be rounded.
  double multiple_of = 0.0;
  bool sparse = false;  ///< RevealingData::sparse: every element is judged
};
[[nodiscard]] inline SumsOfData sums_of(const RevealingData& data) { return {data.exact_sums, 0.0, data.sparse}; }

/// fp64 work for each tried fault: about 10 ms. About a hundred faults are tried, most of them on few elements.
inline constexpr double usual_cause_flop = 1e7;

struct JudgePolicy {
  CheckMode mode = CheckMode::sample;
  /// fp64 work of the textbook for this op. All elements are judged if the budget allows, else landmarks and a seeded
  /// sample spread evenly over the output.
  double flop_budget = 20e6;
  std::uint64_t seed = 0;
  int threads = 1;
  SumsOfData sums{};
  /// fp64 work of the textbook for one possible cause of wrong results (likely_cause.h); 0 skips the search.
  double cause_flop = 0.0;
  bool affordable_only = false;  ///< skips outputs of which even the smallest sample exceeds the budget
};

/// Views of one op's tensors. `inputs` are in host memory and hold the data that the op read: for updated storage, the
/// earlier content. Outputs may be on a device, unless the definition reads written outputs.
struct OpView {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  /// Elements of each output that are always judged, the most suspicious first; may be empty.
  std::span<const std::vector<std::int64_t>> suspects{};
};

/// Judges one op:
///  - every element of every output is scanned: leftover poison is "unwritten"; NaN, infinities, suspects and the
///    largest and smallest magnitudes are judged;
///  - judged elements must satisfy round(value - bound) <= got <= round(value + bound); NaN fails this comparison;
///  - outputs that must hold the same bits (all_reduce: on every rank) are compared in full;
///  - live mutations of the host copy (NaN, zero, sign, a step beyond the bound, bits of a lane) must be rejected, else
///    `not_proven`. A zero reference with a tight bound is proven by the other mutations;
///  - the verdict is `downgraded` if a quarter or more of the judged elements are wrong and all of these are right
///    within the bound of a lower precision (lower_precision.h);
///  - other wrong results are compared with the results of known faults, and the reason names the likely cause.
/// On exact data few elements are judged, and sums cover all others (projection.h).
/// `phase` is "check", "timed", "recheck", "exact" or "special". Never throws for wrong data; throws ProgramError for
/// an unknown op.
[[nodiscard]] OpParity judge(const Program& program, int op, const OpView& view, const JudgePolicy& policy,
                             std::string_view phase);

/// True if `got`, stored as `type`, is in the rounding interval of `judged`. NaN is accepted only where the textbook
/// gives NaN; an infinity where the textbook gives it or the interval reaches it.
[[nodiscard]] bool accepts(const Expected& judged, DType type, double got);

/// Judges candidates of a tuner (ResultJudge), so that no wrong one is chosen for its speed. The verdict on the chosen
/// one is judge()'s, on the case's data.
class CandidateJudge final : public ResultJudge {
 public:
  CandidateJudge(const Program& program, int op);
  /// `tensors`: of the inputs, then of the outputs.
  CandidateJudge(OpCall call, std::span<const TensorSpec> tensors);
  [[nodiscard]] std::string objection(std::span<const TensorView> inputs,
                                      std::span<const TensorView> outputs) const override;

 private:
  OpCall call_;
  std::vector<TensorSpec> inputs_, outputs_;
};

}  // namespace gpubench
