// A training step on several ranks, each with its own part of the batch. Li et al., "PyTorch Distributed: experiences
// on accelerating data parallel training", VLDB 2020: gradients are reduced in buckets, as they become known.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/collective.h"
#include "reference/ops/transform/partition.h"

namespace gpubench {

struct DataParallel {
  std::string axis = "dp";                       ///< of the mesh
  int ranks = 1;                                 ///< the replicas of the step
  Reduction reduction = Reduction::average;      ///< average where the loss is a mean over the batch, else sum
  std::int64_t bucket_bytes = 25 * 1000 * 1000;  ///< a bucket is reduced once it holds at least this much
  Math math = {};                                ///< of the reductions
  std::vector<int> held = {};                    ///< the ranks that the result holds; empty: all that the step has
};

/// `step` once for each rank (tensors and ops are named "x@1"), with its `gradients` reduced over the ranks in place
/// before anything but the backward reads them. Buckets are filled in the order in which gradients are produced, which
/// is the reverse of the layers', and reduced right after the op that completes them, so that data flow alone lets the
/// reduction run beside the rest of the backward.
///
/// A step of several ranks has a mesh; the result's has axis "dp" in front, and rank r of the step is rank
/// d * step.mesh().ranks() + r of replica d. Each rank's gradients are reduced within its group along dp; the
/// step's own collectives ("x@dp1") stay within their replica.
///
/// Sources of the step that are placed as shards (Placement::shard) become the ranks' parts of one tensor over all of
/// them: the step's own batch is what one rank has. Others are the same on every rank. For one rank the result is the
/// step itself. Throws ProgramError for a gradient that no op of the step produces, for a held rank that the step
/// lacks, and where an op after a gradient's reduction would read part of it under another name, and as mask_offsets().
[[nodiscard]] Program data_parallel(const Program& step, const DataParallel& options,
                                    std::span<const ValueId> gradients);
/// The same, with the gradients of all ranks as their ops make them.
[[nodiscard]] PartitionedStep replicated_step(const Program& step, const DataParallel& options,
                                              std::span<const ValueId> gradients);

}  // namespace gpubench
