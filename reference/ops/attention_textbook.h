// What attention means, forward and backward: fp64 semantics, bounds, derivative.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& attention_backward_definition();
[[nodiscard]] const OpDefinition& attention_forward_definition();

}  // namespace gpubench
