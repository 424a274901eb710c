// A collective as what each rank copies and adds up, once all inputs are there: memory is shared, so every rank reads
// its peers' tensors where they lie, and writes part of the results, its peers' too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/core/backend.h"
#include "reference/ops/collective.h"

namespace gpubench::cpu {

/// `bytes` bytes from one place to another.
struct CopyTask {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t bytes = 0;
  bool streaming = false;  ///< around the caches
};

/// The reduction of `count` elements of each source, rank by rank in order, written to each target.
struct ReduceTask {
  DType type = DType::f32;
  Reduction reduction = Reduction::sum;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  std::int64_t count = 0;
  bool streaming = false;  ///< around the caches
};

struct RankWork {
  std::vector<CopyTask> copies;
  std::vector<ReduceTask> reductions;
};

/// Throws Unsupported for an op, a type (sums: f32 and bf16) or a layout that is not to be had.
void expect_supported(const OpCall& call, std::span<const TensorSpec> tensors);
/// What each of the ranks does. Parts of one rank and another never overlap. Where results are too large to stay in the
/// caches they are written around them, which is settled here: it takes a look at the machine.
[[nodiscard]] std::vector<RankWork> work_of(const OpCall& call, std::span<const Tensor> tensors);

/// Runs a rank's work on `threads` threads.
void run_work(const RankWork& work, int threads);

}  // namespace gpubench::cpu
