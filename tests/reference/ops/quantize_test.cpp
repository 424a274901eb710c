#include "reference/ops/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/ops/gemm.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/differentiate.h"
#include "tests/reference/ops/textbook_run.h"
#include "tests/reference/quantize_contract.h"

namespace gpubench::testing {
namespace quantize_test {

struct Scaled {
  Program program;
  ValueId x, scale;
  Quantized out;
  explicit Scaled(DType to, Shape shape = {6}, DType from = DType::bf16)
      : x(source(program, "x", from, std::move(shape))), scale(source(program, "scale", DType::f32, {1})) {
    out = quantize(program, {to}, f32_math, "q", x, scale);
  }
};

TEST(Quantize, ScalesRoundsToEvenAndClampsInsteadOfOverflowing) {
  Scaled e4m3(DType::f8_e4m3);
  TextbookRun run(e4m3.program);
  run.set(e4m3.x, {1.0, 1.0625, 1.1875, -300.0, 0.0009765625, -0.25});
  run.set(e4m3.scale, {2.0});
  run.run();

  // 2; 2.125 and 2.375 are halfway between 2, 2.25 and 2.5 (three fraction bits); -600 exceeds 448; 2^-9 is the
  // smallest
  EXPECT_EQ(run.get(e4m3.out.values), (std::vector<double>{2.0, 2.0, 2.5, -448.0, 0x1p-9, -0.5}));
  EXPECT_EQ(run.get(e4m3.out.inverse), (std::vector<double>{0.5}));
  EXPECT_EQ(run.get(e4m3.out.amax), (std::vector<double>{300.0}));

  Scaled e5m2(DType::f8_e5m2);
  TextbookRun wide(e5m2.program);
  wide.set(e5m2.x, {1.0, 1.125, 1.375, -30000.0, 16384.0, 0.0});
  wide.set(e5m2.scale, {4.0});
  wide.run();

  // 4; 4.5 and 5.5 lie halfway between 4, 5 and 6 (two fraction bits); 120000 and 65536 are beyond 57344
  EXPECT_EQ(wide.get(e5m2.out.values), (std::vector<double>{4.0, 4.0, 6.0, -57344.0, 57344.0, 0.0}));
}

// As ONNX's Cast to an 8-bit type with saturate = 1.
TEST(Quantize, InfinitiesBecomeTheLargestNumberWhateverTheScale) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double scale : {1.0, 0.3}) {
    Scaled scaled(DType::f8_e4m3);
    TextbookRun run(scaled.program);
    run.set(scaled.x, {infinity, -infinity, std::nan(""), 0.0, 0.0, 0.0});
    run.set(scaled.scale, {scale});

    const std::vector<Expected> values = run.judge(0, 0);

    EXPECT_EQ(values[0].value, 448.0);
    EXPECT_EQ(values[1].value, -448.0);
    EXPECT_EQ(values[0].bound, 0.0);
    EXPECT_TRUE(std::isnan(values[2].value));
  }
}

// The nearest number of the type, ties to even, by exhaustive search. Halfway beyond the largest number overflows in
// e5m2, whose largest is odd, but not in e4m3.
double nearest(double x, DType to, bool saturate) {
  if (std::isnan(x)) return x;
  const double largest = to == DType::f8_e4m3 ? 448.0 : 57344.0;
  const double overflow = to == DType::f8_e4m3 ? 464.0 : 61440.0;
  const bool too_large = to == DType::f8_e4m3 ? std::fabs(x) > overflow : std::fabs(x) >= overflow;
  if (too_large) return saturate ? std::copysign(largest, x) : to == DType::f8_e4m3 ? NAN : std::copysign(HUGE_VAL, x);
  double best = 0.0;
  for (unsigned code = 1; code < 0x7fU; ++code) {
    const std::byte stored{static_cast<unsigned char>(code)};
    const double number = load(to, &stored);
    if (!std::isfinite(number)) break;
    const double now = std::fabs(std::fabs(x) - number), before = std::fabs(std::fabs(x) - best);
    if (now < before || (now == before && code % 2 == 0)) best = number;
  }
  return std::copysign(best, x);
}

