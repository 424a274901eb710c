// Storage types and exact conversions between them and fp64.
//
// Everything here works on bits with integer arithmetic, so that every machine agrees: a value is rounded from
// fp64 to its storage type once, to nearest, ties to even, with subnormals kept. Of a type with p significant bits, u =
// 2^-p.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpubench {

enum class DType : std::uint8_t { f64, f32, f16, bf16, f8_e4m3, f8_e5m2, i32, u8 };

/// "f32", "bf16", ...
[[nodiscard]] std::string_view name(DType type);

/// Bytes of one element.
[[nodiscard]] std::size_t size_of(DType type);

[[nodiscard]] bool is_float(DType type);

/// Half an ulp at 1: 2^-p (f64 2^-53, f32 2^-24, f16 2^-11, bf16 2^-8, e4m3 2^-4, e5m2 2^-3); 0 for integers.
[[nodiscard]] double unit_roundoff(DType type);

/// The smallest positive normal number; 0 for integers.
[[nodiscard]] double smallest_normal(DType type);

/// `value` rounded to `type`, to nearest, ties to even. Beyond the largest finite value it becomes an infinity
/// (e4m3, which has none: NaN). Integers: to nearest, saturating. NaN stays NaN.
[[nodiscard]] double round_to(DType type, double value);

/// One stored element as fp64 (exact).
[[nodiscard]] double load(DType type, const std::byte* element);

/// Rounds `value` as round_to() does and stores it.
void store(DType type, std::byte* element, double value);

/// `count` elements from `base`, `stride` elements apart, as fp64: the textbook's way to read a row or a column.
void load_run(DType type, const std::byte* base, std::int64_t stride, std::int64_t count, double* out);

/// The bit pattern that outputs are poisoned with: a NaN with a payload that no arithmetic produces
/// (0xA5 repeated for integers). `element` receives size_of(type) bytes.
void store_poison(DType type, std::byte* element);

/// True when the element still holds exactly the poison pattern.
[[nodiscard]] bool is_poison(DType type, const std::byte* element);

}  // namespace gpubench
