// Launches of batch normalization and pooling of NHWC images.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

// Batch normalization: blocks sum parts of the rows into scratch memory, a launch merges the parts in order, and the
// last launch passes over the data.

/// Data [rows, channels], dense and of one type; vectors [channels] in f32 (f64 for f64).
struct BatchNormArgs {
  Element data = Element::f32;
  std::int64_t rows = 0, channels = 0;
  double epsilon = 0.0, momentum = 0.0;
  const void* x = nullptr;
  const void* dy = nullptr;   ///< backward only
  bool relu = false;          ///< forward: negative results become 0; backward: dy counts where y is positive
  const void* r = nullptr;    ///< forward: added before relu; may be null
  const void* y = nullptr;    ///< backward, with relu
  const void* dy2 = nullptr;  ///< backward, with relu: added to dy; may be null
  void* dr = nullptr;         ///< backward, with relu: the counted dy; may be null if dy2 is
  void* to = nullptr;         ///< y or dx
  const void* gamma = nullptr;
  const void* beta = nullptr;                            ///< forward only
  void *mean = nullptr, *rstd = nullptr;                 ///< output of the forward, input of the backward
  void *running_mean = nullptr, *running_var = nullptr;  ///< updated by the forward
  void *dgamma = nullptr, *dbeta = nullptr;              ///< backward only
  void* partial = nullptr;                               ///< scratch: [2, parts, channels] in f32 (f64 for f64)
  std::int64_t mask_at = 0;     ///< backward, with relu and without dr: offset from `partial` in bytes of
                                ///< batch_norm_mask_bytes() bytes: a mask of the counted dy, which the second pass
                                ///< reads instead of y
  std::int64_t sum_stride = 0;  ///< not 0: the forward's statistics come from sums in `partial`, not x:
                                ///< [2, sum_stride] in f32, each channel's sum and sum of squares
  std::int64_t parts = 1;       ///< batch_norm_parts()
};

/// Channels rounded up to 64, so that both rows of sums are aligned.
[[nodiscard]] constexpr std::int64_t batch_norm_sum_stride(std::int64_t channels) { return (channels + 63) / 64 * 64; }

/// A bit per element, a byte per pack.
[[nodiscard]] std::int64_t batch_norm_mask_bytes(const BatchNormArgs& args);

[[nodiscard]] std::int64_t batch_norm_parts(const BatchNormArgs& args, int multiprocessors);

void launch_batch_norm_forward(const BatchNormArgs& args, cudaStream_t stream);
void launch_batch_norm_backward(const BatchNormArgs& args, cudaStream_t stream);

/// One axis of the image: `window` elements at every `stride` positions; `outputs` windows.
struct PoolAxisArgs {
  std::int64_t extent = 1, outputs = 1;
  std::int64_t window = 1, stride = 1, pad = 0;
};

/// All tensors dense and of one type: [n, h, w, c] and [n, p, q, c].
struct PoolArgs {
  Element data = Element::f32;
  std::int64_t images = 0, channels = 0;
  PoolAxisArgs vertical, horizontal;
  bool counts_padding = false;
  const void* from = nullptr;            ///< x or dy
  void* to = nullptr;                    ///< y or dx
  std::uint8_t* index = nullptr;         ///< output of max_pool_forward
  const std::uint8_t* chosen = nullptr;  ///< input of max_pool_backward
};

void launch_max_pool_forward(const PoolArgs& args, cudaStream_t stream);
void launch_max_pool_backward(const PoolArgs& args, cudaStream_t stream);
void launch_average_pool_forward(const PoolArgs& args, cudaStream_t stream);
void launch_average_pool_backward(const PoolArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
