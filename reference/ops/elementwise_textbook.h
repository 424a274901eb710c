// What the ops that map or move elements mean.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& add_definition();
[[nodiscard]] const OpDefinition& cast_definition();
[[nodiscard]] const OpDefinition& copy_definition();
[[nodiscard]] const OpDefinition& reorder_definition();
[[nodiscard]] const OpDefinition& scale_definition();
[[nodiscard]] const OpDefinition& transpose_definition();
[[nodiscard]] const OpDefinition& triad_definition();

}  // namespace gpubench
