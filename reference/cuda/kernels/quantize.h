// Scaled copies in 8 bits, as launches. Meaning: reference/ops/quantize.h.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

enum class Eight : std::uint8_t { e4m3, e5m2 };

/// x in f32, f16 or bf16, in rows; values dense, row by row, where they go or in scratch memory to be moved on.
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

/// Two launches: values and the largest magnitude of each block; then amax and the inverse.
void launch_quantize(const QuantizeArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
