// Rotary position embedding, as a launch. Meaning: reference/ops/rotary.h.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// x and y in `type`, and may be one; tables [tokens, pairs] in f32, or f64 where x is in f64.
struct RotaryArgs {
  Element type = Element::f32;
  bool interleaved = false;
  bool inverse = false;
  const void* x = nullptr;
  void* y = nullptr;
  const void* cos = nullptr;
  const void* sin = nullptr;
  std::int64_t sequences = 1, tokens = 0, heads = 0;
  std::int64_t pairs = 0;  ///< of a head
  HeadStrides x_strides, y_strides;
};

void launch_rotary(const RotaryArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
