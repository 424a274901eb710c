#include <gtest/gtest.h>

#include <array>

#include "reference/ops/norm.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/differentiate.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace residual_norm_test {

struct Operands4 {
  ValueId x, r, gamma, beta;
};

Operands4 operands(Program& program, DType type, DType parameters, std::int64_t rows, std::int64_t n) {
  return {source(program, "x", type, {rows, n}), source(program, "r", type, {rows, n}),
          source(program, "gamma", parameters, {n}, Role::parameter),
          source(program, "beta", parameters, {n}, Role::parameter)};
}

struct Example {
  Program program;
  Operands4 in;
  ResidualNormForward out;

  Example(DType type, DType parameters, std::int64_t rows, std::int64_t n, double epsilon = 1e-5) {
    in = operands(program, type, parameters, rows, n);
    out = residual_norm_forward(program, {epsilon}, type == DType::f64 ? f64_math : f32_math, "rn", in.x, in.r,
                                in.gamma, in.beta);
  }
};

struct Pair {
  Program program;
  Operands4 in;
  ValueId sum;
  LayerNormForward norm;

  Pair(DType type, DType parameters, std::int64_t rows, std::int64_t n) {
    const Math math = type == DType::f64 ? f64_math : f32_math;
    in = operands(program, type, parameters, rows, n);
    sum = add(program, math, "sum", in.x, in.r);
    norm = layer_norm_forward(program, {}, math, "ln", sum, in.gamma, in.beta);
  }
};

void fill(TextbookRun& run, const Operands4& in, std::int64_t rows, std::int64_t n) {
  run.set(in.x, spread(rows * n, 1));
  run.set(in.r, spread(rows * n, 2));
  run.set(in.gamma, spread(n, 3));
  run.set(in.beta, spread(n, 4));
}

TEST(ResidualNorm, ARowWorkedOutByHand) {
  // x + r = (1, 3): mean 2, variance 1; epsilon 3 gives rstd = 1/2, so y = gamma (-1/2, 1/2) + beta.
  Example s(DType::f64, DType::f64, 1, 2, 3.0);
  TextbookRun run(s.program);
  run.set(s.in.x, {0.5, 4});
  run.set(s.in.r, {0.5, -1});
  run.set(s.in.gamma, {2, 10});
  run.set(s.in.beta, {0.5, -1});

  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{1, 3}));
  EXPECT_EQ(values_of(run.judge(0, 1)), (std::vector<double>{-0.5, 4}));
  EXPECT_EQ(values_of(run.judge(0, 2)), (std::vector<double>{2}));
  EXPECT_EQ(values_of(run.judge(0, 3)), (std::vector<double>{0.5}));
}

TEST(ResidualNorm, NormalizesTheSumAsItIsStored) {
  // bf16 has 8 bits: 256 + 1 = 257 lies between 256 and 258, and goes to the even 256; 256 + 3 = 259 goes to 260. The
  // stored row (256, 260) has mean 258 and variance 4; the unrounded one would have mean 258 and variance 1.
  Example s(DType::bf16, DType::f32, 1, 2, 0.0);
  TextbookRun run(s.program);
  run.set(s.in.x, {256, 256});
  run.set(s.in.r, {1, 3});
  run.set(s.in.gamma, {1, 1});
  run.set(s.in.beta, {0, 0});

  EXPECT_EQ(values_of(run.judge(0, 2)), (std::vector<double>{258}));
  EXPECT_EQ(values_of(run.judge(0, 3)), (std::vector<double>{0.5}));
}

TEST(ResidualNorm, JudgesWhatTheTwoOpsAreJudgedBy) {
  for (const DType type : {DType::f32, DType::bf16, DType::f64}) {
    Example one(type, DType::f32, 13, 37);
    Pair two(type, DType::f32, 13, 37);
    TextbookRun fused(one.program);
    TextbookRun parts(two.program);
    fill(fused, one.in, 13, 37);
    fill(parts, two.in, 13, 37);
    fused.run();
    parts.run();

    EXPECT_EQ(fused.get(one.out.sum), parts.get(two.sum)) << name(type);
    for (const int output : {0, 1, 2}) {
      const std::vector<Expected> got = fused.judge(0, output + 1);
      const std::vector<Expected> want = parts.judge(1, output);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].value, want[i].value) << name(type) << ", output " << output << ", element " << i;
        EXPECT_EQ(got[i].bound, want[i].bound) << name(type) << ", output " << output << ", element " << i;
      }
    }
  }
}

