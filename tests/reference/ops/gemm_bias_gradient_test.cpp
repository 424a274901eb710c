#include "reference/ops/bias_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace gemm_bias_gradient_test {

using Operand = GemmWeightBiasGradient::Operand;

constexpr Gemm gelu_gradient{.epilogue = Gemm::Epilogue::gelu_gradient};
constexpr Gemm erf_gradient{.epilogue = Gemm::Epilogue::gelu_gradient, .gelu_form = GeluForm::erf};

struct GeluCase {
  Program program;
  ValueId a, b, pre;
  GemmBiasGradientResult out;
  GeluCase(DType type, const Math& math, std::int64_t m, std::int64_t n, std::int64_t k,
           const Gemm& attributes = gelu_gradient, std::optional<DType> sum_type = {})
      : a(source(program, "a", type, {m, k})),
        b(source(program, "b", type, {k, n})),
        pre(source(program, "pre", type, {m, n})) {
    std::optional<ValueId> db;
    if (sum_type) db = program.reserve(tensor("db", *sum_type, {n}, Role::gradient));
    out = gemm_gelu_bias_gradient(program, attributes, math, "op", a, b, pre, db);
  }
};

// [1 2; 3 4] [5 6; 7 8] = [19 22; 43 50]; gelu' is 1/2 at 0, s at 1, 1 - s at -1, 1 at 40.
TEST(GemmGeluBiasGradient, HasItsHandWorkedValues) {
  GeluCase c(DType::f64, f64_math, 2, 2, 2, erf_gradient);
  TextbookRun run(c.program);
  run.set(c.a, {1, 2, 3, 4});
  run.set(c.b, {5, 6, 7, 8});
  run.set(c.pre, {0, 1, -1, 40});
  run.run();

  const double s = 0.84134474606854293 + 0.24197072451914337;
  expect_near(run.get(c.out.c), {9.5, 22 * s, 43 * (1 - s), 50}, 1e-13);
  expect_near(run.get(c.out.db), {9.5 + 43 * (1 - s), 22 * s + 50}, 1e-13);
}

TEST(GemmGeluBiasGradient, ItsProductIsJudgedAsThatOfGemm) {
  GeluCase c(DType::bf16, f32_math, 7, 9, 12);
  Program program;
  const ValueId a = source(program, "a", DType::bf16, {7, 12});
  const ValueId b = source(program, "b", DType::bf16, {12, 9});
  const ValueId pre = source(program, "pre", DType::bf16, {7, 9});
  (void)gemm(program, gelu_gradient, f32_math, "op", a, b, {.pre = pre});
  TextbookRun one(c.program);
  TextbookRun two(program);
  one.set(c.a, spread(84, 1));
  two.set(a, spread(84, 1));
  one.set(c.b, spread(108, 2));
  two.set(b, spread(108, 2));
  one.set(c.pre, spread(63, 3));
  two.set(pre, spread(63, 3));

  const std::vector<Expected> got = one.judge(0, 0);
  const std::vector<Expected> want = two.judge(0, 0);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].value, want[i].value) << i;
    EXPECT_EQ(got[i].bound, want[i].bound) << i;
  }
  expect_subsets_agree(one, 0, 0);
  expect_subsets_agree(one, 0, 1);
}

double gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

// The forward with this bias gradient at a bias of 0:
// F(bias) = sum over i, k of dy[i, k] sum over j of gelu(z[i, j] + bias[j]) w[k, j].
TEST(GemmGeluBiasGradient, ItsSumAgreesWithDifferencesOverTheBias) {
  constexpr std::size_t m = 5, n = 4, k = 3;
  GeluCase c(DType::f64, f64_math, m, n, k);
  TextbookRun run(c.program);
  const std::vector<double> dy = spread(m * k, 1), w = spread(k * n, 2), z = spread(m * n, 3);
  run.set(c.a, dy);
  run.set(c.b, w);
  run.set(c.pre, z);
  run.run();
  const auto objective = [&](std::size_t moved, double step) {
    double sum = 0.0;
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t p = 0; p < k; ++p)
          sum += dy[i * k + p] * gelu(z[i * n + j] + (j == moved ? step : 0.0)) * w[p * n + j];
      }
    }
    return sum;
  };

  const std::vector<double> db = run.get(c.out.db);
  for (std::size_t j = 0; j < n; ++j) EXPECT_NEAR(db[j], (objective(j, 1e-5) - objective(j, -1e-5)) / 2e-5, 1e-9) << j;
}

