// Matrix products of groups of rows whose sizes are data, as launches. reference/ops/grouped_gemm.h; all row-major.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// Sums f32, or f64 for f64 data; c has the data's type, or f32.
struct GroupedGemmArgs {
  Element data = Element::f32, result = Element::f32;
  bool transpose_b = false;  ///< of the forward: b is [groups, n, k]
  std::int64_t rows = 0, groups = 0;
  std::int64_t k = 0, n = 0;  ///< forward: a [rows, k], c [rows, n]; weight: a [rows, k], b [rows, n], c [groups, k, n]
  const void *a = nullptr, *b = nullptr;
  const int* sizes = nullptr;
  void* c = nullptr;
};

void launch_grouped_gemm(const GroupedGemmArgs& args, cudaStream_t stream);
void launch_grouped_gemm_backward_weight(const GroupedGemmArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
