// What a residual connection with the norm behind it means: fp64 semantics, bounds, derivative.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& residual_norm_forward_definition();

}  // namespace gpubench