TEST(GemmGeluBiasGradient, TheSumIsJudgedOnWhatWasStored) {
  GeluCase c(DType::bf16, f32_math, 4, 2, 1, gelu_gradient, DType::f32);
  TextbookRun run(c.program);
  run.set(c.out.c, {1, 2, 3, 4, -5, 6, 7, 8});

  const std::vector<Expected> judged = run.judge_stored(0, 1);

  // 1 + 3 - 5 + 7 = 6 and 2 + 4 + 6 + 8 = 20, for any inputs
  EXPECT_EQ(values_of(judged), (std::vector<double>{6, 20}));
  // Rule G over 4 rows, and 6 / sqrt(3) times 2^-8 of the root of the summed squares: 84 and 120.
  const double u = 0x1p-24;
  const double root = std::sqrt(84.0);
  EXPECT_NEAR(judged[0].bound, 4 * u * (6 + root) + std::min(16.0, 6 / std::sqrt(3.0) * root) * 0x1p-8, 1e-15);
  EXPECT_NEAR(judged[1].bound, 4 * u * (20 + std::sqrt(120.0)) + std::min(20.0, 6 * std::sqrt(40.0)) * 0x1p-8, 1e-15);
}

TEST(GemmGeluBiasGradient, WhereStoringRoundsNothingTheSumHasTheBoundOfAColumnSum) {
  GeluCase c(DType::f32, f32_math, 4, 1, 1);
  TextbookRun run(c.program);
  run.set(c.out.c, {1, 3, -5, 7});

  const std::vector<Expected> judged = run.judge_stored(0, 1);

  EXPECT_NEAR(judged[0].bound, 4 * 0x1p-24 * (6 + std::sqrt(84.0)), 1e-18);
}

/// dz of 16-bit factors in f32, before rounding; and without gelu's slope.
struct FloatProducts {
  std::vector<float> dz, without_slope;
};

FloatProducts float_products(GeluCase& c, TextbookRun& run, std::size_t m, std::size_t n, std::size_t k) {
  const std::vector<double> a = run.get(c.a), b = run.get(c.b), pre = run.get(c.pre);
  FloatProducts products;
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      float sum = 0.0F;
      for (std::size_t p = 0; p < k; ++p) sum += static_cast<float>(a[i * k + p]) * static_cast<float>(b[p * n + j]);
      const auto x = static_cast<float>(pre[i * n + j]);
      const float t = std::tanh(0.7978845608F * (x + 0.044715F * x * x * x));
      const float slope = 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * 0.7978845608F * (1.0F + 0.134145F * x * x);
      products.without_slope.push_back(sum);
      products.dz.push_back(sum * slope);
    }
  }
  return products;
}

float column_of(const std::vector<float>& values, std::size_t n, std::size_t column, std::size_t rows) {
  float sum = 0.0F;
  for (std::size_t i = 0; i < rows; ++i) sum += values[i * n + column];
  return sum;
}

// 2048 tokens, with dz of root mean square s. The bound of a sum is about 6 / sqrt(3) 2^-8 sqrt(2048) s = 0.6 s in
// bf16, an eighth of that in f16. A larger missing element is rejected, so some columns are; 128 missing ones,
// sqrt(128) s, in almost all.
TEST(GemmGeluBiasGradient, TheBoundAllowsSumsBeforeAndAfterRoundingAndRejectsFaults) {
  constexpr std::size_t m = 2048, n = 48, k = 16;
  for (const DType type : {DType::bf16, DType::f16}) {
    GeluCase c(type, f32_math, m, n, k, gelu_gradient, DType::f32);
    TextbookRun run(c.program);
    run.set(c.a, spread(m * k, 1));
    run.set(c.b, spread(k * n, 2));
    run.set(c.pre, spread(m * n, 3));
    const FloatProducts made = float_products(c, run, m, n, k);
    run.set(c.out.c, {made.dz.begin(), made.dz.end()});
    const std::vector<double> stored = run.get(c.out.c);
    const std::vector<float> rounded(stored.begin(), stored.end());
    const std::vector<Expected> judged = run.judge_stored(0, 1);

    int incomplete = 0, tile_missing = 0, swapped = 0, without_slope = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const auto accepts = [&](float sum) { return within(judged[j], DType::f32, sum) ? 1 : 0; };
      EXPECT_TRUE(accepts(column_of(rounded, n, j, m))) << name(type) << " after rounding, " << j;
      EXPECT_TRUE(accepts(column_of(made.dz, n, j, m))) << name(type) << " before rounding, " << j;
      EXPECT_FALSE(accepts(0.0F)) << name(type) << " nothing summed, " << j;
      incomplete += accepts(column_of(rounded, n, j, m - 1));
      tile_missing += accepts(column_of(rounded, n, j, m - 128));
      swapped += accepts(column_of(rounded, n, (j + 1) % n, m));
      without_slope += accepts(column_of(made.without_slope, n, j, m));
    }
    EXPECT_LT(incomplete, type == DType::bf16 ? 36 : 16) << name(type);
    for (const int accepted : {tile_missing, swapped, without_slope}) EXPECT_LT(accepted, 5) << name(type);
  }
}

