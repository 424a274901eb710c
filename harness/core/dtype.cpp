#include "harness/core/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace gpubench {
namespace {

// A binary floating-point format narrower than fp64: 1 sign bit, `exponent` bits, `fraction` bits.
struct Format {
  int exponent;
  int fraction;
  bool ieee_specials;  // false: e4m3, whose top exponent holds numbers too and whose only special is S.1111.111 = NaN
};

constexpr Format f32_format{8, 23, true};
constexpr Format f16_format{5, 10, true};
constexpr Format bf16_format{8, 7, true};
constexpr Format e4m3_format{4, 3, false};
constexpr Format e5m2_format{5, 2, true};

const Format& format_of(DType type) {
  switch (type) {
    case DType::f32: return f32_format;
    case DType::f16: return f16_format;
    case DType::bf16: return bf16_format;
    case DType::f8_e4m3: return e4m3_format;
    default: return e5m2_format;
  }
}

int bias_of(const Format& f) { return (1 << (f.exponent - 1)) - 1; }

double largest_finite(const Format& f) {
  if (!f.ieee_specials) return 448.0;
  return (2.0 - std::ldexp(1.0, -f.fraction)) * std::ldexp(1.0, bias_of(f));
}

double round_to_format(const Format& f, double value) {
  if (!std::isfinite(value)) return std::isinf(value) && !f.ieee_specials ? std::nan("") : value;
  if (value == 0.0) return value;
  const int lowest = 1 - bias_of(f);  // exponent of the smallest normal
  const int exponent = std::max(std::ilogb(value), lowest);
  // Scaling by a power of two is exact, nearbyint rounds to nearest even in the default rounding mode.
  const double unit = std::ldexp(1.0, exponent - f.fraction);
  const double rounded = std::nearbyint(value / unit) * unit;
  if (std::fabs(rounded) > largest_finite(f)) {
    return f.ieee_specials ? std::copysign(std::numeric_limits<double>::infinity(), value) : std::nan("");
  }
  return std::copysign(rounded, value);
}

double decode(const Format& f, std::uint32_t bits) {
  const std::uint32_t fraction = bits & ((1U << f.fraction) - 1U);
  const int exponent = static_cast<int>((bits >> f.fraction) & ((1U << f.exponent) - 1U));
  const double sign = (bits >> (f.exponent + f.fraction)) != 0U ? -1.0 : 1.0;
  const int top = (1 << f.exponent) - 1;
  if (exponent == top && f.ieee_specials) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  if (exponent == top && fraction == (1U << f.fraction) - 1U) return std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias_of(f) - f.fraction);
  return sign * std::ldexp(fraction + (1U << f.fraction), exponent - bias_of(f) - f.fraction);
}

std::uint32_t encode(const Format& f, double value) {
  const double rounded = round_to_format(f, value);
  const std::uint32_t sign = std::signbit(rounded) ? 1U << (f.exponent + f.fraction) : 0U;
  const std::uint32_t top = ((1U << f.exponent) - 1U) << f.fraction;
  if (std::isnan(rounded)) return sign | top | ((1U << f.fraction) - 1U);
  if (std::isinf(rounded)) return sign | top;
  if (rounded == 0.0) return sign;
  const double magnitude = std::fabs(rounded);
  const int lowest = 1 - bias_of(f);
  const int exponent = std::max(std::ilogb(magnitude), lowest);
  const auto significand = static_cast<std::uint32_t>(std::ldexp(magnitude, f.fraction - exponent));
  if (significand < (1U << f.fraction)) return sign | significand;  // subnormal
  const auto biased = static_cast<std::uint32_t>(exponent + bias_of(f));
  return sign | (biased << f.fraction) | (significand - (1U << f.fraction));
}

template <class T>
T read_as(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

// 256 entries, so that fp8 tensors decode at the speed of a table look-up.
std::array<double, 256> fp8_table(const Format& f) {
  std::array<double, 256> table{};
  for (std::uint32_t bits = 0; bits < 256; ++bits) table[bits] = decode(f, bits);
  return table;
}

double half_to_double(std::uint16_t bits) { return decode(f16_format, bits); }

double bf16_to_double(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }

template <class T, class Convert>
void convert_run(const std::byte* base, std::int64_t stride, std::int64_t count, double* out, Convert convert) {
  const auto step = stride * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) out[i] = convert(read_as<T>(base + i * step));
}

