// The arithmetic of ops that treat every element alike, also for ops that end in one.
#pragma once

#include <cstdint>

#include "reference/ops/pointwise.h"

namespace gpubench::cpu {

/// Of one op, for the instruction set in use. An output may be an input.
struct PointwiseKernel {
  using Function = void (*)(const float* const* x, float factor, std::int64_t count, float* const* y);
  /// y[j][i] from all x[k][i], i < count: as many x as the op has inputs, as many y as it has outputs.
  Function block = nullptr;
  /// The same bits, stored around the caches, or null; call stream_fence() when done.
  Function streaming = nullptr;
  /// y is x: a block that is stored from a buffer can be stored from that of x.
  bool copies = false;
};

/// Of an op of reference/ops/pointwise.h; `form` where it is a GELU. Without a function for other ops.
[[nodiscard]] PointwiseKernel pointwise_kernel(const OpKind& kind, GeluForm form = GeluForm::tanh);

}  // namespace gpubench::cpu
