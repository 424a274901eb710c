// Products of block-scaled operands on the CPU, against the textbook; and values of codes, bit for bit.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference/block_scaled_programs.h"
#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace block_scaled_gemm_test {

using testing::BlockScaledProgram;
using testing::BlockScaledTypes;
using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

TEST(BlockScaledGemm, EveryFormatAndOddShapeIsRight) {
  for (const BlockScaledTypes& types : {testing::mxfp8, testing::mxfp8_mixed, testing::mxfp4, testing::nvfp4}) {
    for (const GemmExtents& extents : {GemmExtents{1, 1, 1, 32}, {1, 5, 7, 96}, {1, 130, 33, 256}, {1, 17, 300, 512}}) {
      for (const DType c : {DType::f32, DType::bf16}) {
        for (const Gemm& attributes : {Gemm{}, Gemm{.alpha = -0.3, .bias = true}}) {
          const BlockScaledProgram p(types, extents, c, attributes);
          ProgramRun run(shared_backend(), p.program);
          p.fill(run);

          EXPECT_EQ(run_and_judge(run), "") << p.what();
        }
      }
    }
  }
}

// 2^-127 to 2^-121 and 2^110 to 2^116: dense copies of one operand are partly subnormal, but the products are not.
TEST(BlockScaledGemm, SubnormalOperandsCount) {
  for (const BlockScaledTypes& types : {testing::mxfp8, testing::mxfp8_mixed, testing::mxfp4}) {
    const BlockScaledProgram p(types, {.m = 20, .n = 24, .k = 128}, DType::f32);
    ProgramRun run(shared_backend(), p.program);
    p.fill(run, 0, 237);

    EXPECT_EQ(run_and_judge(run), "") << p.what();
    double sum = 0.0;
    for (const double c : run.get(p.result.c)) sum += std::fabs(c);
    EXPECT_GT(sum, 1e-6) << p.what();
  }
}

// Every code times every scale within f32's range, by a product with the identity; without NaN codes, since NaN times 0
// is NaN.
void expect_every_code(DType type, DType scales, int last_scale) {
  const std::int64_t k = 32, block = block_of_scale(scales), codes = std::int64_t{1} << bits_of(type);
  const std::int64_t rows_each = codes / std::min(codes, k), rows = (last_scale + 1) * rows_each;
  BlockScaledProgram p({type, type, scales}, {.m = rows, .n = k, .k = k}, DType::f32);
  ProgramRun run(shared_backend(), p.program);
  const auto number = [](DType of, std::int64_t code) {
    std::byte stored[2]{};
    store_bits(of, stored, 0, static_cast<std::uint64_t>(code));
    return load(of, stored);
  };
  std::vector<double> a(static_cast<std::size_t>(rows * k)), b(static_cast<std::size_t>(k * k));
  std::vector<double> of_a(static_cast<std::size_t>(rows * k / block)), expected(a.size());
  for (std::int64_t i = 0; i < rows * k; ++i) {
    const double value = number(type, i / k % rows_each * k + i % k % codes);
    const std::int64_t scale = i / k / rows_each;
    const double factor =
        scales == DType::u8 ? std::ldexp(1.0, static_cast<int>(scale) - 127) : std::fabs(number(scales, scale));
    a[static_cast<std::size_t>(i)] = std::isfinite(value) ? value : 0.0;
    of_a[static_cast<std::size_t>(i / block)] = scales == DType::u8 ? static_cast<double>(scale) : factor;
    expected[static_cast<std::size_t>(i)] = std::isfinite(value) ? value * factor : 0.0;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) b[i * static_cast<std::size_t>(k) + i] = 1.0;
  run.set(p.a, a);
  run.set(p.b, b);
  run.set(p.blocks_a, of_a);
  run.set(p.blocks_b, std::vector<double>(static_cast<std::size_t>(k * k / block), scales == DType::u8 ? 127.0 : 1.0));
  for (const auto& factor : {p.operands.scale_a, p.operands.scale_b}) {
    if (factor) run.set(*factor, std::vector<double>{1.0});
  }
  run.run();

  const std::vector<double> c = run.get(p.result.c);
  for (std::size_t i = 0; i < c.size(); ++i)
    ASSERT_EQ(c[i], expected[i]) << name(type) << " " << a[i] << ", scale "
                                 << of_a[i / static_cast<std::size_t>(block)];
}

TEST(BlockScaledGemm, EveryCodeTimesEveryScaleIsExact) {
  expect_every_code(DType::f8_e4m3, DType::u8, 246);  // 448 * 2^119 < 2^128
  expect_every_code(DType::f8_e5m2, DType::u8, 239);
  expect_every_code(DType::f4_e2m1, DType::u8, 252);
  expect_every_code(DType::f4_e2m1, DType::f8_e4m3, 0x7e);
}

TEST(BlockScaledGemm, AScaleThatIsNoNumberMakesItsRowNaN) {
  for (const BlockScaledTypes& types : {testing::mxfp8, testing::nvfp4}) {
    const BlockScaledProgram p(types, {.m = 3, .n = 4, .k = 64});
    ProgramRun run(shared_backend(), p.program);
    p.fill(run);
    std::vector<double> scales = run.get(p.blocks_a);
    scales[scales.size() / 3] = types.scales == DType::u8 ? 255.0 : std::nan("");  // the first of the second row
    run.set(p.blocks_a, scales);

    EXPECT_EQ(run_and_judge(run), "");
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(std::isnan(run.get(p.result.c)[i]), i / 4 == 1) << i;
  }
}

TEST(BlockScaledGemm, WhatItLacksIsUnsupportedByName) {
  for (const Gemm& attributes : {Gemm{.beta = 1.0}, Gemm{.epilogue = Gemm::Epilogue::gelu}}) {
    const BlockScaledProgram p(testing::mxfp8, {.m = 4, .n = 4, .k = 32}, DType::f32, attributes);
    const std::string words = testing::refusal(shared_backend(), p.program);
    EXPECT_NE(words.find("expected neither beta nor GELU with block-scaled operands"), std::string::npos) << words;
  }
}

}  // namespace block_scaled_gemm_test
}  // namespace gpubench
