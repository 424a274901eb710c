// OpProduct: data at the given places yield the promised product.
#include "reference/ops/op_product.h"

#include <gtest/gtest.h>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/conv2d_batch_norm.h"
#include "reference/ops/grouped_gemm.h"
#include "tests/reference/block_scaled_programs.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace op_product_test {

std::optional<OpProduct> product_of(const Program& program, int op) {
  const OpCall& call = program.op(op);
  const std::vector<TensorSpec> inputs = specs_of(program, call.inputs), outputs = specs_of(program, call.outputs);
  return definition(call.kind).product({call, inputs, outputs});
}

// A small whole number that differs from its neighbours'.
double number(std::int64_t i, std::int64_t j, int seed) { return static_cast<double>((5 * i + 3 * j + seed) % 4 - 2); }

void expect_product(const Program& program, int op, std::int64_t m, std::int64_t n, std::int64_t k) {
  const OpCall& call = program.op(op);
  const std::optional<OpProduct> product = product_of(program, op);
  ASSERT_TRUE(product) << call.label;
  ASSERT_EQ(product->m(), m) << call.label;
  ASSERT_EQ(product->n(), n) << call.label;
  ASSERT_EQ(product->k(), k) << call.label;
  ASSERT_EQ(product->a_rows.size(), m);
  ASSERT_EQ(product->b_columns.size(), n);
  ASSERT_EQ(product->b_k.size(), k);
  std::vector<std::vector<double>> inputs;
  for (const ValueId id : call.inputs) inputs.emplace_back(program.spec(id).shape.elements(), 0.0);
  for (const OpProduct::Other& other : product->others) {
    std::fill(inputs[other.input].begin(), inputs[other.input].end(), other.rest);
    inputs[other.input].at(0) = other.first;
  }
  for (const auto* scales : {&product->a_scales, &product->b_scales}) {
    if (!*scales) continue;
    const bool exponent = program.spec(call.inputs[(*scales)->input]).dtype == DType::u8;
    for (double& scale : inputs[(*scales)->input]) scale = exponent ? 127.0 : 1.0;
  }
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t l = 0; l < k; ++l) inputs[product->a].at(product->a_rows[i] + product->a_k[l]) = number(i, l, 1);
  }
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t l = 0; l < k; ++l)
      inputs[product->b].at(product->b_k[l] + product->b_columns[j]) = number(l, j, 2);
  }
  TextbookRun run(program);
  for (std::size_t i = 0; i < inputs.size(); ++i) run.set(call.inputs[i], inputs[i]);
  const std::vector<Expected> got = run.judge(op, product->output);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (std::int64_t l = 0; l < k; ++l) sum += number(i, l, 1) * number(l, j, 2);
      ASSERT_EQ(got.at(product->rows[i] + product->columns[j]).value, product->factor * sum)
          << call.label << " " << i << " " << j;
    }
  }
}

TEST(OpProduct, OfAGemmIsItselfWhateverItsAttributes) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      Program program;
      const ValueId a = source(program, "a", DType::f64, transpose_a ? Shape{2, 7, 5} : Shape{2, 5, 7});
      const ValueId b = source(program, "b", DType::f64, transpose_b ? Shape{2, 6, 7} : Shape{2, 7, 6});
      Gemm gemm_of{.transpose_a = transpose_a, .transpose_b = transpose_b, .alpha = 0.25, .beta = 0.5, .bias = true};
      const GemmOperands operands{.c_in = source(program, "c", DType::f64, {2, 5, 6}),
                                  .bias = source(program, "bias", DType::f64, {6})};
      gemm(program, gemm_of, f64_math, "batched", a, b, operands);
      gemm_of = {.transpose_a = transpose_a, .transpose_b = transpose_b, .bias = true};
      gemm_of.epilogue = Gemm::Epilogue::gelu;
      gemm(program, gemm_of, f64_math, "gelu", a, b, {.bias = operands.bias});
      expect_product(program, 0, 5, 6, 7);
      EXPECT_EQ(product_of(program, 0)->output, 0);
      expect_product(program, 1, 5, 6, 7);
      EXPECT_EQ(product_of(program, 1)->output, 1) << "the pre-activation";
    }
  }
}

TEST(OpProduct, IsNotOfferedBehindANonlinearEpilogueOrAFactorOfZero) {
  Program program;
  const ValueId a = source(program, "a", DType::f64, {4, 4}), b = source(program, "b", DType::f64, {4, 4});
  Gemm attributes;
  attributes.epilogue = Gemm::Epilogue::gelu_gradient;
  gemm(program, attributes, f64_math, "gelu gradient", a, b, {.pre = source(program, "pre", DType::f64, {4, 4})});
  gemm(program, {.alpha = 0.0}, f64_math, "nothing", a, b);
  EXPECT_FALSE(product_of(program, 0));
  EXPECT_FALSE(product_of(program, 1));
}

