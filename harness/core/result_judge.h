// Whether what a candidate computes is right, asked before it may be chosen for its speed. The harness answers: it has
// the textbook, which a backend must not see.
#pragma once

#include <span>
#include <string>

#include "harness/core/tensor.h"

namespace gpubench {

class ResultJudge {
 public:
  virtual ~ResultJudge() = default;
  /// Empty where a sample of the op's outputs lies within its bounds on these inputs, else by how much not: "130 of
  /// 4000 judged elements of 'y' outside their bound, by up to 2.1 times". In host memory; `inputs` as they were before
  /// the op ran. Throws ProgramError where there are more or fewer of them than the op has.
  [[nodiscard]] virtual std::string objection(std::span<const TensorView> inputs,
                                              std::span<const TensorView> outputs) const = 0;
};

}  // namespace gpubench
