// Matrix products in f64, which oneDNN lacks.
#pragma once

#include "reference/cpu/kernel.h"
#include "reference/cpu/onednn.h"

namespace gpubench::cpu {

/// c = alpha a b + beta c + bias, all f64 and in any strides, with sums in f64 in an order that depends on the extents
/// only. `request`: of the call's tensors.
[[nodiscard]] Plan plan_gemm_f64(const OpCall& call, const MatmulRequest& request, int threads);

}  // namespace gpubench::cpu
