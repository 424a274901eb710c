// What a sum over rows means.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& column_sum_definition();

}  // namespace gpubench
