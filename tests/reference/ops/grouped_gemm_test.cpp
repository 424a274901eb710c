#include "reference/ops/grouped_gemm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace grouped_gemm_test {

struct Example {
  Program program;
  ValueId a, b, sizes, c;

  Example(DType type, std::int64_t m, std::int64_t groups, std::int64_t k, std::int64_t n, bool transpose_b) {
    a = source(program, "a", type, {m, k});
    b = source(program, "b", type, transpose_b ? Shape{groups, n, k} : Shape{groups, k, n});
    sizes = source(program, "sizes", DType::i32, {groups});
    c = grouped_gemm(program, {transpose_b}, type == DType::f64 ? f64_math : f32_math, "c", a, b, sizes);
  }
};

// Group 0 has one row, group 1 none, group 2 two; the last row has no group.
TEST(GroupedGemm, GroupsWorkedOutByHand) {
  for (const bool transpose_b : {false, true}) {
    Example s(DType::f64, 4, 3, 2, 2, transpose_b);
    TextbookRun run(s.program);
    run.set(s.a, {1, 2, 3, 4, 5, 6, 7, 8});
    // [1 10; 100 1000], an unused matrix, [1 2; 3 4]
    run.set(s.b, transpose_b ? std::vector<double>{1, 100, 10, 1000, 9, 9, 9, 9, 1, 3, 2, 4}
                             : std::vector<double>{1, 10, 100, 1000, 9, 9, 9, 9, 1, 2, 3, 4});
    run.set(s.sizes, {1, 0, 2});
    EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{201, 2010, 15, 22, 23, 34, 0, 0}));
  }
}

// Rows 0 of a and b are group 0's: (1 2)^T (1 1); rows 1 and 2 group 2's: (3 4)^T (0 1) + (5 6)^T (2 0).
TEST(GroupedGemm, WeightGradientsOfGroupsWorkedOutByHand) {
  Program p;
  const ValueId a = source(p, "a", DType::f64, {4, 2}), b = source(p, "b", DType::f64, {4, 2}),
                sizes = source(p, "sizes", DType::i32, {3});
  (void)grouped_gemm_backward_weight(p, f64_math, "db", a, b, sizes);
  TextbookRun run(p);
  run.set(a, {1, 2, 3, 4, 5, 6, 7, 8});
  run.set(b, {1, 1, 0, 1, 2, 0, 9, 9});
  run.set(sizes, {1, 0, 2});
  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{1, 1, 2, 2, 0, 0, 0, 0, 10, 3, 12, 4}));
}

TEST(GroupedGemm, GradientsAgreeWithCentralDifferences) {
  for (const bool transpose_b : {false, true}) {
    Example s(DType::f64, 6, 3, 2, 3, transpose_b);
    expect_derivative_agrees(s.program, s.c, {{s.a, spread(12, 1)}, {s.b, spread(18, 2)}, {s.sizes, {3, 0, 2}}},
                             {s.a, s.b});
  }
}

TEST(GroupedGemm, SizesThatMakeNoSenseHaveNoRightAnswer) {
  for (const std::vector<double>& sizes : {std::vector<double>{3, 2}, std::vector<double>{-1, 2}}) {
    Example s(DType::f32, 4, 2, 2, 2, false);
    (void)grouped_gemm_backward_weight(s.program, f32_math, "db", s.a, s.a, s.sizes);
    TextbookRun run(s.program);
    run.set(s.sizes, sizes);
    for (const int op : {0, 1}) {
      for (const Expected& one : run.judge(op, 0)) EXPECT_TRUE(std::isnan(one.value));
    }
  }
}

enum class Fault { none, next_group, row_missing, bf16_sum };