TEST(ResidualNorm, ASumThatIsOffByOneStepIsRejected) {
  Example s(DType::f32, DType::f32, 1, 8);
  TextbookRun run(s.program);
  fill(run, s.in, 1, 8);
  for (const Expected& judged : run.judge(0, 0)) {
    const auto stored = static_cast<float>(judged.value);
    EXPECT_TRUE(within(judged, DType::f32, stored));
    EXPECT_FALSE(within(judged, DType::f32, std::nextafter(stored, 10.0F)));
  }
}

TEST(ResidualNorm, ANormOfTheUnroundedSumIsRejectedInBf16) {
  Example s(DType::bf16, DType::f32, 4, 64);
  TextbookRun run(s.program);
  fill(run, s.in, 4, 64);
  const std::vector<double> x = run.get(s.in.x), r = run.get(s.in.r);
  const std::vector<Expected> mean = run.judge(0, 2);
  for (std::size_t row = 0; row < 4; ++row) {
    double unrounded = 0.0;
    for (std::size_t j = 0; j < 64; ++j) unrounded += (x[row * 64 + j] + r[row * 64 + j]) / 64.0;
    EXPECT_FALSE(within(mean[row], DType::f32, static_cast<float>(unrounded))) << row;
  }
}

TEST(ResidualNorm, GradientsThroughTheNormAgreeWithCentralDifferences) {
  Example s(DType::f64, DType::f64, 3, 7);
  expect_derivative_agrees(
      s.program, s.out.y,
      {{s.in.x, spread(21, 1)}, {s.in.r, spread(21, 4)}, {s.in.gamma, spread(7, 2)}, {s.in.beta, spread(7, 3)}},
      {s.in.x, s.in.r, s.in.gamma, s.in.beta});
}

TEST(ResidualNorm, GradientsThroughTheSumAgreeWithCentralDifferences) {
  Example s(DType::f64, DType::f64, 3, 7);
  expect_derivative_agrees(
      s.program, s.out.sum,
      {{s.in.x, spread(21, 1)}, {s.in.r, spread(21, 4)}, {s.in.gamma, spread(7, 2)}, {s.in.beta, spread(7, 3)}},
      {s.in.x, s.in.r});
}

// Gradients of x, r, gamma and beta for loss = dy y + ds sum.
template <class Form>
std::vector<std::vector<double>> gradients_of(Form form, ValueId sum, ValueId y) {
  Program& p = form.program;
  const ValueId dy = source(p, "dy", DType::f64, {5, 6}, Role::gradient);
  const ValueId ds = source(p, "ds", DType::f64, {5, 6}, Role::gradient);
  const std::vector<ValueId> wanted{form.in.x, form.in.r, form.in.gamma, form.in.beta};
  const auto gradients = differentiate(p, std::array{Seed{y, dy}, Seed{sum, ds}}, wanted);
  TextbookRun run(p);
  fill(run, form.in, 5, 6);
  run.set(dy, spread(30, 8));
  run.set(ds, spread(30, 9));
  run.run();
  std::vector<std::vector<double>> values;
  for (const ValueId id : wanted) values.push_back(run.get(gradients.at(id)));
  return values;
}

TEST(ResidualNorm, HasTheGradientsOfTheTwoOps) {
  Example one(DType::f64, DType::f64, 5, 6);
  Pair two(DType::f64, DType::f64, 5, 6);
  const auto fused = gradients_of(one, one.out.sum, one.out.y);
  const auto parts = gradients_of(two, two.sum, two.norm.y);
  for (std::size_t i = 0; i < fused.size(); ++i) expect_near(fused[i], parts[i], 1e-15);
}

TEST(ResidualNorm, AGradientIntoAStatisticIsAnError) {
  Example s(DType::f64, DType::f64, 3, 7);
  const std::string message = refused_gradient(s.program, s.out.mean);

  EXPECT_NE(message.find("residual_norm_forward: a gradient flows into a statistic of op 'rn'"), std::string::npos)
      << message;
}

struct Backward {
  Program program;
  ValueId dy, x, gamma, mean, rstd, dr;
  LayerNormBackward out;

