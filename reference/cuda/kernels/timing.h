// What timing needs of a device beside the work that is timed: time that passes while a queue fills, and data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// Keeps the stream busy for about `nanoseconds`, on one thread.
void launch_spin(std::uint64_t nanoseconds, cudaStream_t stream);

/// Keeps the stream busy until `*opened`, which the host may write meanwhile, is at least `turn`, but not longer than
/// `limit_ns` nanoseconds.
void launch_gate(const std::uint64_t* opened, std::uint64_t turn, std::uint64_t limit_ns, cudaStream_t stream);

enum class ScrambleType : std::uint8_t { f64, f32, f16, bf16, f8_e4m3, f8_e5m2, f4_pairs, i32, u8 };

/// Fills `count` elements with numbers of both signs and magnitudes in [0.25, 2) times 2^exponent, by hashing seed and
/// index; integers are 0 and 1, valid as indices, labels and masks, plus `exponent`; bytes of two f4 are any.
/// `exponent`: so that all are normal numbers. Zeros would cost less power, and so run faster than anything real.
void launch_scramble(ScrambleType type, void* data, std::size_t count, std::uint64_t seed, int exponent,
                     cudaStream_t stream);

}  // namespace gpubench::cuda