/// Rejected fractions of c and of the weight gradient.
std::array<double, 2> rejected(DType type, Fault fault) {
  constexpr std::int64_t groups = 3, k = 96, n = 8, m = 60;
  Example s(type, m, groups, k, n, false);
  const ValueId dc = source(s.program, "dc", type, {m, n});
  (void)grouped_gemm_backward_weight(s.program, f32_math, "db", s.a, dc, s.sizes);
  TextbookRun run(s.program);
  run.set(s.a, spread(m * k, 1));
  run.set(s.b, spread(groups * k * n, 2));
  run.set(dc, spread(m * n, 3));
  const std::array<std::int64_t, groups> sizes{24, 16, 20};
  run.set(s.sizes, {24, 16, 20});
  const std::vector<double> a = run.get(s.a), b = run.get(s.b), gradient = run.get(dc);
  const std::vector<Expected> of_c = run.judge(0, 0), of_db = run.judge(1, 0);
  const auto add = [&](float& sum, double x, double y) {
    sum += static_cast<float>(x) * static_cast<float>(y);
    if (fault == Fault::bf16_sum) sum = static_cast<float>(round_to(DType::bf16, sum));
  };
  const auto at = [](const std::vector<double>& matrix, std::int64_t index) {
    return matrix[static_cast<std::size_t>(index)];
  };
  std::array<int, 2> bad{};
  std::int64_t first = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t size = sizes[static_cast<std::size_t>(g)];
    const std::int64_t weights = fault == Fault::next_group ? (g + 1) % groups : g;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t row = first; row < first + size; ++row) {
        float sum = 0.0F;
        for (std::int64_t i = 0; i < k; ++i) add(sum, at(a, row * k + i), at(b, (weights * k + i) * n + j));
        bad[0] += within(of_c[static_cast<std::size_t>(row * n + j)], type, round_to(type, sum)) ? 0 : 1;
      }
      for (std::int64_t i = 0; i < k; ++i) {
        float sum = 0.0F;
        for (std::int64_t row = first + (fault == Fault::row_missing ? 1 : 0); row < first + size; ++row)
          add(sum, at(a, row * k + i), at(gradient, row * n + j));
        bad[1] += within(of_db[static_cast<std::size_t>((g * k + i) * n + j)], type, round_to(type, sum)) ? 0 : 1;
      }
    }
    first += size;
  }
  return {bad[0] / static_cast<double>(of_c.size()), bad[1] / static_cast<double>(of_db.size())};
}

TEST(GroupedGemm, CorrectSinglePrecisionIsAcceptedAndFaultsAreRejected) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    EXPECT_EQ(rejected(type, Fault::none), (std::array<double, 2>{})) << name(type);
  EXPECT_GT(rejected(DType::bf16, Fault::next_group)[0], 0.9);
  EXPECT_GT(rejected(DType::bf16, Fault::row_missing)[1], 0.9);
  EXPECT_GT(rejected(DType::f32, Fault::bf16_sum)[0], 0.9);
  EXPECT_GT(rejected(DType::f32, Fault::bf16_sum)[1], 0.9);
}

TEST(GroupedGemm, SubsetsAgreeWithTheWhole) {
  Example s(DType::bf16, 9, 3, 5, 4, true);
  (void)grouped_gemm_backward_weight(s.program, f32_math, "db", s.c, s.a, s.sizes);
  TextbookRun run(s.program);
  run.set(s.a, spread(45, 1));
  run.set(s.b, spread(60, 2));
  run.set(s.sizes, {4, 0, 4});
  run.run(0);
  for (const int op : {0, 1}) expect_subsets_agree(run, op, 0);
}

TEST(GroupedGemm, CostIsByTheRowsHoweverTheyAreSpread) {
  const Example s(DType::bf16, 16, 4, 8, 32, true);
  EXPECT_EQ(cost_of(s.program, s.program.op(0)).flop, 2.0 * 16 * 8 * 32);
  EXPECT_EQ(cost_of(s.program, s.program.op(0)).bytes, 2.0 * (16 * 8 + 4 * 8 * 32 + 16 * 32) + 4 * 4);
}

TEST(GroupedGemm, WhatDoesNotFitIsRefusedByName) {
  Program p;
  const ValueId a = source(p, "a", DType::f32, {4, 2}), b = source(p, "b", DType::f32, {3, 2, 5}),
                sizes = source(p, "sizes", DType::i32, {3}), few = source(p, "few", DType::i32, {2});
  const auto refused = [&](bool transpose_b, ValueId of) {
    return program_error([&] { (void)grouped_gemm(p, {transpose_b}, f32_math, "c", a, b, of); });
  };
  EXPECT_NE(refused(true, sizes).find("'b' has shape [3, 2, 5]; expected [3, 2, 2]"), std::string::npos);
  EXPECT_NE(refused(false, few).find("expected [2, 2, 5]"), std::string::npos);
  EXPECT_NE(refused(false, a).find("'a'"), std::string::npos);
}

}  // namespace grouped_gemm_test
}  // namespace gpubench::testing
