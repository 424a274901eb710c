// GELU, or its slope, behind a product in 16-bit types whose sums were kept in f32: bias, function and rounding at
// once.
#pragma once

#include "reference/cuda/kernels/element.h"
#include "reference/cuda/kernels/stream.h"

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

}  // namespace gpubench::cuda
