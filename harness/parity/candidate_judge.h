// The textbook's word on what a candidate for an op computes, for tuners (core/result_judge.h). The verdict on what is
// chosen is judge.h's, on the case's own data; this only keeps wrong results from winning for their speed.
#pragma once

#include "harness/core/program.h"
#include "harness/core/result_judge.h"

namespace gpubench {

class CandidateJudge final : public ResultJudge {
 public:
  /// The program must outlive it.
  CandidateJudge(const Program& program, int op) : program_(program), op_(op) {}
  [[nodiscard]] std::string objection(std::span<const TensorView> inputs,
                                      std::span<const TensorView> outputs) const override;

 private:
  const Program& program_;
  int op_;
};

}  // namespace gpubench
