// What layer normalization means, forward and backward: fp64 semantics, bounds, derivative.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& layer_norm_backward_definition();
[[nodiscard]] const OpDefinition& layer_norm_forward_definition();

}  // namespace gpubench
