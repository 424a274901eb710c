// Batch normalization and pooling of NHWC images, as launches.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

// Batch normalization: blocks sum some rows of some channels each into scratch memory, the parts are merged in order,
// and a last launch passes over the data.

/// Data [rows, channels], dense and of one type; vectors [channels] in f32 (f64 for f64).
struct BatchNormArgs {
  Element data = Element::f32;
  std::int64_t rows = 0, channels = 0;
  double epsilon = 0.0, momentum = 0.0;
  const void* x = nullptr;
  const void* dy = nullptr;   ///< of the backward
  bool relu = false;          ///< forward: what is negative becomes zero; backward: dy counts where y is positive
  const void* r = nullptr;    ///< forward: added before that; may be null
  const void* y = nullptr;    ///< backward, with relu
  const void* dy2 = nullptr;  ///< likewise: added to dy; may be null
  void* dr = nullptr;         ///< likewise: dy that counts, stored; may be null where dy2 is
  void* to = nullptr;         ///< y, or dx
  const void* gamma = nullptr;
  const void* beta = nullptr;                            ///< of the forward
  void *mean = nullptr, *rstd = nullptr;                 ///< written by the forward, read by the backward
  void *running_mean = nullptr, *running_var = nullptr;  ///< updated by the forward
  void *dgamma = nullptr, *dbeta = nullptr;              ///< of the backward
  void* partial = nullptr;                               ///< scratch: [2, parts, channels] in f32 (f64 for f64)
  std::int64_t mask_at = 0;     ///< backward, with relu and without dr: so many bytes behind `partial` are
                                ///< batch_norm_mask_bytes() for what of dy counts, read instead of y the second time
  std::int64_t sum_stride = 0;  ///< not 0: the forward's statistics are not taken of x but made of `partial`, which
                                ///< is [2, sum_stride] in f32: a channel's sum, and that of its elements' squares
  std::int64_t parts = 1;       ///< batch_norm_parts()
};

/// In whole lines, so that both rows are aligned for others who write them.
[[nodiscard]] constexpr std::int64_t batch_norm_sum_stride(std::int64_t channels) { return (channels + 63) / 64 * 64; }

/// A bit for each element, a byte for each pack that a thread reads at once.
[[nodiscard]] std::int64_t batch_norm_mask_bytes(const BatchNormArgs& args);

[[nodiscard]] std::int64_t batch_norm_parts(const BatchNormArgs& args, int multiprocessors);

void launch_batch_norm_forward(const BatchNormArgs& args, cudaStream_t stream);
void launch_batch_norm_backward(const BatchNormArgs& args, cudaStream_t stream);

/// One axis of the image: `window` elements at every `stride` positions; `outputs` windows.
struct PoolAxisArgs {
  std::int64_t extent = 1, outputs = 1;
  std::int64_t window = 1, stride = 1, pad = 0;
};

/// All tensors dense, [n, h, w, c] and [n, p, q, c], data of one type.
struct PoolArgs {
  Element data = Element::f32;
  std::int64_t images = 0, channels = 0;
  PoolAxisArgs vertical, horizontal;
  bool counts_padding = false;
  const void* from = nullptr;            ///< x, or dy
  void* to = nullptr;                    ///< y, or dx
  std::uint8_t* index = nullptr;         ///< written by max_pool_forward
  const std::uint8_t* chosen = nullptr;  ///< read by max_pool_backward
};

void launch_max_pool_forward(const PoolArgs& args, cudaStream_t stream);
void launch_max_pool_backward(const PoolArgs& args, cudaStream_t stream);
void launch_average_pool_forward(const PoolArgs& args, cudaStream_t stream);
void launch_average_pool_backward(const PoolArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
