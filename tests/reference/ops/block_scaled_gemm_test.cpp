#include <gtest/gtest.h>

#include "reference/ops/quantize.h"
#include "reference/ops/transform/differentiate.h"
#include "tests/reference/block_scaled_programs.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace block_scaled_gemm_test {

std::vector<double> runs(std::initializer_list<double> blocks, std::size_t length) {
  std::vector<double> values;
  for (const double block : blocks) values.insert(values.end(), length, block);
  return values;
}

TEST(BlockScaledGemm, EveryBlockIsMultipliedByItsOwnPowerOfTwo) {
  const BlockScaledProgram p(mxfp8_mixed, {.m = 2, .n = 2, .k = 64});
  TextbookRun run(p.program);
  run.set(p.a, runs({1, 2, 3, 0.5}, 32));
  run.set(p.b, runs({0.5, 0.5, 1, -4}, 32));
  run.set(p.blocks_a, {128, 126, 127, 130});  // 2, 1/2; 1, 8
  run.set(p.blocks_b, {127, 129, 120, 127});  // 1, 4; 1/128, 1

  // Scaled: a = (2, 1), (3, 4); b = (1/2, 2), (1/128, -4); 32 products of each
  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{32 + 64, 0.5 - 128, 48 + 256, 0.75 - 512}));
  // u (2 sqrt(64) + 4.625 * 64 / 32) M. The first sum's terms are 32 of 1 and 32 of 2, so sums of neighbours that end
  // at k are 1, ... 32, 34, ... 96, all of them counted, as the sum has no more than 64 terms.
  double neighbours = 0.0;
  for (int k = 1; k <= 64; ++k) neighbours += std::pow(k <= 32 ? k : 32.0 + 2.0 * (k - 32), 2);
  const double size = std::max(96.0 + std::sqrt(32.0 + 128.0), 2.0 * std::sqrt(neighbours / 64.0));
  EXPECT_NEAR(run.judge(0, 0)[0].bound, 0x1p-24 * (16.0 + 9.25) * size, 1e-12);
}

TEST(BlockScaledGemm, Nvfp4HasScalesWithoutASignAndAFactorForEachTensor) {
  const BlockScaledProgram p(nvfp4, {.m = 1, .n = 1, .k = 32});
  TextbookRun run(p.program);
  run.set(p.a, runs({3, 3}, 16));
  run.set(p.b, runs({-0.5, -0.5}, 16));
  run.set(p.blocks_a, {1.5, 448});
  run.set(p.blocks_b, {0x1p-9, -1.125});
  run.set(*p.operands.scale_a, {0.5});
  run.set(*p.operands.scale_b, {0.25});

  // (16 * 3 * 1.5 * -0.5 / 512 + 16 * 3 * 448 * -0.5 * 1.125) / 8
  const Expected judged = run.judge(0, 0)[0];
  EXPECT_EQ(judged.value, (-36.0 / 512.0 - 12096.0) / 8.0);
  // The factors are two further operations.
  EXPECT_GT(judged.bound, 2.0 * 0x1p-24 * std::fabs(judged.value));
}

TEST(BlockScaledGemm, AScaleThatIsNoNumberMakesItsRowNaNAndNoOther) {
  const BlockScaledProgram p(mxfp4, {.m = 2, .n = 2, .k = 64});
  TextbookRun run(p.program);
  run.set(p.a, runs({1, 0, 1, 1}, 32));
  run.set(p.b, runs({1, 1, 1, 1}, 32));
  run.set(p.blocks_a, {127, 255, 127, 127});
  run.set(p.blocks_b, {127, 127, 0, 127});

  const std::vector<double> c = values_of(run.judge(0, 0));
  EXPECT_TRUE(std::isnan(c[0]) && std::isnan(c[1]));
  EXPECT_EQ(c[2], 64.0);
  EXPECT_EQ(c[3], 32.0 + 32.0 * 0x1p-127);
}

// Exact: whole numbers of up to 4 bits are f8_e4m3's, and f4_e2m1's if the largest of 16 is 6.
TEST(BlockScaledGemm, OfQuantizedTensorsThatLoseNothingIsTheirProduct) {
  for (const BlockFormat format : {BlockFormat::mxfp8_e4m3, BlockFormat::nvfp4}) {
    const bool four_bits = format == BlockFormat::nvfp4;
    const std::vector<double> numbers = four_bits ? std::vector<double>{6, -4, 3, 0, -1.5, 1, 0.5, 2}
                                                  : std::vector<double>{7, -13, 3, 15, -1, 0, 11, -8};
    const auto element = [&](std::size_t i) {
      return i % 16 == 0 ? numbers[0] : numbers[i * i / 5 % 8];  // the largest of nvfp4 in every block
    };
    Program program;
    std::vector<ValueId> x, scale;
    std::vector<QuantizedBlocks> q;
    for (const char* name : {"a", "b"}) {
      x.push_back(source(program, name, DType::f32, {4, 64}));
      if (four_bits) scale.push_back(source(program, std::string(name) + ".scale", DType::f32, {1}));
      q.push_back(quantize_blocks(program, {format, !four_bits}, f32_math, std::string("q") + name, x.back(),
                                  four_bits ? std::optional(scale.back()) : std::nullopt));
    }
    GemmOperands operands{.blocks_a = q[0].scales, .blocks_b = q[1].scales};
    if (four_bits) operands.scale_a = source(program, "ia", DType::f32, {1});
    if (four_bits) operands.scale_b = source(program, "ib", DType::f32, {1});
    const ValueId c = program.reserve(tensor("c", DType::f32, {4, 4}, Role::activation));
    (void)gemm(program, {.transpose_b = true, .scaled = four_bits, .blocks = true}, f32_math, "c", q[0].values,
               q[1].values, operands, c);
    std::vector<double> a(256), b(256), expected(16);
    for (std::size_t i = 0; i < 256; ++i) a[i] = element(i), b[i] = element(3 * i - 2 * (i % 16));
    for (std::size_t i = 0; i < 16; ++i) {
      for (std::size_t p = 0; p < 64; ++p) expected[i] += a[i / 4 * 64 + p] * b[i % 4 * 64 + p];
    }
    TextbookRun run(program);
    run.set(x[0], a);
    run.set(x[1], b);
    for (const ValueId s : scale) run.set(s, {2.0});
    if (four_bits) run.set(*operands.scale_a, {0.5});
    if (four_bits) run.set(*operands.scale_b, {0.5});
    run.run();

    EXPECT_EQ(run.get(c), expected) << name(format);
  }
}

