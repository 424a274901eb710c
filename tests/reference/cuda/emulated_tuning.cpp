// The tuner's further needs from a device: memory, tuning data, and spins, whose durations are recorded.
#include <cuda_runtime_api.h>

#include <cmath>
#include <thread>

#include "harness/core/dtype.h"
#include "harness/core/hash.h"
#include "reference/cuda/kernels/runtime.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulation/streams.h"

namespace gpubench::testing {

std::vector<std::uint64_t>& spins() {
  static std::vector<std::uint64_t> lengths;
  return lengths;
}

}  // namespace gpubench::testing

namespace gpubench::cuda {

void launch_spin(std::uint64_t nanoseconds, cudaStream_t /*stream*/) { testing::spins().push_back(nanoseconds); }

void launch_scramble(ScrambleType type, void* data, std::size_t count, std::uint64_t seed, int exponent,
                     cudaStream_t stream) {
  constexpr DType types[] = {DType::f64,     DType::f32, DType::f16, DType::bf16, DType::f8_e4m3,
                             DType::f8_e5m2, DType::u8,  DType::i32, DType::u8};
  const DType dtype = types[static_cast<int>(type)];
  emulation::on_stream(stream, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t random = hash_at(seed, i);
      const double fraction = 1.0 + static_cast<double>(random >> 32U) * 0x1p-32;
      const int power = static_cast<int>(random % 3) - 2 + exponent;
      const double number = std::ldexp((random & 4U) != 0 ? fraction : -fraction, power);
      store(dtype, static_cast<std::byte*>(data) + i * size_of(dtype),
            is_float(dtype)                  ? number
            : type == ScrambleType::f4_pairs ? static_cast<double>(random & 0xffU)
                                             : static_cast<double>(random & 1U) + exponent);
    }
  });
}

}  // namespace gpubench::cuda

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = *total_bytes = std::size_t{1} << 30U;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  while (cudaStreamQuery(stream) != cudaSuccess) std::this_thread::yield();
  gpubench::cuda::emulation::rethrow_fault(stream);
  return cudaSuccess;
}
