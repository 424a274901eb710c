#include "reference/ops/gemm.h"

#include <gtest/gtest.h>

#include <numbers>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace gemm_test {

// [1 2; 3 4] [5 6; 7 8] = [19 22; 43 50]
const std::vector<double> a22{1, 2, 3, 4};
const std::vector<double> b22{5, 6, 7, 8};

std::vector<double> transposed22(const std::vector<double>& x) { return {x[0], x[2], x[1], x[3]}; }

struct SmallGemm {
  Program program;
  ValueId a, b;
  explicit SmallGemm(DType dtype = DType::f64)
      : a(source(program, "a", dtype, {2, 2})), b(source(program, "b", dtype, {2, 2})) {}
};

TEST(Gemm, RolesFollowTheOrderOfInputsThenOutputs) {
  const GemmRoles plain = roles_of(Gemm{});
  EXPECT_EQ(plain.c, 2);
  EXPECT_EQ(plain.bias, -1);
  Gemm all;
  all.beta = 1.0;
  all.bias = true;
  all.scaled = true;
  all.epilogue = Gemm::Epilogue::gelu;
  const GemmRoles roles = roles_of(all);  // a, b, c_in, bias, scale_a, scale_b -> c, pre
  EXPECT_EQ(roles.c_in, 2);
  EXPECT_EQ(roles.bias, 3);
  EXPECT_EQ(roles.scale_a, 4);
  EXPECT_EQ(roles.scale_b, 5);
  EXPECT_EQ(roles.c, 6);
  EXPECT_EQ(roles.pre, 7);
  all.epilogue = Gemm::Epilogue::gelu_gradient;  // pre is read: before the scales
  EXPECT_EQ(roles_of(all).pre, 4);
  EXPECT_EQ(roles_of(all).scale_b, 6);
}

TEST(Gemm, EveryTransposeGivesTheSameProduct) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      SmallGemm small;
      Gemm attributes;
      attributes.transpose_a = transpose_a;
      attributes.transpose_b = transpose_b;
      const GemmResult result = gemm(small.program, attributes, f64_math, "product", small.a, small.b);

      TextbookRun run(small.program);
      run.set(small.a, transpose_a ? transposed22(a22) : a22);
      run.set(small.b, transpose_b ? transposed22(b22) : b22);
      run.run();

      EXPECT_EQ(run.get(result.c), (std::vector<double>{19, 22, 43, 50})) << transpose_a << transpose_b;
      EXPECT_EQ(small.program.spec(result.c).name, "product");
    }
  }
}

TEST(Gemm, ScalesAddsTheOldValueAndTheBias) {
  SmallGemm small;
  const ValueId old = source(small.program, "old", DType::f64, {2, 2});
  const ValueId bias = source(small.program, "bias", DType::f64, {2});
  Gemm attributes;
  attributes.alpha = 0.5;
  attributes.beta = 2.0;
  attributes.bias = true;
  const GemmResult result = gemm(small.program, attributes, f64_math, "product", small.a, small.b, {old, bias, {}});

  TextbookRun run(small.program);
  run.set(small.a, a22);
  run.set(small.b, b22);
  run.set(old, {1, 1, 1, 1});
  run.set(bias, {10, 20});
  run.run();

  // 19/2 + 2 + 10, 22/2 + 2 + 20, 43/2 + 2 + 10, 50/2 + 2 + 20
  EXPECT_EQ(run.get(result.c), (std::vector<double>{21.5, 33, 33.5, 47}));
  EXPECT_EQ(small.program.value(result.c).updates, old);
}

TEST(Gemm, BatchesAreIndependent) {
  Program program;
  const ValueId a = source(program, "a", DType::f64, {2, 2, 2});
  const ValueId b = source(program, "b", DType::f64, {2, 2, 2});
  Gemm attributes;
  attributes.transpose_b = true;
  const GemmResult result = gemm(program, attributes, f64_math, "product", a, b);

  TextbookRun run(program);
  run.set(a, {1, 2, 3, 4, 2, 0, 0, 3});
  run.set(b, {5, 7, 6, 8, 1, 3, 2, 4});  // transposes of [5 6; 7 8] and [1 2; 3 4]
  run.run();

  EXPECT_EQ(run.get(result.c), (std::vector<double>{19, 22, 43, 50, 2, 4, 9, 12}));
}

