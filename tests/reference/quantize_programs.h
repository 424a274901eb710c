// Programs of narrow copies, for the tests of every backend.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/quantize.h"

namespace gpubench::testing {

/// Every number of a type of 16 bits, in the order of their bits.
inline std::vector<double> every_number(DType type) {
  std::vector<double> values;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    values.push_back(load(type, reinterpret_cast<const std::byte*>(&pattern)));
  }
  return values;
}

/// Rows of 96 whose blocks are of every size of number: below and at the ends of each format's range, with ties, one
/// of zeros, and where `specials`, one with an infinity and one with a NaN.
inline std::vector<double> block_rows(bool specials) {
  std::vector<double> values;
  for (int row = 0; row < 40; ++row) {
    for (int i = 0; i < 96; ++i) {
      const double size = std::ldexp(1.0 + (i * 7 + row * 3) % 32 / 32.0, row * 6 - 125 - i % 5);
      values.push_back(row == 7 ? (i % 2 == 0 ? 0.0 : -0.0) : i % 3 == 0 ? -size : size);
    }
  }
  if (specials) {
    values[11 * 96 + 40] = -std::numeric_limits<double>::infinity();
    values[12 * 96 + 40] = std::nan("");
  }
  return values;
}

/// Every number of a type of 16 bits below 8, NaN apart, 15 behind each 6: the scales of their blocks are 1, or beyond
/// 6 next to it, so that each number is rounded to e2m1 as it is.
inline std::vector<double> every_element(DType type) {
  std::vector<double> values;
  for (const double value : every_number(type)) {
    if (!(std::fabs(value) < 8.0)) continue;
    if (values.size() % 16 == 0) values.push_back(6.0);
    values.push_back(value);
  }
  values.resize((values.size() + 31) / 32 * 32, 1.0);
  return values;
}

/// Every magnitude of a type of 16 bits as the largest of a block of 32, by which its scale is chosen; in the order of
/// their bits.
inline std::vector<double> every_largest(DType type) {
  const std::vector<double> numbers = every_number(type);
  std::vector<double> values(numbers.size() / 2 * 32);
  for (std::size_t i = 0; i < numbers.size() / 2; ++i) {
    values[i * 32 + 7] = i % 2 == 0 ? numbers[i] : -numbers[i];
    values[i * 32 + 20] = -0.5 * numbers[i];
  }
  return values;
}

struct BlocksProgram {
  std::string what;
  Program program;
  ValueId x;
  std::optional<ValueId> scale{};
};

/// Each format, and both rules of mx: x of such rows, or of another shape, in a type.
inline std::vector<BlocksProgram> blocks_programs(DType from, const Shape& shape = {40, 96}) {
  std::vector<BlocksProgram> all;
  for (const BlockFormat format :
       {BlockFormat::mxfp8_e4m3, BlockFormat::mxfp8_e5m2, BlockFormat::mxfp4, BlockFormat::nvfp4}) {
    for (const bool covers : {false, true}) {
      BlocksProgram& one = all.emplace_back();
      one.what = std::string(name(from)) + " to " + std::string(name(format)) + (covers ? ", covers" : "");
      one.x = one.program.add(tensor("x", from, shape, Role::activation));
      if (format == BlockFormat::nvfp4) {
        one.scale = one.program.add(tensor("scale", DType::f32, Shape{1}, Role::scalar));
      }
      (void)quantize_blocks(one.program, {format, covers}, {}, "q", one.x, one.scale);
    }
  }
  return all;
}

/// Histories of largest magnitudes: zero, subnormal, at and beyond what a scale can reach, infinite, NaN.
inline std::vector<std::vector<double>> amax_histories() {
  return {{1.0},       {0.0, 0.0},  {448.0, 3.0}, {449.0, 1.0, 2.0}, {57344.0},          {0x1.8p-140}, {0x1p-149},
          {0x1.8p127}, {1.75, 1.5}, {1.76},       {1.0, INFINITY},   {2.0, std::nan("")}};
}

}  // namespace gpubench::testing