TEST(Quantize, EveryF16BecomesTheNearestNumberInBothModesOfOverflow) {
  const std::vector<double> values = every_number(DType::f16);
  for (const DType to : {DType::f8_e4m3, DType::f8_e5m2}) {
    for (const bool saturate : {true, false}) {
      Program program;
      const ValueId x = source(program, "x", DType::f16, {static_cast<std::int64_t>(values.size())});
      const ValueId scale = source(program, "scale", DType::f32, {1});
      const Quantized out = quantize(program, {to, saturate}, f32_math, "q", x, scale);
      TextbookRun run(program);
      run.set(x, values);
      run.set(scale, {1.0});
      run.run();
      const std::vector<double> got = run.get(out.values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double expected = nearest(values[i], to, saturate);
        ASSERT_TRUE(got[i] == expected || (std::isnan(got[i]) && std::isnan(expected)))
            << values[i] << " became " << got[i] << " of " << name(to) << ", saturate " << saturate;
        ASSERT_TRUE(std::isnan(expected) || std::signbit(got[i]) == std::signbit(expected)) << values[i];
      }
    }
  }
}

TEST(Quantize, ScalesAreTheLargestPowerOfTwoThatLeavesRoom) {
  const auto scale_of = [](std::vector<double> history, DType to, int margin) {
    Program program;
    const ValueId amax = source(program, "history", DType::f32, {static_cast<std::int64_t>(history.size())});
    const ValueId scale = scale_from_amax(program, {to, margin}, f32_math, "scale", amax);
    TextbookRun run(program);
    run.set(amax, std::move(history));
    run.run();
    return run.get(scale)[0];
  };
  EXPECT_EQ(scale_of({1.0, 3.5, 2.0}, DType::f8_e4m3, 0), 128.0);  // 3.5 * 128 = 448
  EXPECT_EQ(scale_of({3.75}, DType::f8_e4m3, 0), 64.0);            // 3.75 * 128 = 480 is too large
  EXPECT_EQ(scale_of({3.5}, DType::f8_e4m3, 3), 16.0);             // 448 / 8 = 56
  EXPECT_EQ(scale_of({1.0}, DType::f8_e5m2, 0), 32768.0);          // 65536 > 57344
  EXPECT_EQ(scale_of({1000.0}, DType::f8_e4m3, 0), 0.25);
  EXPECT_EQ(scale_of({0x1p-149}, DType::f8_e5m2, 0), 0x1p127);
  EXPECT_EQ(scale_of({0.0}, DType::f8_e4m3, 0), 1.0);
  EXPECT_EQ(scale_of({2.0, HUGE_VAL}, DType::f8_e4m3, 0), 1.0);
  EXPECT_EQ(scale_of({2.0, NAN}, DType::f8_e4m3, 0), 1.0);
}

TEST(Quantize, AmaxIsTheLargestMagnitudeAndNaNWhereAnyIs) {
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {4});
  const ValueId largest = amax(program, f32_math, "amax", x);
  TextbookRun run(program);
  run.set(x, {1.0, -7.0, 3.0, 0.0});
  run.run();
  EXPECT_EQ(run.get(largest), (std::vector<double>{7.0}));
  run.set(x, {1.0, NAN, 9.0, 0.0});
  run.run();
  EXPECT_TRUE(std::isnan(run.get(largest)[0]));
}

/// Expected values and scale of a block with these first elements, else 0, given the `written` ones, if any.
struct Block {
  std::vector<double> values;
  double scale;
};
Block block_of(const QuantizeBlocks& attributes, std::vector<double> x, double tensor_scale = 1.0,
               const std::optional<Block>& written = {}) {
  const std::size_t wanted = x.size();
  x.resize(static_cast<std::size_t>(gpubench::block_of(attributes.format)));
  Program program;
  const ValueId in = source(program, "x", DType::f32, {static_cast<std::int64_t>(x.size())});
  std::optional<ValueId> scale;
  if (attributes.format == BlockFormat::nvfp4) scale = source(program, "scale", DType::f32, {1});
  const QuantizedBlocks out = quantize_blocks(program, attributes, f32_math, "q", in, scale);
  TextbookRun run(program);
  run.set(in, x);
  if (scale) run.set(*scale, {tensor_scale});
  run.run();
  std::vector<double> values = run.get(out.values), scales = run.get(out.scales);
  if (written) {
    std::ranges::copy(written->values, values.begin());
    run.set(out.values, values);
    run.set(out.scales, {written->scale});
    values = values_of(run.judge_stored(0, 0));
    scales = values_of(run.judge_stored(0, 1));
  }
  values.resize(wanted);
  return {std::move(values), scales[0]};
}