TEST(GemmGeluBiasGradient, DoesTheWorkOfThreeOpsAndMovesEachOfItsTensorsOnce) {
  GeluCase c(DType::bf16, f32_math, 4, 3, 5);

  // 2 * 4 * 3 * 5 of gemm, 19 * 12 of gelu_backward (tanh), 12 of column_sum; bytes of a, b, pre, dz and db.
  EXPECT_EQ(cost_of(c.program).flop, 120.0 + 228.0 + 12.0);
  EXPECT_EQ(cost_of(c.program).bytes, 2.0 * (20 + 15 + 12 + 12 + 3));
}

TEST(GemmGeluBiasGradient, RefusesWhatItIsNot) {
  Program p;
  const ValueId a = source(p, "a", DType::f32, {4, 5});
  const ValueId b = source(p, "b", DType::f32, {5, 3});
  const ValueId pre = source(p, "pre", DType::f32, {4, 3});
  const auto message = [&](const Gemm& attributes, ValueId right, ValueId given) {
    return program_error([&] { (void)gemm_gelu_bias_gradient(p, attributes, f32_math, "op", a, right, given); });
  };

  EXPECT_EQ(message({}, b, pre),
            "gemm_gelu_bias_gradient: attributes (); expected epilogue gelu_gradient, transposes and alpha only");
  EXPECT_EQ(message(gelu_gradient, b, a), "gemm_gelu_bias_gradient: tensor 'a' has shape [4, 5]; expected [4, 3]");
  EXPECT_EQ(message(gelu_gradient, source(p, "narrow", DType::bf16, {5, 3}), pre),
            "gemm_gelu_bias_gradient: tensor 'narrow' has type bf16; expected f32");
  EXPECT_EQ(p.ops().size(), 0U);
}

// dy [3, 2] and x [3, 1]: dw[o] = sum of dy[., o] x, db[o] = sum of dy[., o]; as [out, in] and as [in, out].
TEST(GemmWeightBiasGradient, HasItsHandWorkedValuesForBothLayoutsOfTheWeight) {
  for (const Operand gradient : {Operand::a, Operand::b}) {
    Program p;
    const ValueId dy = source(p, "dy", DType::f64, {3, 2});
    const ValueId x = source(p, "x", DType::f64, {3, 1});
    const bool first = gradient == Operand::a;
    const GemmBiasGradientResult out = gemm_weight_bias_gradient(p, {{.transpose_a = true, .alpha = 0.5}, gradient},
                                                                 f64_math, "op", first ? dy : x, first ? x : dy);
    TextbookRun run(p);
    run.set(dy, {1, 2, 3, 4, 5, 6});
    run.set(x, {1, 10, 100});
    run.run();

    EXPECT_EQ(p.spec(out.c).shape, first ? Shape({2, 1}) : Shape({1, 2}));
    EXPECT_EQ(run.get(out.c), (std::vector<double>{265.5, 321}));  // (1 + 30 + 500) / 2, (2 + 40 + 600) / 2
    EXPECT_EQ(run.get(out.db), (std::vector<double>{9, 12}));      // alpha scales the product only
  }
}

