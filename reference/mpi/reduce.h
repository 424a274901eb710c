// Reductions that MPI has no operation for: bf16, and a maximum that keeps NaN. Added up in f32, rank by rank in order,
// and rounded once, so that whoever does it comes to the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/ops/collective.h"

namespace gpubench::mpi {

/// `count` elements of each of `from`, f32 or bf16, to `to`, which may be one of them.
void reduce(DType type, Reduction reduction, std::span<const std::byte* const> from, std::byte* to, std::int64_t count);

/// Larger of `from` and `largest`, to `largest`; NaN where one is.
void keep_larger(const float* from, float* largest, std::int64_t count);

/// Each of the values over `divisor`.
void divide(float* values, std::int64_t count, float divisor);

}  // namespace gpubench::mpi
