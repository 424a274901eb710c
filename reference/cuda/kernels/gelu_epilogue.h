// GELU, or its slope, behind a product whose sums were kept wide: bias, function and rounding at once; or slope and
// bias gradient, so that the product is read once.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// forward: z = product + bias, pre = z and c = gelu(z), each rounded once. gradient: c = product gelu'(pre).
/// product [rows, columns] in f32; bias [columns], pre and c [rows, columns] in the type `data`, f16 or bf16.
struct GeluEpilogueArgs {
  Element data = Element::bf16;
  bool tanh = true;       ///< which form of GELU; else erf
  bool gradient = false;  ///< pre is read
  const void* product = nullptr;
  const void* bias = nullptr;  ///< null: none; never with a gradient
  void* pre = nullptr;
  void* c = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t product_stride = 0, pre_stride = 0, c_stride = 0;
};

/// Throws std::logic_error for another type.
void launch_gelu_epilogue(const GeluEpilogueArgs& args, cudaStream_t stream);

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
