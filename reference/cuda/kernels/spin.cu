#include "reference/cuda/kernels/spin.h"

namespace gpubench::cuda {
namespace {

__device__ std::uint64_t now_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin(std::uint64_t nanoseconds) {
  const std::uint64_t begin = now_ns();
  while (now_ns() - begin < nanoseconds) __nanosleep(200);
}

}  // namespace

void launch_spin(std::uint64_t nanoseconds, cudaStream_t stream) { spin<<<1, 1, 0, stream>>>(nanoseconds); }

}  // namespace gpubench::cuda
