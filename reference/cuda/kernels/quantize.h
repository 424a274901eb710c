// Launches of scaled copies in 8 and 4 bits. Meaning: reference/ops/quantize.h.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// Result type. Unsaturated: too large values become NaN or infinity. none: only amax is written.
enum class Eight : std::uint8_t { none, e4m3, e5m2, e4m3_unsaturated, e5m2_unsaturated };

/// x in f32, f16 or bf16, in rows; values dense, in x's order.
struct QuantizeArgs {
  Element from = Element::f32;
  Eight to = Eight::e4m3;
  const void* x = nullptr;
  std::uint8_t* values = nullptr;
  const float* scale = nullptr;
  float* inverse = nullptr;
  float* amax = nullptr;
  std::int64_t rows = 1, columns = 0, x_stride = 0;
  std::uint32_t* partial = nullptr;  ///< scratch: [parts]
  int parts = 1;                     ///< quantize_parts()
};

[[nodiscard]] int quantize_parts(std::int64_t elements, int multiprocessors);

/// Two launches: values and largest magnitude per block; then amax, and the inverse if there is a scale.
void launch_quantize(const QuantizeArgs& args, cudaStream_t stream);

struct ScaleFromAmaxArgs {
  const float* history = nullptr;
  std::int64_t count = 0;
  int room = 8;  ///< amax is scaled to at most 1.75 * 2^room
  float* scale = nullptr;
};
void launch_scale_from_amax(const ScaleFromAmaxArgs& args, cudaStream_t stream);

enum class BlockType : std::uint8_t { mxfp8_e4m3, mxfp8_e5m2, mxfp4, nvfp4 };

/// x dense, in f32, f16 or bf16; blocks of 32, or 16 for nvfp4.
struct QuantizeBlocksArgs {
  Element from = Element::f32;
  BlockType to = BlockType::mxfp8_e4m3;
  bool covers = false;
  const void* x = nullptr;
  const float* scale = nullptr;  ///< the tensor's, for nvfp4
  std::uint8_t* values = nullptr;
  std::uint8_t* scales = nullptr;
  std::int64_t elements = 0;
  int blocks = 1;  ///< thread blocks: quantize_parts()
};
void launch_quantize_blocks(const QuantizeBlocksArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
