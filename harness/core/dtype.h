// Storage types and exact conversions between them and fp64, in integer arithmetic so that every machine agrees: values
// round once, to nearest, ties to even, with subnormals. For p significant bits, u = 2^-p.
//
// Elements are addressed by their tensor's first byte and an index, because 4-bit elements share bytes: of two f4
// elements the one with the even index has the low four bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "harness/core/enum_names.h"

namespace gpubench {

enum class DType : std::uint8_t { f64, f32, f16, bf16, f8_e4m3, f8_e5m2, f4_e2m1, i32, u8 };

template <>
inline constexpr auto enum_names<DType> = std::to_array<std::string_view>({"f64", "f32", "f16", "bf16", "f8_e4m3",
                                                                           "f8_e5m2", "f4_e2m1", "i32", "u8"});

[[nodiscard]] int bits_of(DType type);

/// Bytes of `elements` consecutive elements, rounded up.
[[nodiscard]] std::int64_t bytes_of(DType type, std::int64_t elements);

/// Bytes of one element. Throws Unsupported for a type narrower than a byte.
[[nodiscard]] std::size_t size_of(DType type);

[[nodiscard]] bool is_float(DType type);

/// Half an ulp at 1: 2^-p (f64 2^-53, f32 2^-24, f16 2^-11, bf16 2^-8, e4m3 2^-4, e5m2 2^-3, e2m1 2^-2); 0 for
/// integers.
[[nodiscard]] double unit_roundoff(DType type);

[[nodiscard]] double largest_finite(DType type);

/// The smallest positive normal number; 0 for integers.
[[nodiscard]] double smallest_normal(DType type);

/// `value` rounded to `type`, to nearest, ties to even. Beyond the largest finite value it becomes an infinity (e4m3,
/// which has none: NaN). Integers: to nearest, saturating. NaN stays NaN. e2m1 has neither: it saturates, also for NaN,
/// as hardware does (PTX, cvt with .satfinite).
[[nodiscard]] double round_to(DType type, double value);

/// One element as fp64, exact.
[[nodiscard]] double load(DType type, const std::byte* base, std::int64_t index = 0);

/// Stores round_to(value); for integers NaN becomes 0.
void store(DType type, std::byte* base, std::int64_t index, double value);
inline void store(DType type, std::byte* element, double value) { store(type, element, 0, value); }

/// `count` elements from `first`, `stride` elements apart, as fp64.
void load_run(DType type, const std::byte* base, std::int64_t first, std::int64_t stride, std::int64_t count,
              double* out);

void load_each(DType type, const std::byte* base, std::span<const std::int64_t> elements, double* out);

[[nodiscard]] std::uint64_t load_bits(DType type, const std::byte* base, std::int64_t index = 0);

void store_bits(DType type, std::byte* base, std::int64_t index, std::uint64_t bits);
inline void flip_bits(DType type, std::byte* base, std::int64_t index, std::uint64_t mask) {
  store_bits(type, base, index, load_bits(type, base, index) ^ mask);
}

/// Copies the bits of `count` elements that are `stride` elements apart to consecutive ones.
void copy_elements(DType type, const std::byte* from, std::int64_t first, std::int64_t stride, std::int64_t count,
                   std::byte* to, std::int64_t to_first);

/// The poison pattern of unwritten outputs: a NaN with a payload that no arithmetic produces (0xA5 repeated for
/// integers; -6 in e2m1, which has no NaN).
void store_poison(DType type, std::byte* base, std::int64_t index = 0);

[[nodiscard]] bool is_poison(DType type, const std::byte* base, std::int64_t index = 0);

}  // namespace gpubench