TEST(Gemm, RuleGBoundsTheSum) {
  SmallGemm small(DType::f32);
  (void)gemm(small.program, {}, f32_math, "product", small.a, small.b);
  TextbookRun run(small.program);
  run.set(small.a, a22);
  run.set(small.b, b22);

  // 19 = 5 + 14: Q = sqrt(25 + 196), K = 2, u = 2^-24
  const double expected = 2.0 * 0x1p-24 * std::sqrt(2.0) * (19.0 + std::sqrt(221.0));
  EXPECT_NEAR(run.judge(0, 0)[0].bound, expected, 1e-12 * expected);
}

TEST(Gemm, AnEpilogueAddsOneRoundingPerOperation) {
  SmallGemm small(DType::f32);
  const ValueId bias = source(small.program, "bias", DType::f32, {2});
  Gemm attributes;
  attributes.alpha = -0.5;
  attributes.bias = true;
  (void)gemm(small.program, attributes, f32_math, "product", small.a, small.b, {{}, bias, {}});
  TextbookRun run(small.program);
  run.set(small.a, a22);
  run.set(small.b, b22);
  run.set(bias, {10, 20});

  // |alpha| Rule G + 3 u (|alpha C| + |bias|); -1/2 is exact in f32
  const double expected = 0x1p-24 * (0.5 * 2.0 * std::sqrt(2.0) * (19.0 + std::sqrt(221.0)) + 3.0 * (9.5 + 10.0));
  EXPECT_NEAR(run.judge(0, 0)[0].bound, expected, 1e-12 * expected);
  EXPECT_EQ(run.judge(0, 0)[0].value, 0.5);
}

TEST(Gemm, GeluIsAppliedToTheUnroundedPreActivation) {
  SmallGemm small(DType::bf16);
  const ValueId bias = source(small.program, "bias", DType::bf16, {2});
  Gemm attributes;
  attributes.bias = true;
  attributes.epilogue = Gemm::Epilogue::gelu;
  attributes.gelu_form = GeluForm::erf;
  const GemmResult result = gemm(small.program, attributes, f32_math, "up", small.a, small.b, {{}, bias, {}});
  ASSERT_TRUE(result.pre.has_value());
  TextbookRun run(small.program);
  run.set(small.a, {1, 0, 0.0078125, 1});
  run.set(small.b, {1, 0, 1, 0});
  run.set(bias, {0, 1});

  const std::vector<Expected> pre = run.judge(0, 1);
  const std::vector<Expected> c = run.judge(0, 0);

  // z = [1 1; 1 + 2^-7 1]; gelu(1) = Phi(1) = 0.84134474606854293
  EXPECT_EQ(values_of(pre), (std::vector<double>{1, 1, 1.0078125, 1}));
  EXPECT_NEAR(c[0].value, 0.84134474606854293, 1e-15);
  EXPECT_NEAR(c[2].value, 1.0078125 * 0.5 * std::erfc(-1.0078125 / std::numbers::sqrt2), 1e-15);
  const double u = 0x1p-24;  // 1.13 T(z) + u (6 |y| + 3 |z|)
  EXPECT_NEAR(c[0].bound, 1.13 * pre[0].bound + u * (6.0 * c[0].value + 3.0), 1e-20);
  EXPECT_EQ(small.program.spec(*result.pre).name, "up.pre");
}