  Backward(DType type, DType parameters, std::int64_t rows, std::int64_t n, bool residual = true) {
    const DType statistics = type == DType::f64 ? DType::f64 : DType::f32;
    dy = source(program, "dy", type, {rows, n});
    x = source(program, "x", type, {rows, n});
    gamma = source(program, "gamma", parameters, {n}, Role::parameter);
    mean = source(program, "mean", statistics, {rows});
    rstd = source(program, "rstd", statistics, {rows});
    dr = source(program, "dr", type, {rows, n});
    out = layer_norm_backward(program, {}, type == DType::f64 ? f64_math : f32_math, "backward", dy, x, gamma, mean,
                              rstd, residual ? std::optional(dr) : std::nullopt);
  }
  void fill(TextbookRun& run) const {
    const Shape& shape = program.spec(x).shape;
    run.set(dy, spread(shape.elements(), 1));
    run.set(x, spread(shape.elements(), 2));
    run.set(gamma, spread(shape[1], 3));
    run.set(mean, spread(shape[0], 4));
    run.set(rstd, std::vector<double>(static_cast<std::size_t>(shape[0]), 1.75));
    run.set(dr, spread(shape.elements(), 5));
  }
};

TEST(ResidualNormBackward, ARowWorkedOutByHand) {
  // x = (1, 3), mean 2, rstd 1/2: xhat = (-1/2, 1/2). h = dy gamma = (3, 1): sums 4 and h xhat = -1.
  // The norm's: 1/2 (h - 2 + xhat / 2) = 1/2 (3 - 2 - 1/4, 1 - 2 + 1/4) = (3/8, -3/8).
  Backward s(DType::f64, DType::f64, 1, 2);
  TextbookRun run(s.program);
  run.set(s.dy, {3, 0.5});
  run.set(s.x, {1, 3});
  run.set(s.gamma, {1, 2});
  run.set(s.mean, {2});
  run.set(s.rstd, {0.5});
  run.set(s.dr, {10, -10});

  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{10.375, -10.375}));
  EXPECT_EQ(values_of(run.judge(0, 1)), (std::vector<double>{-1.5, 0.25}));
  EXPECT_EQ(values_of(run.judge(0, 2)), (std::vector<double>{3, 0.5}));
}

TEST(ResidualNormBackward, IsTheNormsWithOneMoreRoundingOfItsDx) {
  for (const DType type : {DType::f32, DType::bf16, DType::f64}) {
    Backward one(type, DType::f32, 13, 37);
    Backward two(type, DType::f32, 13, 37, false);
    TextbookRun fused(one.program);
    TextbookRun parts(two.program);
    one.fill(fused);
    two.fill(parts);
    const double u = type == DType::f64 ? 0x1p-53 : 0x1p-24;
    const std::vector<double> dr = fused.get(one.dr);

    const std::vector<Expected> dx = fused.judge(0, 0), of_norm = parts.judge(0, 0);
    for (std::size_t i = 0; i < dx.size(); ++i) {
      EXPECT_EQ(dx[i].value, of_norm[i].value + dr[i]) << name(type) << ", element " << i;
      EXPECT_DOUBLE_EQ(dx[i].bound, of_norm[i].bound + u * std::fabs(dx[i].value)) << name(type) << ", element " << i;
    }
    for (const int output : {1, 2}) {
      const std::vector<Expected> got = fused.judge(0, output), want = parts.judge(0, output);
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].value, want[i].value) << name(type) << ", output " << output << ", element " << i;
        EXPECT_EQ(got[i].bound, want[i].bound) << name(type) << ", output " << output << ", element " << i;
      }
    }
    for (const int output : {0, 1, 2}) expect_subsets_agree(fused, 0, output);
  }
}

// Rejected elements of dx, of 16 x 64, if make() combines the norm's dx and the residual's.
template <class Make>
int rejected(DType type, Make make) {
  Backward one(type, DType::f32, 16, 64);
  Backward two(type, DType::f32, 16, 64, false);
  TextbookRun fused(one.program);
  TextbookRun parts(two.program);
  one.fill(fused);
  two.fill(parts);
  const std::vector<Expected> dx = fused.judge(0, 0), of_norm = parts.judge(0, 0);
  const std::vector<double> dr = fused.get(one.dr);
  int count = 0;
  for (std::size_t i = 0; i < dx.size(); ++i)
    count += within(dx[i], type, round_to(type, make(static_cast<float>(of_norm[i].value), dr[i], i))) ? 0 : 1;
  return count;
}

