// The check: what an op left in memory, against the fp64 textbook on the inputs that the op actually read.
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

/// How much is judged.
enum class CheckMode {
  off,
  sample,   ///< what a budget of work allows
  bitwise,  ///< the same; of outputs of which each element has one right value, every element
  own,      ///< every element of ops that an implementation under test runs, what a budget of work allows of others
  full      ///< every element
};
template <>
inline constexpr auto enum_names<CheckMode> = std::to_array<std::string_view>({"off", "sample", "bitwise", "own",
                                                                               "full"});

/// What is known of the sums that the data of a launch make.
struct SumsOfData {
  bool exact = false;  ///< no order of adding up rounds one
  /// What results are whole multiples of, where the output's type holds each exactly; 0 where they may be rounded.
  double multiple_of = 0.0;
  bool sparse = false;  ///< RevealingData::sparse: everything is judged
};
[[nodiscard]] inline SumsOfData sums_of(const RevealingData& data) { return {data.exact_sums, 0.0, data.sparse}; }

/// Some 10 ms of textbook for each fault that is tried; a hundred are, most of them on few elements.
inline constexpr double usual_cause_flop = 1e7;

struct JudgePolicy {
  CheckMode mode = CheckMode::sample;
  /// fp64 work of the textbook for this op. Everything is judged where that fits, else landmarks and a seeded sample
  /// that is spread evenly over the output.
  double flop_budget = 20e6;
  std::uint64_t seed = 0;
  int threads = 1;
  SumsOfData sums{};
  /// fp64 work of the textbook for one fault that may be the cause of wrong results (likely_cause.h); 0: none is
  /// sought.
  double cause_flop = 0.0;
  bool affordable_only = false;  ///< outputs of which even the smallest sample exceeds the budget are left out
};

/// Views of one op's tensors. `inputs` hold what the op read: for updated storage, the content from before; they are
/// the host's. Outputs may be on a device, unless the definition reads what was written.
struct OpView {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  /// Elements of each output that must be judged whatever the sample is, the most suspicious first; or empty.
  std::span<const std::vector<std::int64_t>> suspects{};
};

/// Judges one op:
///  - every element of every output is scanned: poison left behind is "unwritten"; a NaN, an infinity, the suspects and
///    the largest and smallest magnitudes are judged;
///  - judged elements must satisfy round(value - bound) <= got <= round(value + bound); written so that NaN fails;
///  - outputs that must hold the same bits (all_reduce: on every rank) are compared in full;
///  - live mutations of the host copy (NaN, zero, sign, a step beyond the bound, bits of a lane) must be rejected, else
///  `not_proven`.
///    A zero reference with a tight bound is proven by the other mutations;
///  - where a quarter of what was judged is wrong, or more, and all of that is right within the bound of a lower
///    precision (lower_precision.h), the verdict is `downgraded` and names it.
///  - what is wrong otherwise is compared with what known faults leave, and the reason names the likely cause.
/// On exact data the elements are few, and sums tell whether any other is wrong (projection.h).
/// `phase` is "check", "timed", "recheck", "exact" or "special". Never throws for wrong data; throws ProgramError for
/// an unknown op.
[[nodiscard]] OpParity judge(const Program& program, int op, const OpView& view, const JudgePolicy& policy,
                             std::string_view phase);

/// True iff `got`, stored as `type`, is in the rounding interval of `judged`. NaN is accepted only where the textbook
/// itself says NaN (an op that read NaN), an infinity where it says that infinity or the interval reaches it.
[[nodiscard]] bool accepts(const Expected& judged, DType type, double got);

/// Judges with the textbook what a candidate for an op computed, for tuners (ResultJudge). This only keeps
/// wrong results from being chosen for their speed; the verdict on the chosen one is judge()'s, on the case's own data.
class CandidateJudge final : public ResultJudge {
 public:
  CandidateJudge(const Program& program, int op);
  /// `tensors`: of its inputs, then of its outputs.
  CandidateJudge(OpCall call, std::span<const TensorSpec> tensors);
  [[nodiscard]] std::string objection(std::span<const TensorView> inputs,
                                      std::span<const TensorView> outputs) const override;

 private:
  OpCall call_;
  std::vector<TensorSpec> inputs_, outputs_;
};

}  // namespace gpubench