TEST(Gemm, GeluGradientMultipliesByTheSlopeAtThePreActivationInMemory) {
  SmallGemm small;
  const ValueId pre = source(small.program, "pre", DType::f64, {2, 2});
  Gemm attributes;
  attributes.epilogue = Gemm::Epilogue::gelu_gradient;
  attributes.gelu_form = GeluForm::erf;
  const GemmResult result = gemm(small.program, attributes, f64_math, "product", small.a, small.b, {{}, {}, pre});
  TextbookRun run(small.program);
  run.set(small.a, a22);
  run.set(small.b, b22);
  run.set(pre, {0, 1, -1, 40});
  run.run();

  // gelu'(0) = 1/2, gelu'(1) = Phi(1) + phi(1), gelu'(-1) = 1 - Phi(1) - phi(1), gelu'(40) = 1
  const double slope = 0.84134474606854293 + 0.24197072451914337;
  expect_near(run.get(result.c), {9.5, 22 * slope, 43 * (1 - slope), 50}, 1e-13);
}

TEST(Gemm, SubsetsOfUnitsAgreeWithAll) {
  for (const bool transposed : {false, true}) {
    Program program;
    const ValueId a = source(program, "a", DType::bf16, {2, 70, 37});
    const ValueId b = source(program, "b", DType::bf16, transposed ? Shape{2, 131, 37} : Shape{2, 37, 131});
    Gemm attributes;
    attributes.transpose_b = transposed;
    attributes.epilogue = Gemm::Epilogue::gelu;
    (void)gemm(program, attributes, f32_math, "product", a, b);
    TextbookRun run(program);
    run.set(a, spread(2 * 70 * 37, 1));
    run.set(b, spread(2 * 131 * 37, 2));

    expect_subsets_agree(run, 0, 0);
    expect_subsets_agree(run, 0, 1);
  }
}

TEST(Gemm, LandmarksHoldCornersTileEdgesAndTheLastBatch) {
  Program program;
  const ValueId a = source(program, "a", DType::f32, {3, 200, 8});
  const ValueId b = source(program, "b", DType::f32, {3, 8, 100});
  (void)gemm(program, {}, f32_math, "product", a, b);

  const CheckUnits units = TextbookRun(program).units(0, 0);

  EXPECT_EQ(units.count, 3 * 200 * 100);
  EXPECT_EQ(units.flop_per_unit, 80.0);  // 8 products of 4 operations, 8 elements of b read across its rows at 6 each
  const auto unit = [](std::int64_t batch, std::int64_t row, std::int64_t column) {
    return (batch * 200 + row) * 100 + column;
  };
  for (const std::int64_t expected : {unit(0, 0, 0), unit(0, 0, 99), unit(0, 199, 0), unit(2, 199, 99), unit(0, 63, 63),
                                      unit(0, 64, 64), unit(2, 127, 0), unit(2, 128, 0), unit(0, 0, 64)})
    EXPECT_TRUE(std::binary_search(units.landmarks.begin(), units.landmarks.end(), expected)) << expected;
}

TEST(Gemm, TheBoundAcceptsSerialF32AndRejectsADroppedProduct) {
  constexpr std::int64_t m = 40, n = 30, k = 512;
  Program program;
  const ValueId a = source(program, "a", DType::f32, {m, k});
  const ValueId b = source(program, "b", DType::f32, {n, k});
  Gemm attributes;
  attributes.transpose_b = true;
  (void)gemm(program, attributes, f32_math, "product", a, b);
  TextbookRun run(program);
  run.set(a, spread(m * k, 3));
  run.set(b, spread(n * k, 4));
  const std::vector<Expected> judged = run.judge(0, 0);
  const std::vector<double> left = run.get(a);
  const std::vector<double> right = run.get(b);

  int accepted = 0;
  int accepted_without_last = 0;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    float sum = 0.0F;
    float without_last = 0.0F;
    for (std::size_t p = 0; p < k; ++p) {
      without_last = sum;
      sum += static_cast<float>(left[i / n * k + p]) * static_cast<float>(right[i % n * k + p]);
    }
    accepted += within(judged[i], DType::f32, sum) ? 1 : 0;
    accepted_without_last += within(judged[i], DType::f32, without_last) ? 1 : 0;
  }

  EXPECT_EQ(accepted, m * n);
  EXPECT_LT(accepted_without_last, m * n / 50);
}

