#include "reference/cuda/kernels/fill.h"

namespace gpubench::cuda {
namespace {

__global__ void fill(std::uint64_t* data, std::uint64_t pattern, std::size_t words) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    data[i] = pattern;
  }
}

}  // namespace

void launch_fill(void* data, std::uint64_t pattern, std::size_t words, cudaStream_t stream) {
  if (words != 0) fill<<<2048, 256, 0, stream>>>(static_cast<std::uint64_t*>(data), pattern, words);
}

}  // namespace gpubench::cuda
