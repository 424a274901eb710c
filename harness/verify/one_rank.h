// Whether ranks that share a training step train as one rank does on the whole batch.
//
// Correct ops can form a wrong program: a missing reduction, a norm of one rank's gradients, a bias added by every
// rank. So the textbook runs both programs in fp64 from the same sources and compares, in this order, the loss, each
// parameter's gradient before clipping, the gradients' norm, and the weights. In exact arithmetic they are equal; the
// bound is fp64 rounding. Only for small programs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/enum_names.h"
#include "harness/core/workload.h"

namespace gpubench {

/// Results of a step, in order.
enum class StepStage { loss, gradient, norm, weight };
template <>
inline constexpr auto enum_names<StepStage> = std::to_array<std::string_view>({"loss", "gradient", "norm", "weight"});

/// How a rank's tensor differs from the single-rank tensor.
enum class DivergenceKind {
  times,    ///< off by a factor
  addend,   ///< a part of a sum over ranks
  unalike,  ///< different on ranks that must have equal tensors
  other
};
template <>
inline constexpr auto enum_names<DivergenceKind> = std::to_array<std::string_view>({"times", "addend", "unalike",
                                                                                    "other"});

struct StepDivergence {
  StepStage stage = StepStage::loss;
  DivergenceKind kind = DivergenceKind::other;
  std::string parameter;     ///< of a gradient or weight
  std::string text;          ///< "the gradient of 'ln1.gamma' is only an addend on ranks 0, 1: not reduced over tp"
  std::string activation{};  ///< if the loss differs: the first activation that does
};

struct StepResult {
  struct OfRank {
    std::vector<double> losses;  ///< of each micro-batch
    std::optional<double> norm;
    std::map<std::string, std::vector<double>, std::less<>> gradients, weights;
    std::map<std::string, std::vector<double>, std::less<>> activations;  ///< after the step
  };
  std::map<int, OfRank> ranks;
};

/// Runs a step's program once, in fp64, from the sources of (case_key, seed). `parameters`: a step with the same values
/// whose optimizers define the trained parameters: the original of a faulty `step`.
[[nodiscard]] StepResult step_result(const Program& step, std::string_view case_key, std::uint64_t seed,
                                     const Program& parameters);
[[nodiscard]] inline StepResult step_result(const Program& step, std::string_view case_key, std::uint64_t seed) {
  return step_result(step, case_key, seed, step);
}

/// The earliest stage at which `many`, the result of the ranks of `program`, differs from `one` (of several independent
/// ranks: the first), and the kind of most tensors there; empty if all are equal. `program` defines each rank's part of
/// a tensor. Losses are averaged over the ranks.
[[nodiscard]] std::optional<StepDivergence> divergence(const StepResult& one, const StepResult& many,
                                                       const Program& program);

/// The step on one rank with the batches of all. Empty if that is another step: its workload has no batch axis, does
/// another amount of work, or normalizes over the batch.
[[nodiscard]] std::optional<Program> step_of_one_rank(const Workload& workload, const Case& c);

}  // namespace gpubench
