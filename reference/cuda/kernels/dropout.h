// Dropout (reference/ops/dropout.h) as a launch.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

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

}  // namespace gpubench::cuda
