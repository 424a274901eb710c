// Pooling, NHWC, as launches.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// One axis of the image: `window` elements at every `stride` positions; `outputs` windows.
struct PoolAxisArgs {
  std::int64_t extent = 1, outputs = 1;
  std::int64_t window = 1, stride = 1, pad = 0;
};

/// All tensors dense, [n, h, w, c] and [n, p, q, c], data of one type.
struct PoolArgs {
  Element data = Element::f32;
  std::int64_t images = 0, channels = 0;
  PoolAxisArgs vertical, horizontal;
  bool counts_padding = false;
  const void* from = nullptr;            ///< x, or dy
  void* to = nullptr;                    ///< y, or dx
  std::uint8_t* index = nullptr;         ///< written by max_pool_forward
  const std::uint8_t* chosen = nullptr;  ///< read by max_pool_backward
};

void launch_max_pool_forward(const PoolArgs& args, cudaStream_t stream);
void launch_max_pool_backward(const PoolArgs& args, cudaStream_t stream);
void launch_average_pool_forward(const PoolArgs& args, cudaStream_t stream);
void launch_average_pool_backward(const PoolArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
