// A rank's part of a collective on the CPU: every rank reads its peers' tensors where they lie, and writes part of the
// results, its peers' too.
#pragma once

#include <span>
#include <vector>

#include "harness/core/backend.h"
#include "reference/ops/shared_memory_collective.h"

namespace gpubench::cpu {

struct RankWork {
  RankTasks tasks;
  bool streaming = false;  ///< results are written around the caches
};

/// Throws Unsupported for an op, a type (sums: f32 and bf16) or a layout that is not to be had.
void expect_supported(const OpCall& call, std::span<const TensorSpec> tensors);
/// What each of the ranks does. Where results are too large to stay in the caches they are written around them, which
/// is settled here: it takes a look at the machine.
[[nodiscard]] std::vector<RankWork> work_of(const OpCall& call, std::span<const Tensor> tensors);

/// Runs a rank's work on `threads` threads.
void run_work(const RankWork& work, int threads);

}  // namespace gpubench::cpu