// E8M0 127 is 2^0. Largest 3.75: its exponent 1 less e4m3's 8 is 2^-7, 120; 480 saturates, or takes 2^-6.
TEST(Quantize, MxScalesAreTheExponentOfTheLargestOrCoverIt) {
  const Block floor = block_of({BlockFormat::mxfp8_e4m3}, {3.75, -1.0, 0x1p-17, -0.0});
  EXPECT_EQ(floor.scale, 120.0);
  EXPECT_EQ(floor.values, (std::vector<double>{448.0, -128.0, 0.0, -0.0}));  // 2^-10 ties to 0
  const Block covering = block_of({BlockFormat::mxfp8_e4m3, true}, {3.75, -1.0});
  EXPECT_EQ(covering.scale, 121.0);
  EXPECT_EQ(covering.values, (std::vector<double>{240.0, -64.0}));
  EXPECT_EQ(block_of({BlockFormat::mxfp8_e4m3, true}, {3.5}).scale, 120.0);
  const Block wide = block_of({BlockFormat::mxfp8_e5m2}, {1.0, 1.125});
  EXPECT_EQ(wide.scale, 112.0);
  EXPECT_EQ(wide.values, (std::vector<double>{32768.0, 32768.0}));  // 36864 ties to even
  const Block four = block_of({BlockFormat::mxfp4}, {7.0, 2.5, -0.25});
  EXPECT_EQ(four.scale, 127.0);
  EXPECT_EQ(four.values, (std::vector<double>{6.0, 2.0, -0.0}));
  EXPECT_EQ(block_of({BlockFormat::mxfp4, true}, {7.0, 2.5}).values, (std::vector<double>{4.0, 1.0}));  // 3.5, 1.25
}

TEST(Quantize, MxScalesEndAtTheSmallestAndSayNaN) {
  EXPECT_EQ(block_of({BlockFormat::mxfp8_e4m3}, {0.0, -0.0}).scale, 0.0);
  const Block tiny = block_of({BlockFormat::mxfp8_e4m3}, {0x1p-127});
  EXPECT_EQ(tiny.scale, 0.0);
  EXPECT_EQ(tiny.values[0], 1.0);
  for (const double special : {HUGE_VAL, -HUGE_VAL, static_cast<double>(NAN)}) {
    const Block broken = block_of({BlockFormat::mxfp8_e5m2}, {1.0, special});
    EXPECT_EQ(broken.scale, 255.0);
    EXPECT_TRUE(std::isnan(broken.values[0]));
    EXPECT_EQ(block_of({BlockFormat::mxfp4}, {1.0, special}).values, (std::vector<double>{6.0, 6.0}));
  }
}

TEST(Quantize, Nvfp4ScalesAreASixthOfTheLargestInE4m3) {
  const Block unit = block_of({BlockFormat::nvfp4}, {6.0, 2.5, -5.0, 0.75});
  EXPECT_EQ(unit.scale, 1.0);
  EXPECT_EQ(unit.values, (std::vector<double>{6.0, 2.0, -4.0, 1.0}));
  // 7 / 6 = 1.1667 is 1.125 in e4m3; 7 / 1.125 = 6.2 saturates
  const Block rounded = block_of({BlockFormat::nvfp4}, {7.0, 1.125});
  EXPECT_EQ(rounded.scale, 1.125);
  EXPECT_EQ(rounded.values, (std::vector<double>{6.0, 1.0}));
  const Block scaled = block_of({BlockFormat::nvfp4}, {0.75, 0.25}, 16.0);
  EXPECT_EQ(scaled.scale, 2.0);
  EXPECT_EQ(scaled.values, (std::vector<double>{6.0, 2.0}));
  const Block vanished = block_of({BlockFormat::nvfp4}, {0x1p-30, -0x1p-30});
  EXPECT_EQ(vanished.scale, 0.0);
  EXPECT_TRUE(std::signbit(vanished.values[1]) && vanished.values[1] == 0.0);
  EXPECT_TRUE(std::isnan(block_of({BlockFormat::nvfp4}, {1.0, NAN}).scale));
}

