// What narrow copies have to keep on every backend: bit for bit where scales are powers of two.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/quantize.h"
#include "tests/reference/backend_contract.h"
#include "tests/reference/cpu/textbook_judge.h"

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
      if (format == BlockFormat::nvfp4)
        one.scale = one.program.add(tensor("scale", DType::f32, Shape{1}, Role::scalar));
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

struct QuantizeProgram {
  Program program;
  ValueId x, scale;

  QuantizeProgram(DType from, std::int64_t n, const Quantize& attributes) {
    x = program.add(tensor("x", from, Shape{n}, Role::activation));
    scale = program.add(tensor("scale", DType::f32, Shape{1}, Role::scalar));
    (void)quantize(program, attributes, {}, "q", x, scale);
  }
};

inline constexpr DType quantized_types[] = {DType::f32, DType::f16, DType::bf16};
inline constexpr DType narrow_types[] = {DType::f8_e4m3, DType::f8_e5m2};

inline void expect_bounds_of_quantize(const BackendContract& on) {
  for (const DType from : quantized_types) {
    for (const DType to : narrow_types) {
      for (const std::int64_t n : {1, 15, 16, 1027, 20000}) {
        const QuantizeProgram q(from, n, {to});
        for (const double scale : {0.0625, 1.0, 300.0}) {  // the last overflows
          const auto fill = [&](ProgramRun& run) {
            run.set_random(q.x, 3, 2.0);
            run.set(q.scale, std::vector<double>{scale});
          };
          EXPECT_EQ(on.judge(q.program, fill), "")
              << name(from) << " to " << name(to) << ", " << n << ", scale " << scale;
        }
      }
    }
  }
}

/// Ties, subnormals and overflow of either 8-bit type.
inline void expect_every_number_to_be_rounded_once(const BackendContract& on, const std::vector<double>& scales) {
  for (const DType from : {DType::f16, DType::bf16}) {
    const std::vector<double> values = every_number(from);
    for (const DType to : narrow_types) {
      for (const bool saturate : {true, false}) {
        const QuantizeProgram q(from, static_cast<std::int64_t>(values.size()), {to, saturate});
        for (const double scale : scales) {
          const auto fill = [&](ProgramRun& run) {
            run.set(q.x, values);
            run.set(q.scale, std::vector<double>{scale});
          };
          EXPECT_EQ(on.judge(q.program, fill), "")
              << name(from) << " to " << name(to) << ", saturate " << saturate << ", scale " << scale;
        }
      }
    }
  }
}

inline void expect_blocks_to_be_exact(const BackendContract& on) {
  for (const DType from : quantized_types) {
    for (const BlocksProgram& p : blocks_programs(from)) {
      for (const bool specials : {false, true}) {
        for (const double scale : {0.25, 3.0}) {
          const auto fill = [&](ProgramRun& run) {
            run.set(p.x, block_rows(specials));
            if (p.scale) run.set(*p.scale, std::vector<double>{scale});
          };
          EXPECT_EQ(on.judge(p.program, fill), "") << p.what << ", scale " << scale;
        }
      }
    }
  }
}

inline void expect_blocks_that_begin_anywhere(const BackendContract& on) {
  Program program;
  const ValueId whole = program.add(tensor("whole", DType::bf16, Shape{200}, Role::activation));
  const ValueId x = program.part(whole, tensor("x", DType::bf16, Shape{2, 96}, Role::activation), 3);
  (void)quantize_blocks(program, {}, {}, "q", x);
  EXPECT_EQ(on.judge(program, [&](ProgramRun& run) { run.set_random(whole, 3, 2.0); }), "");
}

/// Of every bit pattern of a type: elements of 4 bits, or the scales that it chooses as the largest of its block.
/// Judged once, in one order, as there are many.
inline void expect_right_elements_and_scales(Backend& backend, DType type, const std::vector<double>& values) {
  for (const BlocksProgram& p : blocks_programs(type, Shape{static_cast<std::int64_t>(values.size()) / 32, 32})) {
    ProgramRun run(backend, p.program);
    run.set(p.x, values);
    if (p.scale) run.set(*p.scale, std::vector<double>{1.0});
    EXPECT_EQ(run_and_judge(run), "") << p.what;
  }
}

inline void expect_scales_of_histories(const BackendContract& on) {
  for (const DType to : narrow_types) {
    for (const std::vector<double>& history : amax_histories()) {
      Program program;
      const Shape shape{static_cast<std::int64_t>(history.size())};
      const ValueId amax = program.add(tensor("history", DType::f32, shape, Role::statistic));
      (void)scale_from_amax(program, {to, 2}, {}, "scale", amax);
      EXPECT_EQ(on.judge(program, [&](ProgramRun& run) { run.set(amax, history); }), "")
          << name(to) << " " << history[0];
    }
  }
}

inline void expect_largest_magnitude_anywhere(const BackendContract& on) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, Shape{30000}, Role::activation));
  (void)amax(program, {}, "amax", x);
  for (const std::size_t place : {0, 8191, 8192, 29999}) {
    std::vector<double> values(30000, 1.5);
    values[place] = -2.0;
    EXPECT_EQ(on.judge(program, [&](ProgramRun& run) { run.set(x, values); }), "") << place;
  }
  Program of_part;
  const auto [whole, part] = part_of_rows(of_part, tensor("x", DType::bf16, Shape{70, 48}, Role::activation), 100, 3);
  (void)amax(of_part, {}, "amax", part);
  EXPECT_EQ(on.judge(of_part, [&, id = whole](ProgramRun& run) { run.set_random(id, 3, 2.0); }), "");
}

inline void expect_nan_in_its_value_and_the_largest(const BackendContract& on) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, Shape{40}, Role::activation));
  const ValueId scale = program.add(tensor("scale", DType::f32, Shape{1}, Role::scalar));
  const Quantized out = quantize(program, {}, {}, "op", x, scale);
  ProgramRun run(on.backend, program);
  run.set(x, std::vector<double>(40, 3.0));
  spoil(run, x, 17);
  run.set(scale, std::vector<double>{2.0});

  run.run();

  EXPECT_TRUE(std::isnan(run.get(out.amax)[0]));
  EXPECT_EQ(run.get(out.inverse)[0], 0.5);
  expect_nan_where(run.get(out.values), [](std::size_t i) { return i == 17; });
}

}  // namespace gpubench::testing
