// The definitions of the ops in collective.h.
#pragma once

#include "reference/ops/definition.h"

namespace gpubench {

[[nodiscard]] const OpDefinition& all_reduce_definition();
[[nodiscard]] const OpDefinition& reduce_scatter_definition();

[[nodiscard]] const OpDefinition& all_gather_definition();
[[nodiscard]] const OpDefinition& all_to_all_definition();
[[nodiscard]] const OpDefinition& broadcast_definition();
[[nodiscard]] const OpDefinition& send_recv_definition();

}  // namespace gpubench
