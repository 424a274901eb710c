// A training step on several ranks that share each sequence: rank r has the r-th part of its tokens. Only attention
// looks beyond them; its keys and values are gathered from all ranks, as in Grattafiori et al., "The Llama 3 herd of
// models", arXiv 2407.21783, 3.3.2; or passed on from rank to rank, as in Liu et al., "Ring Attention with Blockwise
// Transformers", arXiv 2310.01889, so that a rank attends to some while the next are on their way.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "harness/core/program.h"
#include "reference/ops/collective.h"
#include "reference/ops/transform/partition.h"

namespace gpubench {

struct ContextParallel {
  int ranks = 1;
  std::int64_t tokens = 0;  ///< of a sequence that a rank has
  bool ring = false;        ///< keys and values are passed on
  /// Sources with a row for each token that is no part of the batch: tables of positions.
  std::set<std::string, std::less<>> by_position = {};
  Reduction reduction = Reduction::average;  ///< of gradients, as DataParallel's
  Math math = {};                            ///< of the reductions
};

/// `step`, whose sequences are the part that one rank has, on the ranks of a mesh with the axis "cp" in front of the
/// step's own. All is as in data_parallel(), but that the ranks' batches are parts of the same sequences. A rank's
/// queries meet the keys of the ranks before it and its own where attention is causal, else of all; their gradients are
/// addends, reduced and scattered. So the last rank has the most to do.
///
/// In a ring, a rank attends to one rank's keys after another's and joins what it gets; gradients of keys and values go
/// round with them, summed up on their way, and one step further, home.
///
/// For one rank the result is the step itself. Throws ProgramError as data_parallel(), for attention
/// within documents, or in a ring within a window, and for a batch that is no whole number of sequences.
[[nodiscard]] PartitionedStep context_parallel(const Program& step, const ContextParallel& options,
                                               std::span<const ValueId> gradients);

}  // namespace gpubench
