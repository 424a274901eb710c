#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"
#include "reference/ops/quantize.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace elementwise_test {

constexpr double u32 = 0x1p-24;

TEST(Elementwise, HasItsHandWorkedValues) {
  Program program;
  const ValueId a = source(program, "a", DType::f32, {2, 2});
  const ValueId b = source(program, "b", DType::f32, {2, 2});
  const ValueId copied = copy(program, "copied", a);
  const ValueId triadic = triad(program, {3.0}, f32_math, "triadic", a, b);
  const ValueId scaled = scale(program, {-0.25}, f32_math, "scaled", b);
  const ValueId added = add(program, f32_math, "added", a, b);
  const ValueId turned = transpose(program, {{1, 0}}, "turned", a);
  TextbookRun run(program);
  run.set(a, {1, 2, 3, 4});
  run.set(b, {10, 20, 30, 40});

  run.run();

  EXPECT_EQ(run.get(copied), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(run.get(triadic), (std::vector<double>{31, 62, 93, 124}));
  EXPECT_EQ(run.get(scaled), (std::vector<double>{-2.5, -5, -7.5, -10}));
  EXPECT_EQ(run.get(added), (std::vector<double>{11, 22, 33, 44}));
  EXPECT_EQ(run.get(turned), (std::vector<double>{1, 3, 2, 4}));
}

TEST(Elementwise, MovesAreExact) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {2, 3});
  (void)copy(program, "copy", x);
  (void)cast(program, DType::bf16, "cast", x);
  (void)transpose(program, {{1, 0}}, "transpose", x);
  (void)reorder(program, Layout::ordered({2, 3}, std::array{1, 0}), "reorder", x);
  TextbookRun run(program);
  run.set(x, spread(6, 1));

  for (int op = 0; op < 4; ++op) {
    for (const Expected& judged : run.judge(op, 0)) EXPECT_EQ(judged.bound, 0.0);
  }
}

TEST(Elementwise, ArithmeticHasOneRoundingPerOperation) {
  Program program;
  const ValueId a = source(program, "a", DType::f32, {1});
  const ValueId b = source(program, "b", DType::f32, {1});
  (void)add(program, f32_math, "add", a, b);
  (void)triad(program, {-2.0}, f32_math, "triad", a, b);
  (void)scale(program, {0.5}, f32_math, "exact factor", a);
  (void)scale(program, {0.1}, f32_math, "rounded factor", a);
  TextbookRun run(program);
  run.set(a, {8});
  run.set(b, {3});

  EXPECT_DOUBLE_EQ(run.judge(0, 0)[0].bound, u32 * 11);
  EXPECT_DOUBLE_EQ(run.judge(1, 0)[0].bound, u32 * (6 + 2));  // |s c| + |y|, y = 8 - 6
  EXPECT_DOUBLE_EQ(run.judge(2, 0)[0].bound, u32 * 4);
  // 0.1 as f32 is off by 1.49e-9
  EXPECT_NEAR(run.judge(3, 0)[0].bound, u32 * 0.8 + 8 * 1.490116e-9, 1e-14);
}

TEST(Elementwise, F32ArithmeticIsAcceptedAndOneMoreUlpIsNot) {
  Program program;
  const ValueId a = source(program, "a", DType::f32, {1000});
  const ValueId b = source(program, "b", DType::f32, {1000});
  (void)triad(program, {3.1}, f32_math, "triad", a, b);
  TextbookRun run(program);
  run.set(a, spread(1000, 1));
  run.set(b, spread(1000, 2));
  const std::vector<double> left = run.get(a);
  const std::vector<double> right = run.get(b);
  const std::vector<Expected> judged = run.judge(0, 0);

  int wrong_accepted = 0;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const float product = 3.1F * static_cast<float>(right[i]);
    const float y = static_cast<float>(left[i]) + product;
    EXPECT_TRUE(within(judged[i], DType::f32, y)) << i;
    // The factor one bf16 step away, as if stored in bf16.
    wrong_accepted += within(judged[i], DType::f32, left[i] + 3.09375 * right[i]) ? 1 : 0;
  }
  EXPECT_LT(wrong_accepted, 5);
}