TEST(ResidualNormBackward, FaultsOfTheResidualAreRejected) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    const auto right = [](float dx, double dr, std::size_t) {
      return static_cast<double>(dx + static_cast<float>(dr));
    };
    const auto missing = [](float dx, double, std::size_t) { return static_cast<double>(dx); };
    const auto twice = [](float dx, double dr, std::size_t) { return dx + 2.0 * dr; };
    const auto instead = [](float, double dr, std::size_t) { return dr; };
    const auto other_sign = [](float dx, double dr, std::size_t) { return dx - dr; };
    EXPECT_EQ(rejected(type, right), 0) << name(type);
    EXPECT_GT(rejected(type, missing), 1000) << name(type);
    EXPECT_GT(rejected(type, twice), 1000) << name(type);
    EXPECT_GT(rejected(type, instead), 1000) << name(type);
    EXPECT_GT(rejected(type, other_sign), 1000) << name(type);
  }
  // The norm's dx rounded to bf16 first: most double roundings equal a single one.
  const auto rounded = [](float dx, double dr, std::size_t) { return round_to(DType::bf16, dx) + dr; };
  EXPECT_GT(rejected(DType::bf16, rounded), 100);
}

TEST(ResidualNormBackward, CostsTheTwoOpsWithoutWritingAndReadingTheNormsDx) {
  const Backward one(DType::bf16, DType::f32, 100, 64);
  Backward two(DType::bf16, DType::f32, 100, 64, false);
  (void)add(two.program, f32_math, "sum", two.out.dx, two.dr);

  EXPECT_EQ(cost_of(one.program).flop, cost_of(two.program).flop);
  EXPECT_EQ(cost_of(one.program).bytes, cost_of(two.program).bytes - 2.0 * 6400 * 2);
}

TEST(ResidualNormBackward, AResidualsGradientOfAnotherShapeIsAnErrorNamingIt) {
  Backward s(DType::f32, DType::f32, 4, 8);
  const ValueId narrow = source(s.program, "narrow", DType::f32, {4, 7});

  EXPECT_EQ(program_error([&] {
              layer_norm_backward(s.program, {}, f32_math, "again", s.dy, s.x, s.gamma, s.mean, s.rstd, narrow);
            }),
            "residual_norm_backward: tensor 'narrow' has shape [4, 7]; expected [4, 8]");
}

TEST(ResidualNorm, SubsetsAgreeWithTheWhole) {
  Example s(DType::bf16, DType::f32, 13, 5);
  TextbookRun run(s.program);
  fill(run, s.in, 13, 5);
  for (const int output : {0, 1, 2, 3}) expect_subsets_agree(run, 0, output);
}

TEST(ResidualNorm, CostsTheTwoOpsWithoutOneReadingOfTheSum) {
  Example one(DType::bf16, DType::f32, 100, 64);
  Pair two(DType::bf16, DType::f32, 100, 64);
  const Cost fused = cost_of(one.program);
  const Cost parts = cost_of(two.program);

  EXPECT_EQ(fused.flop, parts.flop);
  EXPECT_EQ(fused.bytes, parts.bytes - 6400 * 2);
  EXPECT_EQ(fused.bytes, 4.0 * 6400 * 2 + 2 * 64 * 4 + 2 * 100 * 4);  // x, r, sum, y; gamma, beta; mean, rstd
}

TEST(ResidualNorm, OutputsHaveTheTypesThatTheHeaderPromises) {
  Example s(DType::bf16, DType::f32, 4, 8);

  EXPECT_EQ(s.program.spec(s.out.sum).to_string(), "rn.sum: bf16[4, 8]");
  EXPECT_EQ(s.program.spec(s.out.y).to_string(), "rn.y: bf16[4, 8]");
  EXPECT_EQ(s.program.spec(s.out.mean).to_string(), "rn.mean: f32[4]");
  EXPECT_EQ(s.program.spec(s.out.rstd).to_string(), "rn.rstd: f32[4]");
}

TEST(ResidualNorm, AResidualOfAnotherShapeOrTypeIsAnErrorNamingIt) {
  Program p;
  const Operands4 in = operands(p, DType::f32, DType::f32, 4, 8);
  const ValueId narrow = source(p, "narrow", DType::f32, {4, 7});
  const ValueId half = source(p, "half", DType::bf16, {4, 8});

  EXPECT_EQ(program_error([&] { residual_norm_forward(p, {}, f32_math, "rn", in.x, narrow, in.gamma, in.beta); }),
            "residual_norm_forward: tensor 'narrow' has shape [4, 7]; expected [4, 8]");
  const std::string message =
      program_error([&] { residual_norm_forward(p, {}, f32_math, "rn", in.x, half, in.gamma, in.beta); });
  EXPECT_NE(message.find("'half'"), std::string::npos) << message;
  EXPECT_EQ(program_error([&] { residual_norm_forward(p, {}, f32_math, "rn", in.x, in.r, in.gamma, narrow); }),
            "residual_norm_forward: tensor 'narrow' has shape [4, 7]; expected [8]");
}

}  // namespace residual_norm_test
}  // namespace gpubench::testing
