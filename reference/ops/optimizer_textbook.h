// What gradient norm, clip and AdamW mean.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& adamw_definition();
[[nodiscard]] const OpDefinition& clip_adamw_definition();
[[nodiscard]] const OpDefinition& clip_definition();
[[nodiscard]] const OpDefinition& gradient_norm_definition();

}  // namespace gpubench