// All tensors on rank 1: one on rank 0 would make a collective.
TEST(Builders, PutOutputsOnTheRankOfTheirInputs) {
  Program p;
  const auto on_rank_1 = [&p](const std::string& name, DType type, Shape shape) {
    TensorSpec spec = tensor(name + "@1", type, std::move(shape), Role::input);
    spec.placement.rank = 1;
    spec.placement.ranks = 2;
    return p.add(std::move(spec));
  };
  const ValueId x = on_rank_1("x", DType::f32, {4, 4});
  const ValueId scale_of_8_bits = on_rank_1("scale", DType::f32, {1});
  const ValueId labels = on_rank_1("labels", DType::i32, {4});
  const ValueId gamma = on_rank_1("gamma", DType::f32, {4});
  add(p, f32_math, "add", x, x);
  scale(p, {2.0}, f32_math, "scale", x);
  copy(p, "copy", x);
  cast(p, DType::bf16, "cast", x);
  transpose(p, {{1, 0}}, "transpose", x);
  quantize(p, {DType::f8_e4m3}, f32_math, "quantize", x, scale_of_8_bits);
  gelu_forward(p, {}, f32_math, "gelu", x);
  column_sum(p, f32_math, "sum", x);
  gemm(p, {}, f32_math, "gemm", x, x);
  cross_entropy_forward(p, f32_math, "loss", x, labels);
  embedding_forward(p, "embedding", x, labels);
  layer_norm_forward(p, {1e-5}, f32_math, "norm", x, gamma, gamma);
  for (const OpCall& call : p.ops()) {
    EXPECT_EQ(rank_of(p, call), 1) << call.label;
    for (const ValueId output : call.outputs) EXPECT_EQ(p.spec(output).placement.ranks, 2) << call.label;
  }
  EXPECT_EQ(p.spec(p.op(0).outputs[0]).name, "add@1");
  EXPECT_EQ(p.spec(p.op(0).outputs[0]).global_name(), "add");
}

TEST(Elementwise, TransposesAnyPermutationOfThreeAxes) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {2, 3, 4});
  const ValueId y = transpose(program, {{2, 0, 1}}, "turned", x);
  TextbookRun run(program);
  std::vector<double> numbers(24);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  run.set(x, numbers);
  run.run();

  EXPECT_EQ(program.spec(y).shape, (Shape{4, 2, 3}));
  const TensorView turned = run.view(y);
  const TensorView original = run.view(x);
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      for (std::int64_t k = 0; k < 3; ++k) EXPECT_EQ(turned.at({i, j, k}), original.at({j, k, i}));
    }
  }
}

TEST(Elementwise, ReorderKeepsTheLogicalTensor) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {2, 3, 2, 2});
  const ValueId y = reorder(program, Layout::ordered({2, 3, 2, 2}, std::array{0, 2, 3, 1}), "nhwc", x, Phase::setup);
  TextbookRun run(program);
  run.set(x, spread(24, 3));
  run.run();

  EXPECT_EQ(run.get(y), run.get(x));
  EXPECT_EQ(program.op(0).phase, Phase::setup);
  EXPECT_FALSE(program.spec(y).layout.is_row_major(program.spec(y).shape));
  EXPECT_EQ(cost_of(program).bytes, 0.0);
}

TEST(Elementwise, DerivativesAgreeWithDifferences) {
  const std::map<std::string, std::function<ValueId(Program&, ValueId)>> ops{
      {"copy", [](Program& p, ValueId x) { return copy(p, "op", x); }},
      {"scale", [](Program& p, ValueId x) { return scale(p, {-1.75}, f64_math, "op", x); }},
      {"add", [](Program& p, ValueId x) { return add(p, f64_math, "op", x, x); }},
      {"cast", [](Program& p, ValueId x) { return cast(p, DType::f64, "op", x); }},
      {"transpose",
       [](Program& p, ValueId x) {
         return transpose(p, {{2, 0, 1}}, "op", x);
       }},
      {"reorder", [](Program& p, ValueId x) {
         return reorder(p, Layout::ordered({2, 3, 2}, std::array{2, 0, 1}), "op", x);
       }}};
  for (const auto& [name, build] : ops) {
    SCOPED_TRACE(name);
    Program program;
    const ValueId x = source(program, "x", DType::f64, {2, 3, 2});
    const ValueId y = build(program, x);
    expect_derivative_agrees(program, y, {{x, spread(12, 4)}}, {x});
  }
}

TEST(Elementwise, RepeatedRowsAreTheRowsAndTheirGradientsAreSummed) {
  Program program;
  const ValueId x = source(program, "x", DType::f64, {2, 1, 3});
  const ValueId y = program.reserve(tensor("y", DType::f64, {2, 3, 3}, Role::activation));
  repeat_rows_into(program, f64_math, "op", x, y);
  TextbookRun run(program);
  run.set(x, {1, 2, 3, 4, 5, 6});
  run.run();

  EXPECT_EQ(run.get(y), (std::vector<double>{1, 2, 3, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6}));
  expect_derivative_agrees(program, y, {{x, spread(6, 4)}}, {x});
}

// Two samples of two rows: y = a b, and y = x (1 + scale) + shift.
TEST(Elementwise, AVectorOfASampleMeetsAllItsRows) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {4, 2});
  const ValueId scale = source(program, "scale", DType::f32, {2, 2}),
                shift = source(program, "shift", DType::f32, {2, 2});
  const ValueId product = multiply(program, f32_math, "product", x, scale);
  const ValueId modulated = modulate_forward(program, f32_math, "modulated", x, scale, shift);
  const ValueId gradient = modulate_backward(program, f32_math, "gradient", x, scale);
  TextbookRun run(program);
  run.set(x, {1, 2, 3, 4, 5, 6, 7, 8});
  run.set(scale, {10, 100, -1, 2});
  run.set(shift, {0.5, 0.25, 1, 2});
  run.run();

  EXPECT_EQ(run.get(product), (std::vector<double>{10, 200, 30, 400, -5, 12, -7, 16}));
  EXPECT_EQ(run.get(modulated), (std::vector<double>{11.5, 202.25, 33.5, 404.25, 1, 20, 1, 26}));
  EXPECT_EQ(run.get(gradient), (std::vector<double>{11, 202, 33, 404, 0, 18, 0, 24}));
  EXPECT_DOUBLE_EQ(run.judge(0, 0)[1].bound, u32 * 200);
  EXPECT_DOUBLE_EQ(run.judge(1, 0)[5].bound, u32 * (2 * 18 + 20));
  EXPECT_DOUBLE_EQ(run.judge(2, 0)[1].bound, u32 * 2 * 202);
}

