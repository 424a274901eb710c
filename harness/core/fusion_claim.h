// What a backend says of a fused op that it has: reference/ops/transform/fuse.h puts in those that are claimed.
#pragma once

#include "harness/core/program.h"

namespace gpubench {

/// A claim is that the op runs faster than the ops that it stands for.
struct FusionClaim {
  OpKind kind;
  bool measured = false;  ///< on such a device; where not, every record that has the op says so
};

}  // namespace gpubench