TEST(GemmWeightBiasGradient, IsJudgedAndCostsAsGemmAndColumnSumButForOneReadingOfTheGradient) {
  Program fused;
  Program two;
  std::vector<ValueId> ids;
  for (Program* p : {&fused, &two}) {
    const ValueId dy = source(*p, "dy", DType::bf16, {40, 6});
    const ValueId x = source(*p, "x", DType::bf16, {40, 5});
    const Gemm product{.transpose_a = true};
    if (p == &fused) {
      (void)gemm_weight_bias_gradient(*p, {product, Operand::a}, f32_math, "op", dy, x);
    } else {
      (void)gemm(*p, product, f32_math, "dw", dy, x);
      (void)column_sum(*p, f32_math, "db", dy);
    }
    ids = {dy, x};
  }
  TextbookRun one(fused);
  TextbookRun other(two);
  for (TextbookRun* run : {&one, &other}) {
    run->set(ids[0], spread(240, 1));
    run->set(ids[1], spread(200, 2));
  }

  for (const int output : {0, 1}) {
    const std::vector<Expected> got = one.judge(0, output);
    const std::vector<Expected> want = other.judge(output, 0);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].value, want[i].value) << output << " " << i;
      EXPECT_EQ(got[i].bound, want[i].bound) << output << " " << i;
    }
    expect_subsets_agree(one, 0, output);
  }
  EXPECT_EQ(cost_of(fused).flop, cost_of(two).flop);
  EXPECT_EQ(cost_of(fused).bytes, cost_of(two).bytes - 2.0 * 240);
}

TEST(GemmWeightBiasGradient, AMissingRowIsRejected) {
  constexpr std::size_t rows = 4096, n = 32;
  Program p;
  const ValueId dy = source(p, "dy", DType::bf16, {rows, n});
  const ValueId x = source(p, "x", DType::bf16, {rows, 1});
  (void)gemm_weight_bias_gradient(p, {{.transpose_a = true}, Operand::a}, f32_math, "op", dy, x, {},
                                  p.reserve(tensor("db", DType::f32, {n}, Role::gradient)));
  TextbookRun run(p);
  run.set(dy, spread(rows * n, 1));
  const std::vector<double> stored = run.get(dy);
  const std::vector<float> values(stored.begin(), stored.end());
  const std::vector<Expected> judged = run.judge(0, 1);

  int incomplete = 0;
  for (std::size_t j = 0; j < n; ++j) {
    EXPECT_TRUE(within(judged[j], DType::f32, column_of(values, n, j, rows))) << j;
    incomplete += within(judged[j], DType::f32, column_of(values, n, j, rows - 1)) ? 1 : 0;
  }
  EXPECT_EQ(incomplete, 0);
}

TEST(GemmWeightBiasGradient, RefusesAGradientWhoseRowsAreNotSummedAndWhatElseAGemmMayDo) {
  Program p;
  const ValueId a = source(p, "a", DType::f32, {4, 4});
  const ValueId f8 = source(p, "f8", DType::f8_e4m3, {4, 4});
  const ValueId batch = source(p, "batch", DType::f32, {2, 4, 4});
  const auto message = [&](const GemmWeightBiasGradient& attributes, ValueId factor) {
    return program_error([&] { (void)gemm_weight_bias_gradient(p, attributes, f32_math, "op", factor, factor); });
  };

  EXPECT_EQ(message({{}, Operand::a}, a),
            "gemm_weight_bias_gradient: attributes (bias_gradient=a); expected a gradient whose rows lie along k: a "
            "transposed, or b not");
  EXPECT_EQ(message({{.transpose_b = true}, Operand::b}, a),
            "gemm_weight_bias_gradient: attributes (transpose_b, bias_gradient=b); expected a gradient whose rows lie "
            "along k: a transposed, or b not");
  EXPECT_EQ(message({{.beta = 1.0}, Operand::b}, a),
            "gemm_weight_bias_gradient: attributes (beta=1); expected transposes and alpha only");
  EXPECT_EQ(message({{}, Operand::b}, f8),
            "gemm_weight_bias_gradient: tensor 'f8' has type f8_e4m3; expected a type of 16 bits or more");
  EXPECT_EQ(message({{}, Operand::b}, batch),
            "gemm_weight_bias_gradient: tensor 'batch' has shape [2, 4, 4]; expected two axes: no batch");
}

}  // namespace gemm_bias_gradient_test
}  // namespace gpubench::testing
