#include "reference/ops/bias_gradient.h"

#include <gtest/gtest.h>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace column_sum_test {

TEST(ColumnSum, SumsOverAllLeadingAxes) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {3, 1, 2});
  const ValueId y = column_sum(program, f32_math, "sum", x);
  TextbookRun run(program);
  run.set(x, {1, 2, 3, 4, 5, 6});
  run.run();

  EXPECT_EQ(run.get(y), (std::vector<double>{9, 12}));
  // K = 3, Q = sqrt(1 + 9 + 25)
  EXPECT_NEAR(run.judge(0, 0)[0].bound, 2 * 0x1p-24 * std::sqrt(3.0) * (9 + std::sqrt(35.0)), 1e-18);
}

TEST(ColumnSum, SumsEqualSharesOfTheRowsIntoSeveral) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {2, 3, 2});
  const ValueId y = program.reserve(tensor("y", DType::f32, {2, 2}, Role::gradient));
  EXPECT_EQ(column_sum(program, f32_math, "sum", x, y), y);
  TextbookRun run(program);
  run.set(x, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60});
  run.run();

  EXPECT_EQ(run.get(y), (std::vector<double>{9, 12, 90, 120}));
  // K = 3, Q = 10 sqrt(1 + 9 + 25) in the second pair of columns
  EXPECT_NEAR(run.judge(0, 0)[2].bound, 2 * 0x1p-24 * std::sqrt(3.0) * (90 + 10 * std::sqrt(35.0)), 1e-17);
  expect_subsets_agree(run, 0, 0);
}

TEST(ColumnSum, WritesBiasGradientsOfAnotherType) {
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {4, 3});
  const ValueId into = program.reserve(tensor("dbias", DType::f32, {3}, Role::gradient));

  EXPECT_EQ(column_sum(program, f32_math, "sum", x, into), into);
}

TEST(ColumnSum, AMissingRowIsRejectedAndSerialF32Accepted) {
  constexpr std::int64_t rows = 300, n = 50;
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {rows, n});
  (void)column_sum(program, f32_math, "sum", x, program.reserve(tensor("y", DType::f32, {n}, Role::gradient)));
  TextbookRun run(program);
  run.set(x, spread(rows * n, 1));
  const std::vector<double> values = run.get(x);
  const std::vector<Expected> judged = run.judge(0, 0);

  int accepted_without_last = 0;
  for (std::size_t j = 0; j < n; ++j) {
    float sum = 0.0F;
    float without_last = 0.0F;
    for (std::size_t i = 0; i < rows; ++i) {
      without_last = sum;
      sum += static_cast<float>(values[i * n + j]);
    }
    EXPECT_TRUE(within(judged[j], DType::f32, sum)) << j;
    accepted_without_last += within(judged[j], DType::f32, without_last) ? 1 : 0;
  }
  EXPECT_LE(accepted_without_last, 1);
}

TEST(ColumnSum, SubsetsOfUnitsAgreeWithAll) {
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {40, 61});
  (void)column_sum(program, f32_math, "sum", x);
  TextbookRun run(program);
  run.set(x, spread(40 * 61, 1));

  expect_subsets_agree(run, 0, 0);
}

TEST(ColumnSum, ReadsTheMatrixAndWritesARow) {
  Program program;
  (void)column_sum(program, f32_math, "sum", source(program, "x", DType::bf16, {40, 8}));

  EXPECT_EQ(cost_of(program).flop, 320.0);
  EXPECT_EQ(cost_of(program).bytes, 2.0 * 328);
}

TEST(ColumnSum, HasNoDerivativeAndRefusesScalars) {
  Program program;
  const ValueId scalar = source(program, "scalar", DType::f32, {});
  const ValueId x = source(program, "x", DType::f32, {2, 2});
  (void)column_sum(program, f32_math, "sum", x);
  SingleOpTape tape(program);
  const OpCall forward = program.op(0);

  EXPECT_EQ(program_error([&] { definition(column_sum_kind).derivative(program, forward, tape); }),
            "column_sum has no derivative (op 'sum')");
  EXPECT_EQ(program_error([&] { (void)column_sum(program, f32_math, "none", scalar); }),
            "column_sum: tensor 'scalar' has shape []; expected [..., n]");
  const ValueId three = program.reserve(tensor("three", DType::f32, {3, 2}, Role::gradient));
  EXPECT_EQ(program_error([&] { (void)column_sum(program, f32_math, "none", x, three); }),
            "column_sum: tensor 'three' has shape [3, 2]; expected [..., n] of rows that divide those of 'x' [2, 2]");
}

}  // namespace column_sum_test
}  // namespace gpubench::testing
