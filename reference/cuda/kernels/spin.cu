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

__global__ void gate(const volatile std::uint64_t* opened, std::uint64_t turn, std::uint64_t limit_ns) {
  const std::uint64_t begin = now_ns();
  while (*opened < turn && now_ns() - begin < limit_ns) __nanosleep(100);
}

}  // namespace

void launch_spin(std::uint64_t nanoseconds, cudaStream_t stream) { spin<<<1, 1, 0, stream>>>(nanoseconds); }

void launch_gate(const std::uint64_t* opened, std::uint64_t turn, std::uint64_t limit_ns, cudaStream_t stream) {
  gate<<<1, 1, 0, stream>>>(opened, turn, limit_ns);
}

}  // namespace gpubench::cuda
