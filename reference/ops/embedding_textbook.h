// What looking up rows, and scattering their gradients, means.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& embedding_backward_definition();
[[nodiscard]] const OpDefinition& embedding_forward_definition();

}  // namespace gpubench
