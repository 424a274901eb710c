// Softmax cross-entropy, its gradient, and both at once, as launches. Formulas: reference/ops/cross_entropy.h.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// logits [rows, classes], labels [rows], loss [1], lse [rows]: loss and lse are f64 for f64 logits, else f32. A label
/// outside the classes makes the loss NaN.
struct CrossEntropyForwardArgs {
  Element data = Element::f32;
  const void* logits = nullptr;
  const int* labels = nullptr;
  void* loss = nullptr;
  void* lse = nullptr;
  std::int64_t rows = 0, classes = 0, stride = 0;
  double* row_loss = nullptr;  ///< scratch: [rows]
};

/// Two launches: one pass over the logits; then the mean.
void launch_cross_entropy_forward(const CrossEntropyForwardArgs& args, cudaStream_t stream);

/// dlogits has the logits' type and may be the logits. A label outside the classes makes its row NaN.
struct CrossEntropyBackwardArgs {
  Element data = Element::f32;
  const void* logits = nullptr;
  const int* labels = nullptr;
  const void* lse = nullptr;
  void* dlogits = nullptr;
  std::int64_t rows = 0, classes = 0;
  std::int64_t logits_stride = 0, dlogits_stride = 0;
};

void launch_cross_entropy_backward(const CrossEntropyBackwardArgs& args, cudaStream_t stream);

/// As above, at once; fewer than 2^31 classes.
struct CrossEntropyForwardBackwardArgs {
  Element data = Element::f32;
  const void* logits = nullptr;
  const int* labels = nullptr;
  void* loss = nullptr;
  void* lse = nullptr;
  void* dlogits = nullptr;
  std::int64_t rows = 0, classes = 0;
  std::int64_t logits_stride = 0, dlogits_stride = 0;
  double* row_loss = nullptr;  ///< scratch: [rows]
};

/// Two launches: all but the mean; then the mean.
void launch_cross_entropy_forward_backward(const CrossEntropyForwardBackwardArgs& args, cudaStream_t stream);

/// loss [1] = the mean of row_loss [rows]; `data`: the type of the logits.
struct MeanLossArgs {
  Element data = Element::f32;
  const double* row_loss = nullptr;
  std::int64_t rows = 0;
  void* loss = nullptr;
};
void launch_mean_loss(const MeanLossArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
