// CUDA's stream handle without CUDA's headers, so that what declares a launcher compiles everywhere.
#pragma once

struct CUstream_st;
// The same declaration as in cuda_runtime_api.h, which may be repeated.
typedef struct CUstream_st* cudaStream_t;  // NOLINT(modernize-use-using)
