// The slope of GELU and the sum over rows, behind a product: the product is read once.
#pragma once

#include "reference/cuda/kernels/element.h"
#include "reference/cuda/kernels/stream.h"

namespace gpubench::cuda {

/// dz[i, j] = product[i, j] gelu'(pre[i, j]), rounded once, and sums of the rounded dz over the rows of each part.
/// product [rows, columns] in f32 (f64 with f64 data), pre and dz in the type `data`. dz may be product where both have
/// one type.
struct GeluBiasGradientArgs {
  Element data = Element::f32;
  bool tanh = true;  ///< which form of GELU; else erf
  const void* product = nullptr;
  const void* pre = nullptr;
  void* dz = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t product_stride = 0, pre_stride = 0, dz_stride = 0;
  void* partial = nullptr;  ///< [parts, columns] in f32 (f64 with f64 data), for launch_partial_sum()
  std::int64_t parts = 1;   ///< column_sum_parts()
};

void launch_gelu_bias_gradient(const GeluBiasGradientArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
