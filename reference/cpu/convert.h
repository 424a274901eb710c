// Elements of the narrow types to f32 and back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "harness/core/dtype.h"

namespace gpubench::cpu {

/// True for the types that widen_elements() reads: f16, bf16, f8_e4m3 and f8_e5m2.
[[nodiscard]] bool widens_to_f32(DType type);
/// True for the types that narrow_elements() writes: f16 and bf16.
[[nodiscard]] bool narrows_from_f32(DType type);

/// The numbers of a type of 8 bits by their codes; of one of 4 bits, by the low half of a byte.
[[nodiscard]] std::array<float, 256> values_by_code(DType type);

/// to[i] = from[i], exactly.
void widen_elements(DType type, const std::byte* from, std::int64_t count, float* to);

/// to[i] = from[i], rounded to nearest, ties to even; too large ones become infinities.
void narrow_elements(DType type, const float* from, std::int64_t count, std::byte* to);

/// values[i], rounded as narrow_elements() does.
void round_elements(DType type, std::int64_t count, float* values);

}  // namespace gpubench::cpu
