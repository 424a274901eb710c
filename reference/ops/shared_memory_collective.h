// A collective between ranks that can read each other's memory, as the copies and sums that each rank does once all
// inputs are ready: who does which part, not how. For backends; the textbook does not use it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/core/tensor.h"
#include "reference/ops/collective.h"

namespace gpubench {

/// `bytes` bytes from one place to another.
struct CopyTask {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t bytes = 0;
};

/// The reduction of `count` elements of each source, rank by rank in order, written to each target: all ranks get the
/// same bits.
struct ReduceTask {
  DType type = DType::f32;
  Reduction reduction = Reduction::sum;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  std::int64_t count = 0;
};

struct RankTasks {
  std::vector<CopyTask> copies;
  std::vector<ReduceTask> reductions;
};

/// What each of the ranks does. Parts of one rank and another never overlap. `tensors`: those of the call's inputs,
/// then of its outputs, all dense. Throws ProgramError for an op that is no collective.
[[nodiscard]] std::vector<RankTasks> tasks_of(const OpCall& call, std::span<const Tensor> tensors);

}  // namespace gpubench
