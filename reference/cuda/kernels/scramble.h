// Data to tune on: never zeros, which cost less power and so run faster than anything real.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace gpubench::cuda {

enum class ScrambleType : std::uint8_t { f64, f32, f16, bf16, f8_e4m3, f8_e5m2, i32, u8 };

/// Fills `count` elements with numbers of both signs and magnitudes in [0.25, 2) times 2^exponent, by hashing seed and
/// index; integers are 0 and 1, valid as indices, labels and masks. `exponent`: so that all are normal numbers.
void launch_scramble(ScrambleType type, void* data, std::size_t count, std::uint64_t seed, int exponent,
                     cudaStream_t stream);

}  // namespace gpubench::cuda
