// A pattern repeated over memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace gpubench::cuda {

/// Writes `pattern` to `words` consecutive words of 8 bytes; `data` is 8-byte aligned.
void launch_fill(void* data, std::uint64_t pattern, std::size_t words, cudaStream_t stream);

}  // namespace gpubench::cuda
