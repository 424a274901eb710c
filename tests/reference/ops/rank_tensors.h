#pragma once

#include <string>
#include <vector>

#include "harness/core/program.h"

namespace gpubench::testing {

/// A gradient on one rank, its shard of one tensor over all ranks.
inline ValueId on_rank(Program& program, const std::string& name, int rank, int ranks, DType type, const Shape& shape) {
  TensorSpec spec = tensor(name_on_rank(name, rank, ranks), type, shape, Role::gradient);
  spec.placement = Placement::shard(0, rank, ranks);
  return program.add(std::move(spec));
}

inline std::vector<ValueId> on_ranks(Program& program, int ranks, DType type, const Shape& shape,
                                     const std::string& name = "x") {
  std::vector<ValueId> ids;
  for (int rank = 0; rank < ranks; ++rank) ids.push_back(on_rank(program, name, rank, ranks, type, shape));
  return ids;
}

}  // namespace gpubench::testing
