// What gemm means: fp64 semantics, Rule G and its epilogues, derivative.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& gemm_definition();

}  // namespace gpubench