// 254 is 2^127, the largest scale: 1 becomes 0.
TEST(Quantize, AnInfinityMaySaturateUnderTheLargestMxScale) {
  for (const BlockFormat format : {BlockFormat::mxfp8_e4m3, BlockFormat::mxfp4}) {
    const double most = largest_finite(element_of(format));
    const Block saturated{{-most, 0.0}, 254.0};
    EXPECT_EQ(block_of({format}, {-HUGE_VAL, 1.0}, 1.0, saturated).values, saturated.values);
    EXPECT_EQ(block_of({format}, {-HUGE_VAL, 1.0}, 1.0, saturated).scale, 254.0);
    EXPECT_EQ(block_of({format}, {-HUGE_VAL, 1.0}, 1.0, Block{{0.0, 0.0}, 253.0}).scale, 255.0);
    EXPECT_EQ(block_of({format}, {NAN, 1.0}, 1.0, saturated).scale, 255.0);
    EXPECT_NE(block_of({format}, {256.0, 1.0}, 1.0, saturated).scale, 254.0);
  }
}

// Scales below 2^-6 are subnormal in e4m3: 0.0625 / 6 is nearest to 5 2^-9, and may be 2^-6 too.
TEST(Quantize, AnNvfp4ScaleBelowTheNormalOnesMayBeTheSmallestOfThese) {
  const QuantizeBlocks nvfp4{BlockFormat::nvfp4};
  EXPECT_EQ(block_of(nvfp4, {0.0625}, 1.0, Block{{0.0}, 5 * 0x1p-9}).scale, 5 * 0x1p-9);
  EXPECT_EQ(block_of(nvfp4, {0.0625}, 1.0, Block{{0.0}, 0x1p-6}).scale, 0x1p-6);
  EXPECT_EQ(block_of(nvfp4, {0.0625}, 1.0, Block{{4.0}, 0x1p-6}).values[0], 4.0);
  EXPECT_EQ(block_of(nvfp4, {0.0625}, 1.0, Block{{0.0}, 6 * 0x1p-9}).scale, 5 * 0x1p-9);
  EXPECT_EQ(block_of(nvfp4, {6.0}, 1.0, Block{{0.0}, 0x1p-6}).scale, 1.0);
}

// The nearest of e2m1's fifteen numbers, ties to even codes, by exhaustive search.
TEST(Quantize, EveryBf16BecomesTheNearestNumberOfFourBits) {
  const std::vector<double> values = every_element(DType::bf16);
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {static_cast<std::int64_t>(values.size())});
  const QuantizedBlocks out = quantize_blocks(program, {BlockFormat::mxfp4}, f32_math, "q", x);
  TextbookRun run(program);
  run.set(x, values);
  run.run();
  const std::vector<double> got = run.get(out.values);
  constexpr double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (std::size_t i = 0; i < values.size(); ++i) {
    int best = 0;
    for (int code = 1; code < 8; ++code) {
      const double now = std::fabs(std::fabs(values[i]) - numbers[code]);
      const double before = std::fabs(std::fabs(values[i]) - numbers[best]);
      if (now < before || (now == before && code % 2 == 0)) best = code;
    }
    ASSERT_EQ(got[i], std::copysign(numbers[best], values[i])) << values[i];
    ASSERT_EQ(std::signbit(got[i]), std::signbit(values[i])) << values[i];
  }
}

// By definition: 2^e times the type's largest power of two is the largest that does not exceed the block's largest
// number, or 2^e times its largest number is the smallest that covers it.
TEST(Quantize, EveryBf16ChoosesThePowerOfTwoThatTheRuleAsksFor) {
  const std::vector<double> values = every_largest(DType::bf16), numbers = every_number(DType::bf16);
  const std::size_t blocks = values.size() / 32;
  for (const BlockFormat format : {BlockFormat::mxfp8_e4m3, BlockFormat::mxfp8_e5m2, BlockFormat::mxfp4}) {
    const double largest = format == BlockFormat::mxfp8_e4m3 ? 448 : format == BlockFormat::mxfp8_e5m2 ? 57344 : 6;
    const double power = format == BlockFormat::mxfp8_e4m3 ? 256 : format == BlockFormat::mxfp8_e5m2 ? 32768 : 4;
    for (const bool covers : {false, true}) {
      Program program;
      const ValueId x = source(program, "x", DType::bf16, {static_cast<std::int64_t>(blocks), 32});
      (void)quantize_blocks(program, {format, covers}, f32_math, "q", x);
      TextbookRun run(program);
      run.set(x, values);
      const std::vector<Expected> scales = run.judge(0, 1);
      for (std::size_t i = 0; i < blocks; ++i) {
        const double code = scales[i].value, a = std::fabs(numbers[i]);
        const double scale = std::ldexp(1.0, static_cast<int>(code) - 127), limit = covers ? largest : power;
        if (!std::isfinite(a)) {
          ASSERT_EQ(code, 255.0);
        } else if (covers) {
          ASSERT_TRUE(a <= scale * limit && (code == 0.0 || a > scale / 2.0 * limit)) << a << " " << code;
        } else {
          ASSERT_TRUE((a >= scale * limit || code == 0.0) && a < 2.0 * scale * limit) << a << " " << code;
        }
      }
    }
  }
}

