// Launches of elementwise ops (reference/ops/pointwise.h), dropout, and moves.
#pragma once

#include <string_view>

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

inline constexpr int max_pointwise_inputs = 3;
inline constexpr int max_pointwise_outputs = 2;

/// Up to three inputs and two outputs of one shape, except for repeated inputs. All have the type `from`, except the
/// result of cast, which has the type `to`. Outputs may be inputs.
struct PointwiseArgs {
  Element from = Element::f32;
  Element to = Element::f32;
  const void* in[max_pointwise_inputs] = {};
  void* out[max_pointwise_outputs] = {};
  std::int64_t rows = 1, columns = 0;
  std::int64_t in_stride[max_pointwise_inputs] = {};
  std::int64_t out_stride[max_pointwise_outputs] = {};
  std::int64_t repeats[max_pointwise_inputs] = {1, 1, 1};  ///< rows of the output per row of the input
  double factor = 1.0;
};

using PointwiseLaunch = void (*)(const PointwiseArgs& args, cudaStream_t stream);

/// The kernels of an op by name (reference/ops/pointwise.h), which includes GELU's form: "gelu_forward erf". Null if
/// there is none.
[[nodiscard]] PointwiseLaunch pointwise_launch(std::string_view op);

/// x and y [rows, columns] of type `data`; y may be x. seed, offset: two words each.
struct DropoutArgs {
  Element data = Element::f32;
  const void* x = nullptr;
  void* y = nullptr;
  const std::uint32_t* seed = nullptr;
  const std::uint32_t* offset = nullptr;
  std::int64_t rows = 1, columns = 0, x_stride = 0, y_stride = 0;
  std::uint32_t least = 0;  ///< smallest random word of a kept element
  double factor = 1.0;
};
void launch_dropout(const DropoutArgs& args, cudaStream_t stream);

// Copies, repeated rows, transposes and reorders; bit-exact.

inline constexpr int max_move_axes = 8;

/// Strides in elements; `from` is 0 for a repeated element.
struct MoveAxis {
  std::int64_t extent = 1;
  std::int64_t from = 0, to = 0;
};

/// Axes from the slowest to the fastest of `to`; use simplified() to make them.
struct MoveArgs {
  int element_bytes = 4;  ///< 1, 2, 4 or 8
  const void* from = nullptr;
  void* to = nullptr;
  int axes = 0;
  MoveAxis axis[max_move_axes];
};

/// The same move with the fewest axes, sorted as above.
[[nodiscard]] MoveArgs simplified(MoveArgs args);

/// One launch: rows if both sides have the same fastest axis, else tiles in shared memory.
void launch_move(const MoveArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
