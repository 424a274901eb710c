// Ops that treat every element alike (reference/ops/pointwise.h), dropout, and moves, which put the same elements
// elsewhere, as launches.
#pragma once

#include <string_view>

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

inline constexpr int max_pointwise_inputs = 3;
inline constexpr int max_pointwise_outputs = 2;

/// Up to three tensors in, up to two out, of one shape, but for repeated inputs: as many as the op has. All have the
/// type `from`, except that cast's result has the type `to`. Outputs may be inputs.
struct PointwiseArgs {
  Element from = Element::f32;
  Element to = Element::f32;
  const void* in[max_pointwise_inputs] = {};
  void* out[max_pointwise_outputs] = {};
  std::int64_t rows = 1, columns = 0;
  std::int64_t in_stride[max_pointwise_inputs] = {};
  std::int64_t out_stride[max_pointwise_outputs] = {};
  std::int64_t repeats[max_pointwise_inputs] = {1, 1, 1};  ///< how many rows one of the input's is for
  double factor = 1.0;
};

/// A pointwise op's kernels, for any types.
using PointwiseLaunch = void (*)(const PointwiseArgs& args, cudaStream_t stream);

/// By the op's name (reference/ops/pointwise.h); GELU's form is part of it: "gelu_forward erf". Null where there is
/// none.
[[nodiscard]] PointwiseLaunch pointwise_launch(std::string_view op);

/// x and y: [rows, columns] of type `data`; y may be x. seed, offset: two words each.
struct DropoutArgs {
  Element data = Element::f32;
  const void* x = nullptr;
  void* y = nullptr;
  const std::uint32_t* seed = nullptr;
  const std::uint32_t* offset = nullptr;
  std::int64_t rows = 1, columns = 0, x_stride = 0, y_stride = 0;
  std::uint32_t least = 0;  ///< of the words of elements that are kept
  double factor = 1.0;
};
void launch_dropout(const DropoutArgs& args, cudaStream_t stream);

// Copies, repeated rows, transposes and reorders, bit for bit.

inline constexpr int max_move_axes = 8;

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
  MoveAxis axis[max_move_axes];
};

/// The same move with as few axes as possible, sorted as above.
[[nodiscard]] MoveArgs simplified(MoveArgs args);

/// One launch: rows where both sides have the same fastest axis, else tiles by way of shared memory.
void launch_move(const MoveArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
