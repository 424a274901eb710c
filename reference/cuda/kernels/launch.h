// What launches are declared with: storage types as kernels name them, strides of heads, and CUDA's stream handle. None
// of them needs CUDA's headers, so that what declares a launch compiles everywhere.
#pragma once

#include <cstdint>

struct CUstream_st;
// The same declaration as in cuda_runtime_api.h, which may be repeated.
typedef struct CUstream_st* cudaStream_t;  // NOLINT(modernize-use-using)

namespace gpubench::cuda {

enum class Element : std::uint8_t { f64, f32, f16, bf16 };

/// Elements from one sequence, token or head to the next.
struct HeadStrides {
  std::int64_t sequence = 0, token = 0, head = 0;
};

}  // namespace gpubench::cuda
