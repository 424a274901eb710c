// What rotary means.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& rotary_definition();

}  // namespace gpubench
