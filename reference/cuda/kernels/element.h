// Storage types as kernels name them: plain, so that launchers' headers need nothing of gpubench or CUDA.
#pragma once

#include <cstdint>

namespace gpubench::cuda {

enum class Element : std::uint8_t { f64, f32, f16, bf16 };

/// Rows of consecutive elements, `stride` elements from the start of one to the start of the next.
struct Rows {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t stride = 1;
};

}  // namespace gpubench::cuda
