// Declarations for launches: storage types, strides of heads, CUDA's stream handle. Needs no CUDA header, so that
// launch declarations compile everywhere.
#pragma once

#include <cstdint>

struct CUstream_st;
// As in cuda_runtime_api.h; a repeated typedef is legal.
typedef struct CUstream_st* cudaStream_t;  // NOLINT(modernize-use-using)

namespace gpubench::cuda {

enum class Element : std::uint8_t { f64, f32, f16, bf16 };

/// Strides in elements.
struct HeadStrides {
  std::int64_t sequence = 0, token = 0, head = 0;
};

}  // namespace gpubench::cuda
