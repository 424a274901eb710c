// A training step whose large tensors are shared by several ranks, each of which does its part of the work on the whole
// batch. Shoeybi et al., "Megatron-LM", arXiv 1909.08053: linear layers cut by columns, those behind them by rows,
// attention by heads; norms and residuals on a part of the tokens each: Korthikanti et al., arXiv 2205.05198.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/transform/sharding.h"

namespace gpubench {

/// Sources that are cut, by name: weights, and what belongs to them (biases, masters, moments).
using Cuts = std::map<std::string, Cut, std::less<>>;

struct TensorParallel {
  int ranks = 1;
  /// Sequence parallelism: what linear layers cut by rows return is scattered over the tokens, not the same on all
  /// ranks, and gathered before the next layer.
  bool scatters_tokens = false;
  Math math = {};  ///< of the reductions
};

struct TensorParallelStep {
  Program program;
  std::vector<ValueId> gradients;  ///< of all ranks: what data_parallel() reduces
};

/// `step`, of one rank, on the ranks of a mesh with the axis "tp". Every rank runs every op on its part of those
/// operands that are cut, as sharding_of() allows, and on the whole of all others. Addends of a result are reduced
/// right behind their op; operands that an op needs whole are gathered before it. The gradients' norm is that of all
/// parts, those that every rank has counted once.
///
/// Tensors and ops are named "x@1". For one rank the result is the step itself. Throws ProgramError for a step of
/// several ranks, for a cut of a source that the step lacks, for an extent that the ranks cannot share equally, and
/// where an operand would have to be gathered along another axis than its first.
[[nodiscard]] TensorParallelStep tensor_parallel(const Program& step, const TensorParallel& options, const Cuts& cuts,
                                                 std::span<const ValueId> gradients);

}  // namespace gpubench
