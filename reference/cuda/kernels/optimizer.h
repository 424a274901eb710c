// Launches on gradients after the backward pass, for all tensors at once. Formulas: reference/ops/optimizer.h.
//
// Tensors are cut into chunks. A table in device memory gives each chunk's tensor and position; blocks loop over the
// chunks.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// Elements of a chunk, except the last of a tensor. A multiple of every pack size.
inline constexpr int chunk_elements = 8192;

struct TensorChunk {
  std::int32_t tensor = 0;
  std::int32_t chunk = 0;  ///< index in the tensor: its first element is chunk * chunk_elements
};

/// A parameter, dense, in one order. weight, m and v are f32, or all five tensors are f64.
struct ParameterEntry {
  void* weight = nullptr;
  void* m = nullptr;
  void* v = nullptr;  ///< null for optimizers with one moment
  const void* gradient = nullptr;
  void* copy = nullptr;  ///< null: none
  std::int64_t elements = 0;
  Element gradient_type = Element::f32;
  Element copy_type = Element::f32;
};

struct UpdateArgs {
  const ParameterEntry* entries = nullptr;  ///< device memory, as chunks
  const TensorChunk* chunks = nullptr;
  std::int64_t chunk_count = 0;
  Element state = Element::f32;    ///< weights and moments: f32 or f64
  Element lr_type = Element::f32;  ///< f32, or f64 for an f64 state
  const void* lr = nullptr;
  const void* found_inf = nullptr;    ///< [1]; if not 0, nothing changes; null: never
  Element found_type = Element::f32;  ///< f32 or f64
};

/// `norm`: clip and step in one launch.
struct AdamWArgs : UpdateArgs {
  const int* step = nullptr;
  double beta1 = 0.0, beta2 = 0.0, epsilon = 0.0;
  double weight_decay = 0.0, l2 = 0.0;  ///< decoupled; part of the gradient
  const void* norm = nullptr;           ///< null: no clipping
  Element norm_type = Element::f32;     ///< f32 or f64
  double limit = 1.0;
};

struct LionArgs : UpdateArgs {
  double beta1 = 0.0, beta2 = 0.0, weight_decay = 0.0;
};

struct SgdArgs : UpdateArgs {
  double momentum = 0.0, weight_decay = 0.0;
  bool nesterov = false;
};

void launch_update(const AdamWArgs& args, int multiprocessors, cudaStream_t stream);
void launch_update(const LionArgs& args, int multiprocessors, cudaStream_t stream);
void launch_update(const SgdArgs& args, int multiprocessors, cudaStream_t stream);

/// A gradient of any type, and the clipped one: the same or other memory, of the same type.
struct GradientEntry {
  const void* gradient = nullptr;
  void* clipped = nullptr;
  std::int64_t elements = 0;
  Element type = Element::f32;
};

struct GradientNormArgs {
  const GradientEntry* entries = nullptr;
  const TensorChunk* chunks = nullptr;
  std::int64_t chunk_count = 0;
  void* norm = nullptr;
  Element norm_type = Element::f32;  ///< f32 or f64
  double* partial = nullptr;         ///< scratch: [parts]
  int parts = 1;                     ///< gradient_norm_parts()
};

[[nodiscard]] int gradient_norm_parts(std::int64_t chunk_count, int multiprocessors);

/// Two launches: sums of squares per block, then their root.
void launch_gradient_norm(const GradientNormArgs& args, cudaStream_t stream);

struct ClipArgs {
  const GradientEntry* entries = nullptr;
  const TensorChunk* chunks = nullptr;
  std::int64_t chunk_count = 0;
  const void* norm = nullptr;
  Element norm_type = Element::f32;  ///< f32 or f64
  double limit = 1.0;
};

void launch_clip(const ClipArgs& args, int multiprocessors, cudaStream_t stream);

/// `clipped` of the entries: unscaled gradients in f32 (f64 for f64).
struct UnscaleArgs {
  const GradientEntry* entries = nullptr;
  const TensorChunk* chunks = nullptr;
  std::int64_t chunk_count = 0;
  const void* scale = nullptr;
  void* found_inf = nullptr;
  Element scale_type = Element::f32;  ///< of scale and inverse: f32 or f64
  double* partial = nullptr;          ///< scratch: [parts]
  int parts = 1;                      ///< gradient_norm_parts()
};

/// Two launches: unscaled gradients and numbers of infinities and NaN per block; then whether there is any.
void launch_unscale(const UnscaleArgs& args, cudaStream_t stream);

struct UpdateScaleArgs {
  void* scale = nullptr;
  int* tracker = nullptr;
  const void* found_inf = nullptr;
  Element scale_type = Element::f32, found_type = Element::f32;  ///< f32 or f64
  double growth = 1.0, backoff = 1.0;
  int interval = 1;
};

void launch_update_scale(const UpdateScaleArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
