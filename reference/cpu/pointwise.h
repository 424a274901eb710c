// Ops that treat every element alike: one plan for all of them, given the arithmetic on a block.
#pragma once

#include <cstdint>
#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// y[i] from a[i] and b[i] (null for ops of one input), i < count.
using PointwiseFunction = void (*)(const float* a, const float* b, float factor, std::int64_t count, float* y);

struct PointwiseKernel {
  PointwiseFunction block;                ///< marked GPUBENCH_VECTOR_CLONES
  PointwiseFunction streaming = nullptr;  ///< optional: stores around the caches itself (stream_store.h), any alignment
};

/// Plans an op of one or two inputs and one output of one shape, f32 or bf16 each, with `factor` handed to the kernel.
[[nodiscard]] Plan plan_pointwise(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context,
                                  const PointwiseKernel& kernel, float factor = 0.0F);

}  // namespace gpubench::cpu
