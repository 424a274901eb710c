// The GELU epilogues of gemm: what oneDNN's post-ops cannot do, since training keeps the pre-activation as well.
//
// Both start from f32 sums, so that the activation is taken of the unrounded pre-activation and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "harness/core/dtype.h"
#include "reference/ops/pointwise.h"

namespace gpubench::cpu {

/// Rows of a [batch, m, n] tensor with its last axis dense; strides in elements.
struct MatrixRows {
  std::byte* data = nullptr;
  DType dtype = DType::f32;  ///< f32 or bf16
  std::int64_t batch_stride = 0;
  std::int64_t row_stride = 0;
};

struct GeluEpilogue {
  std::int64_t batch = 1, m = 0, n = 0;
  GeluForm form = GeluForm::tanh;
  float beta = 0.0F;  ///< forward: z = sums + beta c
  MatrixRows sums;    ///< f32; may be `pre` itself
  MatrixRows pre;     ///< forward: z is stored here; gradient: read from here
  MatrixRows c;
};

/// pre = z, c = gelu(z).
void run_gelu_epilogue(int threads, const GeluEpilogue& epilogue);
/// c = sums gelu'(pre). `sums` may be `c` itself.
void run_gelu_gradient_epilogue(int threads, const GeluEpilogue& epilogue);

}  // namespace gpubench::cpu
