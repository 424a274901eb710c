// Copies, repeated rows, transposes and reorders: the same elements elsewhere, bit for bit, as launches.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

inline constexpr int most_move_axes = 8;

/// Neighbours along an axis are `from` and `to` elements apart; `from` is 0 where they are all the same.
struct MoveAxis {
  std::int64_t extent = 1;
  std::int64_t from = 0, to = 0;
};

/// Axes from the slowest to the fastest of `to`; make them with simplified().
struct MoveArgs {
  int element_bytes = 4;  ///< 1, 2, 4 or 8
  const void* from = nullptr;
  void* to = nullptr;
  int axes = 0;
  MoveAxis axis[most_move_axes];
};

/// The same move with as few axes as possible, sorted as above.
[[nodiscard]] MoveArgs simplified(MoveArgs args);

/// One launch: rows where both sides have the same fastest axis, else tiles by way of shared memory.
void launch_move(const MoveArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
