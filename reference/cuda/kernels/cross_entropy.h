// Softmax cross-entropy, its gradient, and both at once, as launches. Formulas: reference/ops/cross_entropy.h.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// Further terms of the loss besides -log p, and the rows that its mean covers.
struct CrossEntropyTerms {
  bool ignores = false;
  int ignore_index = 0;
  double label_smoothing = 0.0, z_loss = 0.0;
  const void* dloss = nullptr;  ///< [1], as the loss; null: 1
  double* counted = nullptr;    ///< scratch [1] if rows are ignored: number of counted rows
};

/// First class of the logits, and the number of classes on all ranks.
struct ClassPart {
  int first = 0, all = 0;
};

/// logits [rows, classes], labels [rows], loss [1], lse [rows]; loss and lse are f64 for f64 logits, else f32. A label
/// outside the classes makes the loss NaN. For a part of the classes, scores [rows] replace the loss.
struct CrossEntropyForwardArgs {
  CrossEntropyTerms terms;
  ClassPart part;
  Element data = Element::f32;
  const void* logits = nullptr;
  const int* labels = nullptr;
  void* loss = nullptr;
  void* lse = nullptr;
  void* score = nullptr;
  std::int64_t rows = 0, classes = 0, stride = 0;
  double* row_loss = nullptr;   ///< scratch: [rows]
  const void* count = nullptr;  ///< [1], type of the loss: divisor of the mean; null: the counted rows
};

/// Two launches: one pass over the logits, then the mean. Here and below, if rows are ignored, another launch counts
/// them first.
void launch_cross_entropy_forward(const CrossEntropyForwardArgs& args, cudaStream_t stream);

/// lses and scores [parts, rows] of the parts of the classes, in `data`: f32 or f64.
struct CrossEntropyCombineArgs {
  CrossEntropyTerms terms;
  Element data = Element::f32;
  const void* lses = nullptr;
  const void* scores = nullptr;
  const int* labels = nullptr;
  void* loss = nullptr;
  void* lse = nullptr;
  std::int64_t parts = 0, rows = 0;
  double* row_loss = nullptr;   ///< scratch: [rows]
  const void* count = nullptr;  ///< [1], type of the loss: divisor of the mean; null: the counted rows
};

/// Two launches: a thread per row; then the mean.
void launch_cross_entropy_combine(const CrossEntropyCombineArgs& args, cudaStream_t stream);

/// dlogits has the logits' type and may overwrite them. A label outside the classes makes its row NaN.
struct CrossEntropyBackwardArgs {
  CrossEntropyTerms terms;
  ClassPart part;
  Element data = Element::f32;
  const void* logits = nullptr;
  const int* labels = nullptr;
  const void* lse = nullptr;
  void* dlogits = nullptr;
  std::int64_t rows = 0, classes = 0;
  std::int64_t logits_stride = 0, dlogits_stride = 0;
  const void* count = nullptr;  ///< as in the forward
};

void launch_cross_entropy_backward(const CrossEntropyBackwardArgs& args, cudaStream_t stream);

/// Both of the above in one pass; fewer than 2^31 classes.
struct CrossEntropyForwardBackwardArgs {
  CrossEntropyTerms terms;
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

/// Separate, since the kernel has no register left for `count`.
struct CountedForwardBackwardArgs : CrossEntropyForwardBackwardArgs {
  const void* count = nullptr;  ///< as in the forward
};

/// Two launches: all but the mean; then the mean.
void launch_cross_entropy_forward_backward(const CountedForwardBackwardArgs& args, cudaStream_t stream);

/// terms.counted = count; without it, the number of labels [rows] that are not ignored. Does nothing if rows cannot be
/// ignored. `data`: type of the logits.
struct CountRowsArgs {
  CrossEntropyTerms terms;
  Element data = Element::f32;
  const int* labels = nullptr;
  std::int64_t rows = 0;
  const void* count = nullptr;
};
void launch_count_rows(const CountRowsArgs& args, cudaStream_t stream);

/// loss [1] = mean of row_loss [rows] over the counted rows; `data`: type of the logits.
struct MeanLossArgs {
  CrossEntropyTerms terms;
  Element data = Element::f32;
  const double* row_loss = nullptr;
  std::int64_t rows = 0;
  void* loss = nullptr;
};
void launch_mean_loss(const MeanLossArgs& args, cudaStream_t stream);

/// y [1] = (number of labels [rows] that are not ignored) / parts, in f32.
struct CountLabelsArgs {
  int ignore_index = 0, parts = 1;
  const int* labels = nullptr;
  float* y = nullptr;
  std::int64_t rows = 0;
};
void launch_count_labels(const CountLabelsArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
