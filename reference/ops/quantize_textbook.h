// What quantize means.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& quantize_definition();

}  // namespace gpubench