TEST(BlockScaledGemm, SubsetsOfUnitsAgreeWithAll) {
  for (const BlockScaledTypes& types : {mxfp8, nvfp4}) {
    const BlockScaledProgram p(types, {.m = 9, .n = 13, .k = 96});
    TextbookRun run(p.program);
    run.set(p.a, spread(9 * 96, 1));
    run.set(p.b, spread(13 * 96, 2));
    const auto scales = [&](ValueId id) {
      std::vector<double> stored = spread(p.program.spec(id).shape.elements(), 3);
      for (double& code : stored) code = types.scales == DType::u8 ? 127.0 + 5.0 * code : 7.0 * code;
      run.set(id, stored);
    };
    scales(p.blocks_a);
    scales(p.blocks_b);
    for (const auto& factor : {p.operands.scale_a, p.operands.scale_b}) {
      if (factor) run.set(*factor, {0.75});
    }
    expect_subsets_agree(run, 0, 0);
  }
}

TEST(BlockScaledGemm, CostsTheProductsAndTheBytesOfValuesAndScales) {
  const BlockScaledProgram p(nvfp4, {.m = 2, .n = 3, .k = 64});
  const OpCall& call = p.program.op(0);
  const Cost cost =
      definition(gemm_kind).cost({call, specs_of(p.program, call.inputs), specs_of(p.program, call.outputs)});
  EXPECT_EQ(cost.flop, 2.0 * 2 * 3 * 64);
  EXPECT_EQ(cost.bytes, 5 * 64 / 2 + 5 * 64 / 16 + 2 * 4 + 2 * 3 * 2);
}

TEST(BlockScaledGemm, RefusesBlocksThatAreNotThoseOfItsOperands) {
  Program program;
  const auto add = [&](const char* name, DType type, Shape shape) { return source(program, name, type, shape); };
  const ValueId a = add("a", DType::f8_e4m3, {4, 64}), f4 = add("f4", DType::f4_e2m1, {4, 64});
  const ValueId u8 = add("u8", DType::u8, {4, 2}), e4m3 = add("e4m3", DType::f8_e4m3, {4, 4});
  const auto refusal = [&](ValueId left, ValueId right, const GemmOperands& operands, bool transpose_b = true) {
    return program_error([&] {
      (void)gemm(program, {.transpose_b = transpose_b, .blocks = true}, f32_math, "c", left, right, operands);
    });
  };
  EXPECT_EQ(refusal(a, a, {.blocks_a = u8}),
            "gemm: operand 'blocks_b' is missing but blocks asks for it; expected both or neither");
  EXPECT_EQ(
      refusal(a, a, {.blocks_a = e4m3, .blocks_b = e4m3}),
      "gemm: blocks of tensor a: f8_e4m3[4, 64] with scales e4m3: f8_e4m3[4, 4]; expected f8 or f4 with u8, or f4 "
      "with f8_e4m3");
  EXPECT_EQ(refusal(f4, f4, {.blocks_a = u8, .blocks_b = e4m3}), "gemm: tensor 'e4m3' has type f8_e4m3; expected u8");
  EXPECT_EQ(refusal(a, a, {.blocks_a = add("wide", DType::u8, {4, 4}), .blocks_b = u8}),
            "gemm: tensor 'wide' has shape [4, 4]; expected [4, 2]");
  const ValueId odd = add("odd", DType::f8_e4m3, {4, 48});
  EXPECT_EQ(refusal(odd, odd, {.blocks_a = u8, .blocks_b = u8}),
            "gemm: tensor 'odd' has shape [4, 48]; expected [rows, k], k in blocks of 32");
  const ValueId square = add("square", DType::f8_e4m3, {64, 64}), of_square = add("s", DType::u8, {64, 2});
  EXPECT_EQ(refusal(square, square, {.blocks_a = of_square, .blocks_b = of_square}, false),
            "gemm: blocks along k, but a and b are blocks; expected a [m, k] and b [n, k], transposed");
}

TEST(BlockScaledGemm, HasNoDerivativeAndSaysSo) {
  BlockScaledProgram p(mxfp8, {.m = 4, .n = 4, .k = 32});
  const ValueId dc = source(p.program, "dc", DType::bf16, {4, 4}, Role::gradient);
  EXPECT_EQ(program_error([&] {
              (void)differentiate(p.program, std::vector<Seed>{{p.result.c, dc}}, std::vector<ValueId>{p.a});
            }),
            "gemm: op 'product' (transpose_b, blocks) has no derivative: its gradients sum over other axes than the "
            "blocks; expected no blocks");
}

}  // namespace block_scaled_gemm_test
}  // namespace gpubench::testing
