#include "harness/core/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "harness/core/error.h"

namespace gpubench {
namespace {

enum class Specials {
  ieee,     // the top exponent holds infinities and NaNs
  one_nan,  // it holds numbers too; only S.1111.111 is NaN
  none
};

struct Format {
  int exponent;
  int fraction;
  Specials specials;
  double largest;  // finite
};

struct Type {
  int bits;
  std::uint64_t poison;
  Format format;  // of floating-point types
};

constexpr std::array<Type, enum_values<DType>.size()> types{{
    {64, 0x7ff5a5a5a5a5a5a5ULL, {11, 52, Specials::ieee, std::numeric_limits<double>::max()}},
    {32, 0x7fa5a5a5ULL, {8, 23, Specials::ieee, 0x1.fffffep127}},
    {16, 0x7da5ULL, {5, 10, Specials::ieee, 65504.0}},
    {16, 0x7fa5ULL, {8, 7, Specials::ieee, 0x1.fep127}},
    {8, 0x7fULL, {4, 3, Specials::one_nan, 448.0}},
    {8, 0x7dULL, {5, 2, Specials::ieee, 57344.0}},
    {4, 0xfULL, {2, 1, Specials::none, 6.0}},
    {32, 0xa5a5a5a5ULL, {}},
    {8, 0xa5ULL, {}},
}};

// Only for normal numbers of fp64.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52U);
}

// Of a normal number; for 0 and subnormals less than that of any normal number.
constexpr int exponent_of(double value) {
  return static_cast<int>((std::bit_cast<std::uint64_t>(value) >> 52U) & 0x7ffU) - 1023;
}

const Type& info(DType type) { return types[static_cast<std::size_t>(type)]; }

const Format& format_of(DType type) { return info(type).format; }

int bias_of(const Format& f) { return (1 << (f.exponent - 1)) - 1; }

double overflow_of(const Format& f, double value) {
  switch (f.specials) {
    case Specials::ieee: return std::copysign(std::numeric_limits<double>::infinity(), value);
    case Specials::one_nan: return std::nan("");
    case Specials::none: return std::copysign(f.largest, value);
  }
  return value;
}

double round_to_format(const Format& f, double value) {
  if (std::isnan(value)) return f.specials == Specials::none ? f.largest : value;
  if (std::isinf(value)) return overflow_of(f, value);
  if (value == 0.0) return value;
  const int lowest = 1 - bias_of(f);  // exponent of the smallest normal
  const int exponent = std::max(exponent_of(value), lowest);
  // Scaling by a power of two is exact; nearbyint() rounds to nearest even in the default mode.
  const double unit = power_of_two(exponent - f.fraction);
  const double rounded = std::nearbyint(value / unit) * unit;
  return std::fabs(rounded) > f.largest ? overflow_of(f, value) : std::copysign(rounded, value);
}

double decode(const Format& f, std::uint32_t bits) {
  const std::uint32_t fraction = bits & ((1U << f.fraction) - 1U);
  const int exponent = static_cast<int>((bits >> f.fraction) & ((1U << f.exponent) - 1U));
  const double sign = (bits >> (f.exponent + f.fraction)) != 0U ? -1.0 : 1.0;
  const int top = (1 << f.exponent) - 1;
  if (exponent == top && f.specials == Specials::ieee) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  const bool all_ones = exponent == top && fraction == (1U << f.fraction) - 1U;
  if (all_ones && f.specials == Specials::one_nan) return std::nan("");
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
  const int exponent = std::max(exponent_of(magnitude), lowest);
  const auto significand = static_cast<std::uint32_t>(magnitude * power_of_two(f.fraction - exponent));
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

// Table of all numbers of a format of 8 bits or fewer, for fast decoding.
template <std::size_t count>
std::array<double, count> table_of(const Format& f) {
  std::array<double, count> table{};
  for (std::uint32_t bits = 0; bits < count; ++bits) table[bits] = decode(f, bits);
  return table;
}

double half_to_double(std::uint16_t bits) { return decode(format_of(DType::f16), bits); }

double bf16_to_double(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }

unsigned half_of(std::byte both, std::int64_t index) {
  return (std::to_integer<unsigned>(both) >> (index % 2 == 0 ? 0U : 4U)) & 0xFU;
}

template <class Place>
void load_at(DType type, const std::byte* base, std::int64_t count, double* out, const Place& place) {
  static const auto e4m3 = table_of<256>(format_of(DType::f8_e4m3));
  static const auto e5m2 = table_of<256>(format_of(DType::f8_e5m2));
  static const auto e2m1 = table_of<16>(format_of(DType::f4_e2m1));
  const auto each = [&]<class T>(T, const auto& convert) {
    for (std::int64_t i = 0; i < count; ++i)
      out[i] = convert(read_as<T>(base + place(i) * static_cast<std::int64_t>(sizeof(T))));
  };
  const auto widen = [](auto v) { return static_cast<double>(v); };
  switch (type) {
    case DType::f64: return each(double{}, widen);
    case DType::f32: return each(float{}, widen);
    case DType::f16: return each(std::uint16_t{}, half_to_double);
    case DType::bf16: return each(std::uint16_t{}, bf16_to_double);
    case DType::f8_e4m3: return each(std::uint8_t{}, [](auto b) { return e4m3[b]; });
    case DType::f8_e5m2: return each(std::uint8_t{}, [](auto b) { return e5m2[b]; });
    case DType::f4_e2m1:
      for (std::int64_t i = 0; i < count; ++i) out[i] = e2m1[half_of(base[place(i) / 2], place(i))];
      return;
    case DType::i32: return each(std::int32_t{}, widen);
    case DType::u8: return each(std::uint8_t{}, widen);
  }
}

}  // namespace

int bits_of(DType type) { return info(type).bits; }

std::int64_t bytes_of(DType type, std::int64_t elements) {
  const int bits = bits_of(type);
  return bits >= 8 ? elements * (bits / 8) : (elements + 8 / bits - 1) / (8 / bits);
}

std::size_t size_of(DType type) {
  const int bits = bits_of(type);
  if (bits < 8)
    throw Unsupported("type " + std::string(name(type)) + " has elements of " + std::to_string(bits) +
                      " bits; expected whole bytes");
  return static_cast<std::size_t>(bits / 8);
}

bool is_float(DType type) { return type != DType::i32 && type != DType::u8; }

double unit_roundoff(DType type) {
  if (!is_float(type)) return 0.0;
  return power_of_two(-(format_of(type).fraction + 1));
}

double largest_finite(DType type) { return format_of(type).largest; }

double smallest_normal(DType type) {
  if (!is_float(type)) return 0.0;
  return power_of_two(1 - bias_of(format_of(type)));
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

double load(DType type, const std::byte* base, std::int64_t index) {
  double value = 0.0;
  load_run(type, base, index, 1, 1, &value);
  return value;
}

void store(DType type, std::byte* base, std::int64_t index, double value) {
  switch (type) {
    case DType::f64: return store_bits(type, base, index, std::bit_cast<std::uint64_t>(value));
    case DType::f32: return store_bits(type, base, index, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    case DType::i32:
    case DType::u8: {
      const double whole = std::isnan(value) ? 0.0 : round_to(type, value);
      return store_bits(type, base, index, static_cast<std::uint32_t>(static_cast<std::int32_t>(whole)));
    }
    default: return store_bits(type, base, index, encode(format_of(type), value));
  }
}

void load_run(DType type, const std::byte* base, std::int64_t first, std::int64_t stride, std::int64_t count,
              double* out) {
  if (stride == 1) {  // a vector loop
    load_at(type, base, count, out, [first](std::int64_t i) { return first + i; });
  } else {
    load_at(type, base, count, out, [first, stride](std::int64_t i) { return first + i * stride; });
  }
}

void load_each(DType type, const std::byte* base, std::span<const std::int64_t> elements, double* out) {
  load_at(type, base, std::ssize(elements), out,
          [elements](std::int64_t i) { return elements[static_cast<std::size_t>(i)]; });
}

// Little-endian: the low bytes come first.
std::uint64_t load_bits(DType type, const std::byte* base, std::int64_t index) {
  if (bits_of(type) < 8) return half_of(base[index / 2], index);
  std::uint64_t bits = 0;
  std::memcpy(&bits, base + bytes_of(type, index), size_of(type));
  return bits;
}

void store_bits(DType type, std::byte* base, std::int64_t index, std::uint64_t bits) {
  if (bits_of(type) >= 8) {
    std::memcpy(base + bytes_of(type, index), &bits, size_of(type));
    return;
  }
  const unsigned shift = index % 2 == 0 ? 0U : 4U;
  base[index / 2] = (base[index / 2] & static_cast<std::byte>(0xF0U >> shift)) | static_cast<std::byte>(bits << shift);
}

void copy_elements(DType type, const std::byte* from, std::int64_t first, std::int64_t stride, std::int64_t count,
                   std::byte* to, std::int64_t to_first) {
  if (bits_of(type) < 8) {
    for (std::int64_t i = 0; i < count; ++i)
      store_bits(type, to, to_first + i, load_bits(type, from, first + i * stride));
    return;
  }
  const std::int64_t together = stride == 1 ? count : 1;
  const auto bytes = static_cast<std::size_t>(bytes_of(type, together));
  for (std::int64_t i = 0; i < count; i += together)
    std::memcpy(to + bytes_of(type, to_first + i), from + bytes_of(type, first + i * stride), bytes);
}

void store_poison(DType type, std::byte* base, std::int64_t index) { store_bits(type, base, index, info(type).poison); }

bool is_poison(DType type, const std::byte* base, std::int64_t index) {
  return load_bits(type, base, index) == info(type).poison;
}

static_assert(std::endian::native == std::endian::little, "poison patterns are laid out for little-endian machines");

}  // namespace gpubench
