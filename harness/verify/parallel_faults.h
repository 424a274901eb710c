// What goes wrong when ranks share a training step, as changes to its program: every op is right, and what they make up
// is not. Each class is one that frameworks had; what finds it is the comparison with one rank (one_rank.h), by the
// stage and the divergence that are named here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/verify/one_rank.h"

namespace gpubench {

struct ParallelFaultClass {
  std::string_view name;              ///< "gradient not reduced"
  std::string_view where;             ///< "tensor parallel", "sequence parallel", "data parallel"
  StepStage stage;                    ///< at which it must be found first
  std::vector<DivergenceKind> kinds;  ///< one of which it must be found to be
};
[[nodiscard]] std::span<const ParallelFaultClass> parallel_fault_classes();

/// A program with one fault.
struct FaultyStep {
  std::size_t fault_class = 0;  ///< in parallel_fault_classes()
  std::string place;            ///< the label of the op, or the name of the tensor, that is wrong
  Program program;
};

/// The places at which a class of faults can be put into a step of several ranks, at most `most`, the first and the
/// last among them.
[[nodiscard]] std::vector<FaultyStep> faulty_steps(const Program& step, std::size_t fault_class, std::size_t most);

}  // namespace gpubench