TEST(Gemm, DerivativesAgreeWithDifferencesForEveryTranspose) {
  for (int bits = 0; bits < 8; ++bits) {
    Gemm attributes;
    attributes.transpose_a = (bits & 1) != 0;
    attributes.transpose_b = (bits & 2) != 0;
    attributes.alpha = 1.5;
    attributes.bias = true;
    const bool batched = (bits & 4) != 0;
    const auto shape = [batched](std::int64_t rows, std::int64_t columns, bool transposed) {
      if (transposed) std::swap(rows, columns);
      return batched ? Shape{2, rows, columns} : Shape{rows, columns};
    };
    Program program;
    const ValueId a = source(program, "a", DType::f64, shape(2, 4, attributes.transpose_a));
    const ValueId b = source(program, "b", DType::f64, shape(4, 3, attributes.transpose_b));
    const ValueId bias = source(program, "bias", DType::f64, {3});
    const GemmResult result = gemm(program, attributes, f64_math, "product", a, b, {{}, bias, {}});

    SCOPED_TRACE(describe(attributes) + (batched ? ", batched" : ""));
    const std::map<ValueId, std::vector<double>> values{
        {a, spread(batched ? 16 : 8, 5)}, {b, spread(batched ? 24 : 12, 6)}, {bias, spread(3, 7)}};
    expect_derivative_agrees(program, result.c, values, {a, b, bias});
  }
}

TEST(Gemm, TheGeluEpilogueIsDifferentiatedThroughItsPreActivation) {
  for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
    Program program;
    const ValueId a = source(program, "a", DType::f64, {2, 4});
    const ValueId b = source(program, "b", DType::f64, {4, 3});
    const ValueId bias = source(program, "bias", DType::f64, {3});
    Gemm attributes;
    attributes.bias = true;
    attributes.epilogue = Gemm::Epilogue::gelu;
    attributes.gelu_form = form;
    const GemmResult result = gemm(program, attributes, f64_math, "up", a, b, {{}, bias, {}});

    expect_derivative_agrees(program, result.c, {{a, spread(8, 8)}, {b, spread(12, 9)}, {bias, spread(3, 10)}},
                             {a, b, bias});
  }
}

TEST(Gemm, ASquareContributesTwoGradientsToOneInput) {
  Program program;
  const ValueId a = source(program, "a", DType::f64, {3, 3});
  const GemmResult result = gemm(program, {}, f64_math, "square", a, a);

  expect_derivative_agrees(program, result.c, {{a, spread(9, 11)}}, {a});
}

TEST(Gemm, OnlyWantedGradientsAreComputed) {
  SmallGemm small;
  const GemmResult result = gemm(small.program, {}, f64_math, "product", small.a, small.b);
  SingleOpTape tape(small.program);
  tape.given[result.c] = source(small.program, "dy", DType::f64, {2, 2});
  tape.wanted_inputs = {small.b};
  const OpCall forward = small.program.op(0);

  definition(gemm_kind).derivative(small.program, forward, tape);

  EXPECT_EQ(small.program.ops().size(), 2U);
  EXPECT_EQ(tape.contributions.count(small.a), 0U);
  EXPECT_EQ(tape.contributions.count(small.b), 1U);
}

TEST(Gemm, AccumulatingIntoAnOldValueHasNoDerivative) {
  SmallGemm small;
  const ValueId old = source(small.program, "old", DType::f64, {2, 2});
  Gemm attributes;
  attributes.beta = 1.0;
  (void)gemm(small.program, attributes, f64_math, "product", small.a, small.b, {old, {}, {}});
  SingleOpTape tape(small.program);
  const OpCall forward = small.program.op(0);

  EXPECT_EQ(program_error([&] { definition(gemm_kind).derivative(small.program, forward, tape); }),
            "gemm: op 'product' (beta=1) has no derivative; expected beta = 0 and no gradient epilogue");
}

