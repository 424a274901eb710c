// The compulsory traffic of an op: every tensor crosses memory once, however it is computed.
#pragma once

#include <span>

#include "harness/core/tensor.h"

namespace gpubench {

/// Bytes of the elements of one tensor, without gaps between strided rows or padding of blocks.
[[nodiscard]] inline double bytes_moved(const TensorSpec& tensor) {
  return static_cast<double>(tensor.shape.elements()) * static_cast<double>(size_of(tensor.dtype));
}

/// Bytes of the elements of all of them.
[[nodiscard]] inline double bytes_moved(std::span<const TensorSpec> tensors) {
  double bytes = 0.0;
  for (const TensorSpec& tensor : tensors) bytes += bytes_moved(tensor);
  return bytes;
}

}  // namespace gpubench