TEST(Quantize, SubsetsOfBlocksAgreeWithAll) {
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {6, 96});
  (void)quantize_blocks(program, {}, f32_math, "q", x);
  TextbookRun run(program);
  run.set(x, spread(6 * 96, 1));
  for (int output = 0; output < 2; ++output) expect_subsets_agree(run, 0, output);
}

TEST(Quantize, BlocksRefuseWhatTheyCannotCut) {
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {2, 48});
  const ValueId wide = source(program, "wide", DType::f64, {2, 64});
  const ValueId scale = source(program, "scale", DType::f32, {1});
  EXPECT_THROW(quantize_blocks(program, {}, f32_math, "q", x), ProgramError);
  EXPECT_THROW(quantize_blocks(program, {}, f32_math, "q", wide), ProgramError);
  EXPECT_THROW(quantize_blocks(program, {BlockFormat::nvfp4}, f32_math, "q", x), ProgramError);
  EXPECT_THROW(quantize_blocks(program, {BlockFormat::mxfp4}, f32_math, "q", x, scale), ProgramError);
  EXPECT_NO_THROW(quantize_blocks(program, {BlockFormat::nvfp4}, f32_math, "q", x, scale));
  EXPECT_THROW(scale_from_amax(program, {DType::f16}, f32_math, "s", scale), ProgramError);
  EXPECT_THROW(scale_from_amax(program, {DType::f8_e4m3, -1}, f32_math, "s", scale), ProgramError);
  EXPECT_THROW(scale_from_amax(program, {}, f32_math, "s", x), ProgramError);
}

TEST(Quantize, IsBitwiseWhereTheScaleIsAPowerOfTwo) {
  Scaled scaled(DType::f8_e4m3);
  TextbookRun run(scaled.program);
  run.set(scaled.x, {1, 2, 3, 4, 5, 500});
  run.set(scaled.scale, {0.125});
  for (int output = 0; output < 3; ++output) {
    for (const Expected& judged : run.judge(0, output)) EXPECT_EQ(judged.bound, 0.0) << output;
  }

  run.set(scaled.scale, {3.0});
  // u |scale x|; beyond the largest number the result is certain
  EXPECT_EQ(run.judge(0, 0)[1].bound, 0x1p-24 * 6.0);
  EXPECT_EQ(run.judge(0, 0)[5].value, 448.0);
  EXPECT_EQ(run.judge(0, 0)[5].bound, 0.0);
  EXPECT_EQ(run.judge(0, 1)[0].bound, 0x1p-24 / 3.0);
  EXPECT_EQ(run.judge(0, 2)[0].bound, 0.0);
}

TEST(Quantize, TheSignOfZeroIsKept) {
  Scaled scaled(DType::f8_e5m2);
  TextbookRun run(scaled.program);
  run.set(scaled.x, {0.0, -0.0, 1, 1, 1, 1});
  run.set(scaled.scale, {2.0});
  const auto judged = run.judge(0, 0);
  EXPECT_TRUE(judged[0].bitwise && judged[1].bitwise);
  EXPECT_FALSE(std::signbit(judged[0].value));
  EXPECT_TRUE(std::signbit(judged[1].value));
}

