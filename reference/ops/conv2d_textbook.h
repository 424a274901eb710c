// What convolution and its two gradients mean: fp64 semantics, Rule G, derivative.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& conv2d_backward_data_definition();
[[nodiscard]] const OpDefinition& conv2d_backward_filter_definition();
[[nodiscard]] const OpDefinition& conv2d_forward_definition();

}  // namespace gpubench
