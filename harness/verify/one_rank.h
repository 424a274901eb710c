// Whether ranks that share a training step train as one rank does on all of the batch.
//
// That every op is right says nothing of the program that they make up: a reduction that is not there, a norm of one
// rank's gradients, a bias added by every rank. So both programs are run in fp64, by the textbook, from the same
// sources, and what they lead to is compared, first things first: the loss, each parameter's gradient before it is
// clipped, the gradients' norm, the weights. In exact arithmetic all are the same; what is allowed is what fp64 rounds.
// Only for small programs.
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

/// What a step leads to, in the order in which it does.
enum class StepStage { loss, gradient, norm, weight };
template <>
inline constexpr auto enum_names<StepStage> = std::to_array<std::string_view>({"loss", "gradient", "norm", "weight"});

/// What something of a rank is beside what one rank has.
enum class DivergenceKind {
  times,    ///< a factor too large or too small
  addend,   ///< a part of a sum over ranks
  unalike,  ///< not the same on ranks that should have the same
  other
};
template <>
inline constexpr auto enum_names<DivergenceKind> = std::to_array<std::string_view>({"times", "addend", "unalike",
                                                                                    "other"});

struct StepDivergence {
  StepStage stage = StepStage::loss;
  DivergenceKind kind = DivergenceKind::other;
  std::string parameter;     ///< of a gradient or weight
  std::string text;          ///< "the gradient of 'ln1.gamma' is an addend of it on ranks 0, 1: not reduced over tp"
  std::string activation{};  ///< where the loss is another: the first activation that is
};

/// The numbers that a step leads to, by rank and parameter.
struct StepResult {
  struct OfRank {
    std::vector<double> losses;  ///< of each micro-batch
    std::optional<double> norm;
    std::map<std::string, std::vector<double>, std::less<>> gradients, weights;
    std::map<std::string, std::vector<double>, std::less<>> activations;  ///< as they are left in the end
  };
  std::map<int, OfRank> ranks;
};

/// Runs a step's program once, in fp64, from the sources of (case_key, seed). `parameters`: the step whose optimizers
/// say what is trained, with the same values: that of which `step` is a faulty copy.
[[nodiscard]] StepResult step_result(const Program& step, std::string_view case_key, std::uint64_t seed,
                                     const Program& parameters);
[[nodiscard]] inline StepResult step_result(const Program& step, std::string_view case_key, std::uint64_t seed) {
  return step_result(step, case_key, seed, step);
}

/// The earliest stage at which `many`, the result of the ranks of `program`, is not what one rank has (or each of
/// several that share nothing: then the first), and there what most of its tensors are; none where all is the same.
/// `program` says which part of each tensor a rank has. Losses are averaged over the ranks.
[[nodiscard]] std::optional<StepDivergence> divergence(const StepResult& one, const StepResult& many,
                                                       const Program& program);

/// The step on one rank, with the whole batch of all. None where that is another step: where its workload has no batch
/// axis, or does not do as much work, or normalizes over the batch.
[[nodiscard]] std::optional<Program> step_of_one_rank(const Workload& workload, const Case& c);

}  // namespace gpubench
