// Ops that treat every element alike: one plan for all of them, parameterized by the arithmetic on a block.
#pragma once

#include <cstdint>
#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// y[j][i] from all x[k][i], i < count: as many x as the op has inputs, as many y as it has outputs.
using PointwiseFunction = void (*)(const float* const* x, float factor, std::int64_t count, float* const* y);
/// Of an op of one output and one or two inputs (b is null for one).
using PointwiseStream = void (*)(const float* a, const float* b, float factor, std::int64_t count, float* y);

struct PointwiseKernel {
  PointwiseFunction block;              ///< marked GPUBENCH_VECTOR_CLONES
  PointwiseStream streaming = nullptr;  ///< optional: stores around the caches itself (block_io.h), any alignment
};

/// Plans an op of up to three inputs and two outputs of one shape, f32 or bf16 each, with `factor` handed to the
/// kernel.
[[nodiscard]] Plan pointwise_plan(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context,
                                  const PointwiseKernel& kernel, float factor = 0.0F);

}  // namespace gpubench::cpu
