// Numbers of 8 and 4 bits from f32, by integer arithmetic on their bits, without branches.
#pragma once

#include <array>
#include <cstdint>

#include "harness/core/dtype.h"
#include "reference/cpu/block_io.h"

namespace gpubench::cpu {

/// Of infinity in f32; those of NaN are larger.
inline constexpr std::uint32_t infinity_bits = 0x7f800000U;

/// A narrow type, by what encoding a number takes.
struct Narrow {
  std::uint32_t cut;           ///< bits of an f32's fraction that go
  std::uint32_t rebias;        ///< what its exponent is above that of the type, at its place
  std::uint32_t least_normal;  ///< bits of the f32
  float subnormal_units;       ///< 1 / the smallest number
  std::uint32_t last;          ///< what is larger becomes this: the largest number, infinity or NaN
  std::uint32_t nan, sign;
};

[[nodiscard]] Narrow narrow_of(DType to, bool saturate);

// Formats of blocks: a run of whole blocks goes through loops over the elements for their largest, over the blocks for
// their scales, and over the elements again for their codes.

constexpr std::int64_t most_blocks = block_elements / 16;

/// x[i] becomes the code of x[i] * factor / divisor, of mx of x[i] * factor. Loops over blocks go through all of them,
/// one vector, however many there are.
struct BlockScales {
  alignas(64) std::array<std::uint32_t, most_blocks> largest{};  ///< bits of the magnitude
  alignas(64) std::array<float, most_blocks> factor, divisor;
  alignas(64) std::array<std::uint8_t, most_blocks> codes;
};

/// Kernels for the instruction set in use.
struct Encodings {
  /// codes[i] = x[i] factor.
  void (*encode)(const float* x, float factor, std::int64_t count, const Narrow& to, std::uint8_t* codes);
  /// Bits of the largest magnitude: integers in the order of their numbers, NaN above infinity.
  std::uint32_t (*largest)(const float* x, std::int64_t count);
  /// Two codes of four bits to a byte, the first in its low half.
  void (*pack_halves)(const std::uint8_t* codes, std::int64_t count, std::uint8_t* to);
  /// `above`: what the largest number of the type has for an exponent; `covers`: one more where the fraction of the
  /// largest magnitude is above `fraction`, that of the type's largest number. Below 0 there is no exponent.
  void (*scale_mx)(const float* x, std::int64_t blocks, std::uint32_t above, bool covers, std::uint32_t fraction,
                   BlockScales& scales, float* scaled);
  /// `e4m3`: saturating.
  void (*scale_nvfp4)(const float* x, std::int64_t blocks, float scale, const Narrow& e4m3, BlockScales& scales,
                      float* scaled);
};
[[nodiscard]] const Encodings& encodings();

}  // namespace gpubench::cpu