TEST(Gemm, CostIsTwoFlopPerMultiplyAddAndEveryTensorOnce) {
  Program program;
  const ValueId a = source(program, "a", DType::bf16, {2, 4});
  const ValueId b = source(program, "b", DType::bf16, {4, 3});
  const ValueId old = source(program, "old", DType::bf16, {2, 3});
  (void)gemm(program, {}, f32_math, "plain", a, b);
  Gemm accumulating;
  accumulating.beta = 1.0;
  (void)gemm(program, accumulating, f32_math, "accumulating", a, b, {old, {}, {}});

  // 2 * 2 * 3 * 4 FLOP; 2 bytes * (8 + 12 + 6), and 6 more elements to read if beta is not 0
  EXPECT_EQ(cost_of(program, program.op(0)).flop, 48.0);
  EXPECT_EQ(cost_of(program, program.op(0)).bytes, 52.0);
  EXPECT_EQ(cost_of(program, program.op(1)).bytes, 64.0);
  EXPECT_EQ(cost_of(program).flop, 96.0);
}

TEST(Gemm, WritesWeightGradientsOfAnotherType) {
  Program program;
  const ValueId a = source(program, "a", DType::bf16, {4, 2});
  const ValueId b = source(program, "b", DType::bf16, {4, 3});
  const ValueId into = program.reserve(tensor("dw", DType::f32, {2, 3}, Role::gradient));
  Gemm attributes;
  attributes.transpose_a = true;

  EXPECT_EQ(gemm(program, attributes, f32_math, "dw.gemm", a, b, {}, into).c, into);
}

TEST(Gemm, AMismatchNamesTheTensorItsShapeAndWhatWasExpected) {
  Program program;
  const ValueId a = source(program, "a", DType::f32, {8192, 1024});
  const ValueId b = source(program, "b", DType::f32, {768, 3072});
  const ValueId vector = source(program, "vector", DType::f32, {1024});
  const ValueId narrow = source(program, "narrow", DType::bf16, {1024, 8});
  const ValueId fits = source(program, "fits", DType::f32, {1024, 8});
  Gemm transposed;
  transposed.transpose_b = true;
  Gemm with_bias;
  with_bias.bias = true;
  const auto message = [&](const Gemm& attributes, ValueId second, const GemmOperands& operands = {}) {
    return program_error([&] { (void)gemm(program, attributes, f32_math, "product", a, second, operands); });
  };

  EXPECT_EQ(message({}, b), "gemm: tensor 'b' has shape [768, 3072] but k = 1024; expected [1024, n]");
  EXPECT_EQ(message(transposed, b), "gemm: tensor 'b' has shape [768, 3072] but k = 1024; expected [n, 1024]");
  EXPECT_EQ(message({}, vector), "gemm: tensor 'b' has shape [1024] but a has shape [8192, 1024]; expected [1024, n]");
  EXPECT_EQ(message({}, narrow), "gemm: tensor 'narrow' has type bf16; expected f32");
  EXPECT_EQ(message(with_bias, fits), "gemm: operand 'bias' is missing but bias asks for it; expected both or neither");
  EXPECT_EQ(message(with_bias, fits, {{}, vector, {}}), "gemm: tensor 'vector' has shape [1024]; expected [8]");
  EXPECT_EQ(program.ops().size(), 0U);
}

TEST(Gemm, DescribesWhatDiffersFromTheDefaults) {
  Gemm attributes;
  EXPECT_EQ(describe(attributes), "");
  attributes.transpose_b = true;
  attributes.alpha = 0.125;
  attributes.bias = true;
  attributes.epilogue = Gemm::Epilogue::gelu;
  EXPECT_EQ(describe(attributes), "transpose_b, alpha=0.125, bias, epilogue=gelu");
}

}  // namespace gemm_test
}  // namespace gpubench::testing
