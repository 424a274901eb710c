// What the products with a bias gradient beside them mean (gemm_bias_gradient.h).
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& gemm_gelu_bias_gradient_definition();
[[nodiscard]] const OpDefinition& gemm_weight_bias_gradient_definition();

}  // namespace gpubench
