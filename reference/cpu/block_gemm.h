// A whole matrix product by own block products: a candidate beside oneDNN's.
#pragma once

#include <optional>

#include "reference/cpu/kernel.h"
#include "reference/cpu/onednn.h"

namespace gpubench::cpu {

/// c = a b with f32 sums along blocks of k, in an order that depends on the extents only. Nothing where it would not be
/// worth timing: without AMX, and for anything but plain products of bf16 matrices with extents in multiples of
/// block_grain.
[[nodiscard]] std::optional<Plan> plan_block_gemm(const OpCall& call, const MatmulRequest& request, int threads);

}  // namespace gpubench::cpu