TEST(Quantize, ANeighbouringScaleATruncatedValueAndAnInfinityAreRejected) {
  Scaled scaled(DType::f8_e5m2, {64});
  TextbookRun run(scaled.program);
  run.set(scaled.x, spread(64, 5));
  run.set(scaled.scale, {16.0});
  const std::vector<Expected> judged = run.judge(0, 0);
  const std::vector<double> x = run.get(scaled.x);
  int right = 0, doubled = 0, cut = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double y = 16.0 * x[i];
    const double unit = std::exp2(std::ilogb(y) - 2);
    right += within(judged[i], DType::f8_e5m2, round_to(DType::f8_e5m2, y)) ? 1 : 0;
    doubled += within(judged[i], DType::f8_e5m2, round_to(DType::f8_e5m2, 2.0 * y)) ? 1 : 0;
    cut += within(judged[i], DType::f8_e5m2, std::trunc(y / unit) * unit) ? 1 : 0;
  }
  EXPECT_EQ(right, 64);
  EXPECT_EQ(doubled, 0);
  EXPECT_LT(cut, 48);
  run.set(scaled.x, std::vector<double>(64, 60000.0));
  EXPECT_FALSE(within(run.judge(0, 0)[0], DType::f8_e5m2, HUGE_VAL));
  EXPECT_TRUE(within(run.judge(0, 0)[0], DType::f8_e5m2, 57344.0));
}

TEST(Quantize, SubsetsOfUnitsAgreeWithAll) {
  Scaled scaled(DType::f8_e4m3, {30, 41});
  TextbookRun run(scaled.program);
  run.set(scaled.x, spread(30 * 41, 1));
  run.set(scaled.scale, {100.0});
  for (int output = 0; output < 3; ++output) expect_subsets_agree(run, 0, output);
}

TEST(Quantize, WritesTransposedCopies) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {2, 3});
  const ValueId scale = source(program, "scale", DType::f32, {1});
  const Quantized out =
      quantize(program, {}, f32_math, "q", x, scale, Layout::ordered(Shape{2, 3}, std::vector<int>{1, 0}));
  TextbookRun run(program);
  run.set(x, {1, 2, 3, 4, 5, 6});
  run.set(scale, {1});
  run.run();

  EXPECT_EQ(run.get(out.values), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(program.spec(out.values).layout.strides, (std::vector<std::int64_t>{1, 2}));
}

TEST(Quantize, ItsGradientPassesStraightThrough) {
  Scaled scaled(DType::f8_e4m3);
  SingleOpTape tape(scaled.program);
  const ValueId dy = source(scaled.program, "dy", DType::bf16, {6}, Role::gradient);
  tape.given[scaled.out.values] = dy;
  tape.wanted_inputs = {scaled.x};
  const OpCall forward = scaled.program.op(0);

  definition(quantize_kind).derivative(scaled.program, forward, tape);

  EXPECT_EQ(scaled.program.ops().size(), 1U);
  ASSERT_EQ(tape.contributions.count(scaled.x), 1U);
  EXPECT_EQ(tape.contributions.find(scaled.x)->second, dy);
}

TEST(Quantize, TheGradientOfAnEightBitValueIsKeptInBf16) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {6});
  const ValueId scale = source(program, "scale", DType::f32, {1});
  const Quantized q = quantize(program, {}, f32_math, "q", x, scale);
  const ValueId dq = source(program, "dq", DType::bf16, {6}, Role::gradient);
  const auto gradients = differentiate(program, std::vector<Seed>{{q.values, dq}}, std::vector<ValueId>{x});

  EXPECT_EQ(program.spec(gradients.at(x)).dtype, DType::f32);
  EXPECT_EQ(program.ops().back().kind.name, "cast");
}

TEST(Quantize, RefusesWhatIsNotAnEightBitTypeOrAScale) {
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {6});
  const ValueId scale = source(program, "scale", DType::f32, {1});
  const auto message = [&](DType to, ValueId from, ValueId by) {
    return program_error([&] { (void)quantize(program, {to}, f32_math, "q", from, by); });
  };
  EXPECT_EQ(message(DType::bf16, x, scale), "quantize: to bf16; expected f8_e4m3 or f8_e5m2");
  EXPECT_EQ(message(DType::f8_e4m3, x, x), "quantize: tensor 'x' has shape [6]; expected [1]");
  EXPECT_EQ(describe(Quantize{DType::f8_e5m2}), "to=f8_e5m2");
}

// [1 2; 3 4] [5 6; 7 8] = [19 22; 43 50], as 8-bit numbers eight and four times as large.
struct EightBitGemm {
  Program program;
  ValueId a = source(program, "a", DType::f8_e4m3, {2, 2}), b = source(program, "b", DType::f8_e5m2, {2, 2});
  ValueId scale_a = source(program, "scale_a", DType::f32, {1}), scale_b = source(program, "scale_b", DType::f32, {1});
};

