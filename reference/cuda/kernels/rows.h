// Launches on rows: layer norm (also with a residual), RMS norm, softmax, and their gradients. Formulas: norm.h and
// softmax.h in reference/ops.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// x and y [rows, columns] of type `data`; gamma, beta [columns] of type `parameter`: `data` or f32 (f64 for f64 data);
/// mean and rstd [rows] in f32 (f64 for f64 data). y may be x.
/// With a residual [rows, columns], the normalized tensor is sum = x + residual, rounded to `data`; then neither y nor
/// sum may be x or the residual.
/// RMS norm has no beta and no mean. `rounds`: round to `data` before multiplying by gamma.
struct LayerNormForwardArgs {
  Element data = Element::f32;
  Element parameter = Element::f32;
  const void* x = nullptr;
  const void* gamma = nullptr;
  const void* beta = nullptr;
  void* y = nullptr;
  void* mean = nullptr;
  void* rstd = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t x_stride = 0, y_stride = 0;
  double epsilon = 0.0;
  bool rounds = false;
  const void* residual = nullptr;  ///< null: none
  void* sum = nullptr;
  std::int64_t residual_stride = 0, sum_stride = 0;
};

void launch_layer_norm_forward(const LayerNormForwardArgs& args, cudaStream_t stream);
void launch_residual_norm_forward(const LayerNormForwardArgs& args, cudaStream_t stream);

/// As above; dx may be dy, x or the residual's gradient, which is added to it. dgamma and dbeta [columns] of type
/// `parameter`; no dbeta without a mean.
/// `rounds`: round dy gamma to `data`, and the normalized row in dgamma's product.
struct LayerNormBackwardArgs {
  Element data = Element::f32;
  Element parameter = Element::f32;
  const void* dy = nullptr;
  const void* x = nullptr;
  const void* gamma = nullptr;
  const void* mean = nullptr;
  const void* rstd = nullptr;
  const void* dr = nullptr;  ///< [rows, columns]; null: none
  void* dx = nullptr;
  void* dgamma = nullptr;
  void* dbeta = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t dy_stride = 0, x_stride = 0, dr_stride = 0, dx_stride = 0;
  bool rounds = false;
  void* partial = nullptr;  ///< scratch, layer_norm_backward_scratch() bytes
  std::int64_t parts = 1;   ///< layer_norm_backward_parts()
};

/// Parts of the parameter gradients' sums over rows: one per block of the first launch.
[[nodiscard]] std::int64_t layer_norm_backward_parts(Element data, std::int64_t rows, std::int64_t columns,
                                                     int multiprocessors);
/// Bytes of `partial`: [parts, 2, columns] in f32 (f64 for f64 data).
[[nodiscard]] std::int64_t layer_norm_backward_scratch(Element data, std::int64_t parts, std::int64_t columns);

/// Two launches: dx and partial sums; then their sum.
void launch_layer_norm_backward(const LayerNormBackwardArgs& args, cudaStream_t stream);

/// All of one type, strides in elements. Forward: to = softmax(x). Backward: to = x (dy - sum x dy), where x is the
/// forward's result.
struct SoftmaxArgs {
  Element data = Element::f32;
  const void *x = nullptr, *dy = nullptr;
  void* to = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t x_stride = 0, dy_stride = 0, to_stride = 0;
};

void launch_softmax_forward(const SoftmaxArgs& args, cudaStream_t stream);
void launch_softmax_backward(const SoftmaxArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
