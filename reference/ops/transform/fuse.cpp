#include "reference/ops/transform/fuse.h"

#include "harness/core/error.h"

namespace gpubench {

Fused fuse(const Program& program, std::span<const OpKind> claims) {
  if (!claims.empty()) {
    throw ProgramError("fuse: no rewrite puts in '" + std::string(claims.front().name) +
                       "'; expected only fused ops that a rewrite is known for");
  }
  return {program, {}};
}

}  // namespace gpubench
