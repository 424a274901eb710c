// A training step on several ranks, each with its own part of the batch. Li et al., "PyTorch Distributed: experiences
// on accelerating data parallel training", VLDB 2020: gradients are reduced in buckets, as they become known.
#pragma once

#include <cstdint>
#include <span>

#include "harness/core/program.h"
#include "reference/ops/collective.h"

namespace gpubench {

struct DataParallel {
  int ranks = 1;
  Reduction reduction = Reduction::average;      ///< average where the loss is a mean over the batch, else sum
  std::int64_t bucket_bytes = 25 * 1000 * 1000;  ///< a bucket is reduced once it holds at least so much
  Math math = {};                                ///< of the reductions
};

/// `step` once for each rank (tensors and ops are named "x@1"), with its `gradients` reduced over the ranks in place
/// before anything but the backward reads them. Buckets are filled in the order in which gradients are produced, which
/// is the reverse of the layers', and reduced right after the op that completes them, so that data flow alone lets the
/// reduction run beside the rest of the backward.
///
/// Sources of the step that are placed as shards (Placement::shard) become the ranks' parts of one tensor over all of
/// them: the step's own batch is what one rank has. All others are alike on every rank. For one rank this is the step
/// as it is. Throws ProgramError for a gradient that no op of the step produces, and where an op after a gradient's
/// reduction would read part of it under another name.
[[nodiscard]] Program data_parallel(const Program& step, const DataParallel& options,
                                    std::span<const ValueId> gradients);

}  // namespace gpubench
