#include <gtest/gtest.h>

#include <array>

#include "reference/ops/attention.h"
#include "tests/reference/ops/float_attention.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace attention_backward_test {

struct Example {
  Program program;
  ValueId d_o, q, k, v, o, lse;
  AttentionBackward out;

  Example(const Attention& attention, DType type, std::int64_t b, std::int64_t s, std::int64_t hq, std::int64_t hkv,
          std::int64_t d) {
    const Math math = type == DType::f64 ? f64_math : f32_math;
    d_o = source(program, "do", type, {b, s, hq, d});
    q = source(program, "q", type, {b, s, hq, d});
    k = source(program, "k", type, {b, s, hkv, d});
    v = source(program, "v", type, {b, s, hkv, d});
    o = source(program, "o", type, {b, s, hq, d});
    lse = source(program, "lse", type == DType::f64 ? DType::f64 : DType::f32, {b, hq, s});
    out = attention_backward(program, attention, math, "backward", d_o, q, k, v, o, lse);
  }
};

TEST(AttentionBackward, WithOneKeyOnlyTheValueHasAGradient) {
  // p = 1 for any q and k, so dv = do and dq = dk = 0.
  Example s({true, 0.5}, DType::f64, 1, 1, 1, 1, 2);
  TextbookRun run(s.program);
  run.set(s.d_o, {5, 6});
  run.set(s.q, {1, 2});
  run.set(s.k, {3, 4});
  run.set(s.v, {7, -9});
  run.set(s.o, {7, -9});
  run.set(s.lse, {5.5});

  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{0, 0}));
  EXPECT_EQ(values_of(run.judge(0, 1)), (std::vector<double>{0, 0}));
  EXPECT_EQ(values_of(run.judge(0, 2)), (std::vector<double>{5, 6}));
}

TEST(AttentionBackward, TakesOAndLogSumExpAsTheyWereSaved) {
  // With a saved o of 0, D = 0 and ds = p (do v) = 2 * 3; a saved lse of ln(1/2) below the score makes p = 2.
  // score = 1: dq = scale ds k = 2 * 6 * 1 = 12, dk = 12, dv = p do = 4.
  Example s({true, 1.0}, DType::f64, 1, 1, 1, 1, 1);
  TextbookRun run(s.program);
  run.set(s.d_o, {2});
  run.set(s.q, {1});
  run.set(s.k, {1});
  run.set(s.v, {3});
  run.set(s.o, {0});
  run.set(s.lse, {1.0 - std::log(2.0)});

  expect_near(values_of(run.judge(0, 0)), {12}, 1e-14);
  expect_near(values_of(run.judge(0, 1)), {12}, 1e-14);
  expect_near(values_of(run.judge(0, 2)), {4}, 1e-14);
}

TEST(AttentionBackward, TheBoundOfOneKeyWorkedOutByHand) {
  // k = v = 0 makes score and dp exactly 0, lse = 0 makes p = 1; D = do o = 6 with u (2 (6 + 6) + 2 * 6) = 36 u.
  // ds = -6: exponent 10 u and difference 2 u make 72 u, with D 108 u, with the cast to f32 114 u; the product with q =
  // 1 has Rule G 2 (6 + 6) u = 24 u, the scale 2 * 6 u: 150 u.
  Example s({true, 1.0}, DType::f32, 1, 1, 1, 1, 1);
  TextbookRun run(s.program);
  run.set(s.d_o, {2});
  run.set(s.q, {1});
  run.set(s.o, {3});
  const std::vector<Expected> dk = run.judge(0, 1);

  EXPECT_EQ(dk[0].value, -6.0);
  EXPECT_NEAR(dk[0].bound, 150 * 0x1p-24, 1e-20);
}

TEST(AttentionBackward, AgreesWithCentralDifferencesOfTheForward) {
  for (const bool causal : {true, false}) {
    Program p;
    const ValueId q = source(p, "q", DType::f64, {2, 4, 4, 3});
    const ValueId k = source(p, "k", DType::f64, {2, 4, 2, 3});
    const ValueId v = source(p, "v", DType::f64, {2, 4, 2, 3});
    const ValueId o = attention_forward(p, {causal, 0.7}, f64_math, "attention", q, k, v).o;

    expect_derivative_agrees(p, o, {{q, spread(96, 1)}, {k, spread(48, 2)}, {v, spread(48, 3)}}, {q, k, v});
  }
}

TEST(AttentionBackward, UnwantedGradientsStillHaveAPlaceToGo) {
  Program p;
  const ValueId q = source(p, "q", DType::f64, {1, 3, 1, 2});
  const ValueId k = source(p, "k", DType::f64, {1, 3, 1, 2});
  const ValueId v = source(p, "v", DType::f64, {1, 3, 1, 2});
  const ValueId o = attention_forward(p, {}, f64_math, "attention", q, k, v).o;

  expect_derivative_agrees(p, o, {{q, spread(6, 1)}, {k, spread(6, 2)}, {v, spread(6, 3)}}, {v});
  EXPECT_EQ(p.spec(p.op(1).outputs[0]).name, "attention.backward.dq");
}

