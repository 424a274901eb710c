// What a tuner's candidate computed, held against the textbook.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/program.h"
#include "harness/core/tensor.h"

namespace gpubench {

/// Judges with the textbook what a candidate for an op computed, for tuners (ResultJudge). This only keeps
/// wrong results from being chosen for their speed; the verdict on the chosen one is judge.h's, on the case's own data.
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
