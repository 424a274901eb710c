#include "reference/cuda/kernels/runtime.h"

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

__device__ std::uint32_t hash(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = seed + index * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return static_cast<std::uint32_t>(x >> 32U);
}

// Sign, an exponent of [0.25, 2), and random fraction bits of the format given by `bias` and `fraction`; a bias off by
// one scales by two.
template <class Bits>
__device__ Bits pattern(std::uint32_t random, int bits, int fraction, int bias) {
  const std::uint64_t sign = random & 1U;
  const std::uint64_t exponent = static_cast<std::uint64_t>(bias - 2) + (random >> 1U) % 3U;
  const std::uint64_t wide = (static_cast<std::uint64_t>(random) << 32U) | (random * 2654435761U);
  const std::uint64_t tail = wide >> (64 - fraction);
  return static_cast<Bits>((sign << (bits - 1)) | (exponent << fraction) | tail);
}

template <class Bits>
__global__ void scramble(Bits* data, std::size_t count, std::uint64_t seed, int fraction, int bias) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const std::uint32_t random = hash(seed, i);
    data[i] = fraction == 0 ? static_cast<Bits>((random & 1U) + static_cast<unsigned>(bias))
                            : pattern<Bits>(random, static_cast<int>(8 * sizeof(Bits)), fraction, bias);
  }
}

template <class Bits>
void run(void* data, std::size_t count, std::uint64_t seed, int fraction, int bias, cudaStream_t stream) {
  if (count != 0) scramble<<<1024, 256, 0, stream>>>(static_cast<Bits*>(data), count, seed, fraction, bias);
}

}  // namespace

void launch_spin(std::uint64_t nanoseconds, cudaStream_t stream) { spin<<<1, 1, 0, stream>>>(nanoseconds); }

void launch_gate(const std::uint64_t* opened, std::uint64_t turn, std::uint64_t limit_ns, cudaStream_t stream) {
  gate<<<1, 1, 0, stream>>>(opened, turn, limit_ns);
}

void launch_scramble(ScrambleType type, void* data, std::size_t count, std::uint64_t seed, int exponent,
                     cudaStream_t stream) {
  switch (type) {
    case ScrambleType::f64: return run<std::uint64_t>(data, count, seed, 52, 1023 + exponent, stream);
    case ScrambleType::f32: return run<std::uint32_t>(data, count, seed, 23, 127 + exponent, stream);
    case ScrambleType::f16: return run<std::uint16_t>(data, count, seed, 10, 15 + exponent, stream);
    case ScrambleType::bf16: return run<std::uint16_t>(data, count, seed, 7, 127 + exponent, stream);
    case ScrambleType::f8_e4m3: return run<std::uint8_t>(data, count, seed, 3, 7 + exponent, stream);
    case ScrambleType::f8_e5m2: return run<std::uint8_t>(data, count, seed, 2, 15 + exponent, stream);
    case ScrambleType::f4_pairs: return run<std::uint8_t>(data, count, seed, 8, 2, stream);  // all bits are the tail's
    case ScrambleType::i32: return run<std::uint32_t>(data, count, seed, 0, exponent, stream);
    case ScrambleType::u8: return run<std::uint8_t>(data, count, seed, 0, exponent, stream);
  }
}

}  // namespace gpubench::cuda
