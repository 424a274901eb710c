// What softmax cross-entropy and its gradient mean.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& cross_entropy_backward_definition();
[[nodiscard]] const OpDefinition& cross_entropy_forward_backward_definition();
[[nodiscard]] const OpDefinition& cross_entropy_forward_definition();

}  // namespace gpubench
