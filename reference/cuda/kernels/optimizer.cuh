// What the kernels of optimizer.h share.
#pragma once

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/optimizer.h"

namespace gpubench::cuda {

/// What gradients of this norm are multiplied with, to have `limit` at most.
__device__ __forceinline__ double clip_factor(const void* norm, Element norm_type, double limit) {
  const double size = norm_type == Element::f64 ? load(static_cast<const double*>(norm))
                                                : static_cast<double>(load(static_cast<const float*>(norm)));
  const double ratio = limit / (size + 1e-6);
  // A NaN norm must not turn into a factor of 1.
  return ratio >= 1.0 ? 1.0 : ratio;
}

}  // namespace gpubench::cuda