TEST(Gemm, TakesTheScalesOfEightBitOperandsBack) {
  EightBitGemm f8;
  const ValueId bias = source(f8.program, "bias", DType::bf16, {2});
  const GemmResult result = gemm(f8.program, {.bias = true, .scaled = true}, f32_math, "product", f8.a, f8.b,
                                 {.bias = bias, .scale_a = f8.scale_a, .scale_b = f8.scale_b});
  TextbookRun run(f8.program);
  run.set(f8.a, {8, 16, 24, 32});
  run.set(f8.b, {20, 24, 28, 32});
  run.set(f8.scale_a, {0.125});
  run.set(f8.scale_b, {0.25});
  run.set(bias, {1, -1});
  run.run();

  EXPECT_EQ(run.get(result.c), (std::vector<double>{20, 21, 44, 49}));
  EXPECT_EQ(f8.program.spec(result.c).dtype, DType::bf16);
  // One chunk of two products: E (1/4 + 1) + 2 u (|C| + Q), E = 2^-14 (2 sqrt(2) + 9/8) (|C| + Q); three operations
  // after.
  const double size = 19.0 + std::sqrt(25.0 + 196.0);
  const double sum = size * (1.25 * 0x1p-14 * (2.0 * std::sqrt(2.0) + 1.125) + 2.0 * 0x1p-24);
  EXPECT_NEAR(run.judge(0, 0)[0].bound, sum + 3.0 * 0x1p-24 * (19.0 + 1.0), 1e-12 * sum);
}

// dc = [1 2; 3 4] becomes 8-bit with a scale of 2^13, as 4 * 2^13 <= 57344. da = dc b^T, db = a^T dc, unscaled.
TEST(Gemm, TheBackwardOfEightBitOperandsReadsAnEightBitGradient) {
  EightBitGemm f8;
  const GemmResult result = gemm(f8.program, {.scaled = true}, f32_math, "product", f8.a, f8.b,
                                 {.scale_a = f8.scale_a, .scale_b = f8.scale_b});
  const ValueId dc = source(f8.program, "dc", DType::bf16, {2, 2}, Role::gradient);
  const auto gradients = differentiate(f8.program, std::vector<Seed>{{result.c, dc}}, std::vector<ValueId>{f8.a, f8.b});
  TextbookRun run(f8.program);
  run.set(f8.a, {8, 16, 24, 32});
  run.set(f8.b, {20, 24, 28, 32});
  run.set(f8.scale_a, {0.125});
  run.set(f8.scale_b, {0.25});
  run.set(dc, {1, 2, 3, 4});
  run.run();

  EXPECT_EQ(run.get(gradients.at(f8.a)), (std::vector<double>{17, 23, 39, 53}));
  EXPECT_EQ(run.get(gradients.at(f8.b)), (std::vector<double>{10, 14, 14, 20}));
  for (const ValueId operand : {f8.a, f8.b}) {
    EXPECT_EQ(f8.program.spec(gradients.at(operand)).dtype, DType::bf16);
    const OpCall& product = f8.program.op(*f8.program.value(gradients.at(operand)).producer);
    const char* of_gradient = operand == f8.a ? "a" : "b";
    EXPECT_EQ(f8.program.spec(product.input(of_gradient)).dtype, DType::f8_e5m2);
  }
}

TEST(Gemm, ScalesBelongToEightBitOperands) {
  EightBitGemm f8;
  const ValueId wide = source(f8.program, "wide", DType::bf16, {2, 2});
  const auto message = [&](ValueId a, ValueId b, const GemmOperands& operands) {
    return program_error([&] { (void)gemm(f8.program, {.scaled = true}, f32_math, "product", a, b, operands); });
  };
  EXPECT_EQ(message(f8.a, f8.b, {}),
            "gemm: operand 'scale_a' is missing but scaled asks for it; expected both or neither");
  EXPECT_EQ(message(wide, wide, {.scale_a = f8.scale_a, .scale_b = f8.scale_b}),
            "gemm: scaled, but tensor 'wide' has type bf16; expected an 8-bit type");
}

}  // namespace quantize_test
}  // namespace gpubench::testing