std::uint64_t poison_bits(DType type) {
  switch (type) {
    case DType::f64: return 0x7ff5a5a5a5a5a5a5ULL;
    case DType::f32: return 0x7fa5a5a5ULL;
    case DType::f16: return 0x7da5ULL;
    case DType::bf16: return 0x7fa5ULL;
    case DType::f8_e4m3: return 0x7fULL;
    case DType::f8_e5m2: return 0x7dULL;
    case DType::i32: return 0xa5a5a5a5ULL;
    case DType::u8: return 0xa5ULL;
  }
  return 0;
}

}  // namespace

std::string_view name(DType type) {
  switch (type) {
    case DType::f64: return "f64";
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::f8_e4m3: return "f8_e4m3";
    case DType::f8_e5m2: return "f8_e5m2";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
  }
  return "?";
}

std::size_t size_of(DType type) {
  switch (type) {
    case DType::f64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    default: return 1;
  }
}

bool is_float(DType type) { return type != DType::i32 && type != DType::u8; }

double unit_roundoff(DType type) {
  if (!is_float(type)) return 0.0;
  if (type == DType::f64) return std::ldexp(1.0, -53);
  return std::ldexp(1.0, -(format_of(type).fraction + 1));
}

double smallest_normal(DType type) {
  if (!is_float(type)) return 0.0;
  if (type == DType::f64) return std::numeric_limits<double>::min();
  return std::ldexp(1.0, 1 - bias_of(format_of(type)));
}

double round_to(DType type, double value) {
  switch (type) {
    case DType::f64: return value;
    case DType::f32: return static_cast<double>(static_cast<float>(value));
    case DType::i32:
      return std::isnan(value) ? value : std::fmin(std::fmax(std::nearbyint(value), -2147483648.0), 2147483647.0);
    case DType::u8: return std::isnan(value) ? value : std::fmin(std::fmax(std::nearbyint(value), 0.0), 255.0);
    default: return round_to_format(format_of(type), value);
  }
}

double load(DType type, const std::byte* element) {
  double value = 0.0;
  load_run(type, element, 1, 1, &value);
  return value;
}

void store(DType type, std::byte* element, double value) {
  const auto put = [element](auto stored) { std::memcpy(element, &stored, sizeof stored); };
  switch (type) {
    case DType::f64: put(value); break;
    case DType::f32: put(static_cast<float>(value)); break;
    case DType::f16:
    case DType::bf16: put(static_cast<std::uint16_t>(encode(format_of(type), value))); break;
    case DType::f8_e4m3:
    case DType::f8_e5m2: put(static_cast<std::uint8_t>(encode(format_of(type), value))); break;
    case DType::i32: put(static_cast<std::int32_t>(round_to(type, value))); break;
    case DType::u8: put(static_cast<std::uint8_t>(round_to(type, value))); break;
  }
}

void load_run(DType type, const std::byte* base, std::int64_t stride, std::int64_t count, double* out) {
  static const std::array<double, 256> e4m3 = fp8_table(e4m3_format);
  static const std::array<double, 256> e5m2 = fp8_table(e5m2_format);
  const auto widen = [](auto v) { return static_cast<double>(v); };
  switch (type) {
    case DType::f64: convert_run<double>(base, stride, count, out, widen); break;
    case DType::f32: convert_run<float>(base, stride, count, out, widen); break;
    case DType::f16: convert_run<std::uint16_t>(base, stride, count, out, half_to_double); break;
    case DType::bf16: convert_run<std::uint16_t>(base, stride, count, out, bf16_to_double); break;
    case DType::f8_e4m3: convert_run<std::uint8_t>(base, stride, count, out, [](auto b) { return e4m3[b]; }); break;
    case DType::f8_e5m2: convert_run<std::uint8_t>(base, stride, count, out, [](auto b) { return e5m2[b]; }); break;
    case DType::i32: convert_run<std::int32_t>(base, stride, count, out, widen); break;
    case DType::u8: convert_run<std::uint8_t>(base, stride, count, out, widen); break;
  }
}

void store_poison(DType type, std::byte* element) {
  const std::uint64_t bits = poison_bits(type);
  std::memcpy(element, &bits, size_of(type));  // little-endian: the low bytes come first
}

bool is_poison(DType type, const std::byte* element) {
  const std::uint64_t bits = poison_bits(type);
  return std::memcmp(element, &bits, size_of(type)) == 0;
}

static_assert(std::endian::native == std::endian::little, "poison patterns are laid out for little-endian machines");

}  // namespace gpubench