TEST(Elementwise, RowsThatCannotBeRepeatedAreRefused) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {2, 3});
  const ValueId y = program.reserve(tensor("y", DType::f32, {5, 3}, Role::activation));

  EXPECT_EQ(program_error([&] { repeat_rows_into(program, f32_math, "op", x, y); }),
            "repeat_rows: tensor 'x' has shape [2, 3]; expected [..., n] of rows that divide those of 'y' [5, 3]");
}

TEST(Elementwise, ACastGoesBackInTheTypeOfItsInput) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {4});
  const ValueId y = cast(program, DType::bf16, "narrow", x);
  SingleOpTape tape(program);
  tape.given[y] = source(program, "dy", DType::bf16, {4});
  tape.wanted_inputs = {x};
  const OpCall forward = program.op(0);

  definition(cast_kind).derivative(program, forward, tape);

  ASSERT_EQ(tape.contributions.size(), 1U);
  EXPECT_EQ(program.spec(tape.contributions.begin()->second).dtype, DType::f32);
}

TEST(Elementwise, TriadHasNoDerivative) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {4});
  (void)triad(program, {3.0}, f32_math, "stream", x, x);
  SingleOpTape tape(program);
  const OpCall forward = program.op(0);

  EXPECT_EQ(program_error([&] { definition(triad_kind).derivative(program, forward, tape); }),
            "triad has no derivative (op 'stream')");
}

TEST(Elementwise, OnlyCrossEntropyMayMakeTheLoss) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {1});
  const ValueId y = scale(program, {2.0}, f32_math, "doubled", x);
  SingleOpTape tape(program);
  tape.loss = y;
  const OpCall forward = program.op(0);

  EXPECT_EQ(program_error([&] { definition(scale_kind).derivative(program, forward, tape); }),
            "scale: op 'doubled' makes the loss; expected cross_entropy_forward, or a seed with a gradient");
}

TEST(Elementwise, SubsetsOfUnitsAgreeWithAll) {
  Program program;
  const ValueId a = source(program, "a", DType::bf16, {30, 41});
  const ValueId b = source(program, "b", DType::bf16, {30, 41});
  (void)triad(program, {3.0}, f32_math, "triad", a, b);
  (void)transpose(program, {{1, 0}}, "transpose", a);
  (void)copy(program, "copy", a);
  TextbookRun run(program);
  run.set(a, spread(30 * 41, 1));
  run.set(b, spread(30 * 41, 2));

  for (int op = 0; op < 3; ++op) expect_subsets_agree(run, op, 0);
}

TEST(Elementwise, CostsAreThoseOfStream) {
  Program program;
  const ValueId a = source(program, "a", DType::f32, {100});
  (void)copy(program, "copy", a);
  (void)triad(program, {3.0}, f32_math, "triad", a, a);
  (void)cast(program, DType::bf16, "cast", a);

  EXPECT_EQ(cost_of(program, program.op(0)).flop, 0.0);
  EXPECT_EQ(cost_of(program, program.op(0)).bytes, 800.0);
  EXPECT_EQ(cost_of(program, program.op(1)).flop, 200.0);
  EXPECT_EQ(cost_of(program, program.op(1)).bytes, 1200.0);
  EXPECT_EQ(cost_of(program, program.op(2)).bytes, 600.0);
}

TEST(Elementwise, MismatchesAreRefused) {
  Program program;
  const ValueId a = source(program, "a", DType::f32, {2, 3});
  const ValueId b = source(program, "b", DType::f32, {3, 2});
  const ValueId c = source(program, "c", DType::bf16, {2, 3});

  EXPECT_EQ(program_error([&] { (void)add(program, f32_math, "sum", a, b); }),
            "add: tensor 'b' has shape [3, 2]; expected [2, 3]");
  EXPECT_EQ(program_error([&] { (void)add(program, f32_math, "sum", a, c); }),
            "add: tensor 'c' has type bf16; expected f32");
  EXPECT_EQ(program_error([&] {
              (void)transpose(program, {{0, 0}}, "turned", a);
            }),
            "transpose: permutation=0 0 of a tensor of shape [2, 3]; expected every axis once");
  EXPECT_EQ(program_error([&] { (void)reorder(program, Layout::row_major({2}), "moved", a); }),
            "reorder: layout has 1 strides but tensor 'a' has shape [2, 3]; expected one stride per axis");
}

}  // namespace elementwise_test
}  // namespace gpubench::testing