std::array<int, 3> judge_float(DType type, const FloatAttentionFaults& faults, double gradient_size = 1.5) {
  constexpr std::int64_t rows = 96, d = 32;
  constexpr float scale = 0.1875F;
  Example s({true, scale}, type, 1, rows, 1, 1, d);
  TextbookRun run(s.program);
  std::uint64_t seed = 1;
  for (const ValueId id : {s.q, s.k, s.v, s.d_o}) {
    std::vector<double> values = spread(rows * d, seed++);
    for (double& value : values) value *= id == s.d_o ? gradient_size : 1.5;
    run.set(id, values);
  }
  const HeadData data{run.get(s.q), run.get(s.k), run.get(s.v)};
  const FloatAttention saved = attention_in_float(data, rows, d, scale, type);
  run.set(s.o, {saved.o.begin(), saved.o.end()});
  run.set(s.lse, {saved.lse.begin(), saved.lse.end()});
  const FloatGradients got =
      attention_backward_in_float(data, run.get(s.d_o), run.get(s.o), run.get(s.lse), rows, d, scale, type, faults);
  std::array<int, 3> rejected{};
  for (const int output : {0, 1, 2}) {
    const auto judged = run.judge(0, output);
    const std::vector<float>& gradient = output == 0 ? got.dq : output == 1 ? got.dk : got.dv;
    for (std::size_t i = 0; i < judged.size(); ++i)
      rejected[output] += within(judged[i], type, round_to(type, gradient[i])) ? 0 : 1;
  }
  return rejected;
}

TEST(AttentionBackward, CorrectSinglePrecisionIsAccepted) {
  EXPECT_EQ(judge_float(DType::f32, {}), (std::array<int, 3>{0, 0, 0}));
  EXPECT_EQ(judge_float(DType::bf16, {}), (std::array<int, 3>{0, 0, 0}));
}

// Without loss scaling, ds lies below f16's smallest normal number, 6e-5, where the absolute casting error is constant.
TEST(AttentionBackward, CastsToF16AreAcceptedHoweverSmallTheGradientsAre) {
  for (const double size : {1.5, 1e-1, 1e-2, 1e-3, 1e-4})
    EXPECT_EQ(judge_float(DType::f16, {}, size), (std::array<int, 3>{0, 0, 0})) << size;
  const auto rejected = judge_float(DType::f16, {.without_correction = true}, 1e-2);
  EXPECT_GT(rejected[0], 96 * 16);
  EXPECT_GT(rejected[1], 96 * 16);
}

// Every p is 1/96, which bf16 rounds up by 2^-9 relative, and so all of dv.
TEST(AttentionBackward, CastsOfEqualProbabilitiesMayAllGoTheSameWay) {
  constexpr std::int64_t rows = 96, d = 8;
  for (const DType type : {DType::bf16, DType::f16}) {
    Example s({true, 1.0}, type, 1, rows, 1, 1, d);
    TextbookRun run(s.program);
    std::vector<double> d_o = spread(rows * d, 3);
    for (double& value : d_o) value = 1.0 + 0.25 * value;
    run.set(s.d_o, d_o);
    run.set(s.lse, std::vector<double>(rows, std::log(96.0)));
    const std::vector<double> zeros(rows * d);
    const FloatGradients got =
        attention_backward_in_float({zeros, zeros, zeros}, run.get(s.d_o), zeros, run.get(s.lse), rows, d, 1.0F, type);
    const std::vector<Expected> dv = run.judge(0, 2);
    for (std::size_t i = 0; i < dv.size(); ++i) EXPECT_TRUE(within(dv[i], type, round_to(type, got.dv[i]))) << i;
    EXPECT_FALSE(within(dv[0], type, round_to(type, got.dv[0] * 1.01F)));
  }
}

TEST(AttentionBackward, AMissingCorrectionIsRejected) {
  const auto rejected = judge_float(DType::bf16, {.without_correction = true});
  EXPECT_GT(rejected[0], 96 * 16);
  EXPECT_GT(rejected[1], 96 * 16);
}

TEST(AttentionBackward, TheCorrectionOfAnotherRowIsRejected) {
  const auto rejected = judge_float(DType::bf16, {.correction_of_next_row = true});
  EXPECT_GT(rejected[0], 96 * 16);
  EXPECT_GT(rejected[1], 96 * 16);
}

TEST(AttentionBackward, AMissingScaleIsRejected) {
  const auto rejected = judge_float(DType::bf16, {.without_scale = true});
  EXPECT_GT(rejected[0], 96 * 28);
  EXPECT_GT(rejected[1], 96 * 28);
}

TEST(AttentionBackward, LostQueriesAreRejectedInTheGradientOfTheKeys) {
  EXPECT_GT(judge_float(DType::bf16, {.lost_queries = 16})[1], 96 * 24);
}

TEST(AttentionBackward, SubsetsAgreeWithTheWhole) {
  for (const bool causal : {true, false}) {
    Example s({causal, 0.5}, DType::f32, 2, 9, 4, 2, 8);
    TextbookRun run(s.program);
    std::uint64_t seed = 1;
    for (const ValueId id : {s.d_o, s.q, s.k, s.v, s.o, s.lse})
      run.set(id, spread(s.program.spec(id).shape.elements(), seed++));
    for (const int output : {0, 1, 2}) expect_subsets_agree(run, 0, output);
  }
}

TEST(AttentionBackward, CostsFiveProductsForTheForwardsTwo) {
  Example s({false, 1.0}, DType::bf16, 2, 10, 4, 2, 8);

  EXPECT_EQ(cost_of(s.program).flop, 10.0 * 2 * 4 * 100 * 8);
}

}  // namespace attention_backward_test
}  // namespace gpubench::testing