TEST(OpProduct, OfScaledOperandsHasNeutralScales) {
  Program program;
  const ValueId a = source(program, "a", DType::f8_e4m3, {4, 32}), b = source(program, "b", DType::f8_e5m2, {32, 4});
  Gemm attributes{.scaled = true};
  gemm(
      program, attributes, f32_math, "scaled", a, b,
      {.scale_a = source(program, "scale_a", DType::f32, {1}), .scale_b = source(program, "scale_b", DType::f32, {1})});
  expect_product(program, 0, 4, 4, 32);
  for (const BlockScaledTypes& types : {mxfp8, mxfp4, nvfp4}) {
    const BlockScaledProgram blocks(types, {.m = 3, .n = 5, .k = 64});
    expect_product(blocks.program, 0, 3, 5, 64);
    EXPECT_EQ(product_of(blocks.program, 0)->a_scales->block, types.scales == DType::u8 ? 32 : 16);
  }
}

TEST(OpProduct, OfConvolutionsGoesThroughTheMiddleTap) {
  struct Row {
    Conv2d conv;
    Shape data, weights;
    std::int64_t positions;  // whose middle tap is inside the image, by hand
    std::int64_t apart;      // of these, such that no filter joins two of them
  };
  const std::vector<Row> rows{
      {{.pad_h = 1, .pad_w = 1}, {2, 4, 5, 3}, {6, 3, 3, 3}, 2 * 4 * 5, 2 * 2 * 2},  // rows 0 and 3, columns 0 and 3
      {{}, {2, 4, 5, 3}, {6, 1, 1, 3}, 2 * 4 * 5, 2 * 4 * 5},
      {{.stride_h = 2, .stride_w = 2, .pad_h = 3, .pad_w = 3},
       {1, 8, 8, 3},
       {4, 7, 7, 3},
       4 * 4,
       1},  // 0 to 3; 6 / 2 + 1 apart
      // h = 2p - 1 for p = 0..4 of an even filter's tap 0: inside for 1 to 4; w = 3q - 2 + 0 for q = 0..4: 1 to 4
      {{.stride_h = 2, .stride_w = 3, .pad_h = 1, .pad_w = 2, .dilation_h = 2, .groups = 2},
       {2, 8, 11, 4},
       {6, 2, 2, 2},
       2 * 3 * 4,
       2 * 2 * 4},  // 2 / 2 + 1 and 1 / 3 + 1 apart
  };
  for (const Row& row : rows) {
    Program program;
    const Conv2dExtents e = extents_of(row.conv, row.data, row.weights);
    const ValueId x = source(program, "x", DType::f64, row.data), w = source(program, "w", DType::f64, row.weights);
    const ValueId dy = source(program, "dy", DType::f64, {e.n, e.p, e.q, e.k});
    conv2d_forward(program, row.conv, f64_math, "forward", x, w);
    conv2d_backward_data(program, row.conv, f64_math, "backward_data", dy, w, e.h, e.w);
    conv2d_backward_filter(program, row.conv, f64_math, "backward_filter", x, dy, e.r, e.s);
    const std::int64_t channels = e.c / row.conv.groups, filters = e.k / row.conv.groups;
    expect_product(program, 0, row.apart, filters, channels);
    expect_product(program, 1, row.apart, channels, filters);
    expect_product(program, 2, filters, channels, row.positions);
  }
}

TEST(OpProduct, OfGroupedRowsAndOfFusedOpsIsFoundAsWell) {
  Program program;
  const ValueId a = source(program, "a", DType::f64, {6, 5}), b = source(program, "b", DType::f64, {3, 5, 4});
  const ValueId bt = source(program, "bt", DType::f64, {3, 4, 5}), c = source(program, "c", DType::f64, {6, 4});
  const ValueId sizes = source(program, "sizes", DType::i32, {3});
  grouped_gemm(program, {}, f64_math, "grouped", a, b, sizes);
  grouped_gemm(program, {.transpose_b = true}, f64_math, "turned", a, bt, sizes);
  grouped_gemm_backward_weight(program, f64_math, "weight", a, c, sizes);
  GemmWeightBiasGradient gradient;
  gradient.gemm.transpose_a = true;
  gemm_weight_bias_gradient(program, gradient, f64_math, "dw", c, a);
  expect_product(program, 0, 6, 4, 5);
  expect_product(program, 1, 6, 4, 5);
  expect_product(program, 2, 5, 4, 6);
  expect_product(program, 3, 4, 5, 6);
}

TEST(OpProduct, OfAConvolutionWithItsNormIsTheConvolutions) {
  Program program;
  const auto channels = [&](const char* name) { return source(program, name, DType::f64, {6}, Role::parameter); };
  const ValueId x = source(program, "x", DType::f64, {2, 4, 4, 3}), w = source(program, "w", DType::f64, {6, 3, 3, 3});
  Conv2dBatchNorm attributes;
  attributes.conv.pad_h = attributes.conv.pad_w = 1;
  conv2d_batch_norm_forward(program, attributes, f64_math, "fused", x, w,
                            {channels("gamma"), channels("beta"), channels("mean"), channels("var")});
  expect_product(program, 0, 2 * 2 * 2, 6, 3);
}

}  // namespace op_product_test
}  // namespace gpubench::testing
