// What launches are declared with: storage types as kernels name them, and CUDA's stream handle. Neither needs CUDA's
// headers, so that what declares a launch compiles everywhere.
#pragma once

#include <cstdint>

struct CUstream_st;
// The same declaration as in cuda_runtime_api.h, which may be repeated.
typedef struct CUstream_st* cudaStream_t;  // NOLINT(modernize-use-using)

namespace gpubench::cuda {

enum class Element : std::uint8_t { f64, f32, f16, bf16 };

}  // namespace gpubench::cuda
