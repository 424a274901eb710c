// column_sum, embedding and cross-entropy on the CPU, against the textbook: sums over rows, over occurrences, over
// classes.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "reference/cpu/cpu_backend.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/indices.h"

namespace gpubench {
namespace reductions_test {

using testing::indices;
using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

TEST(ColumnSum, OddShapesLieWithinTheirBounds) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const auto& [rows, n] : {std::pair{1, 1}, {7, 1}, {3, 7}, {1023, 65}, {4099, 768}, {6, 20001}}) {
      for (const int threads : {1, 3}) {
        const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
        Program program;
        const ValueId x = program.add(tensor("x", dtype, Shape{rows, n}, Role::gradient));
        const ValueId wide = program.reserve(tensor("y", DType::f32, Shape{n}, Role::gradient));
        (void)column_sum(program, Math{}, "op", x, wide);
        ProgramRun run(*backend, program);
        run.set_random(x, 1);

        EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", " << rows << " x " << n << ", threads " << threads;
      }
    }
  }
}

TEST(ColumnSum, OfSharesReadsAndWritesPartsOfWiderRows) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const auto& [sums, rows, n] : {std::tuple{1, 9, 5}, {7, 128, 64}, {300, 3, 17}, {2, 1001, 33}}) {
      Program program;
      TensorSpec part = tensor("part", dtype, Shape{sums, rows, n}, Role::gradient);
      part.layout.strides = {rows * 80, 80, 1};
      const ValueId whole = program.add(tensor("whole", dtype, Shape{sums, rows, 80}, Role::gradient));
      TensorSpec sum = tensor("sum", dtype, Shape{sums, n}, Role::gradient);
      sum.layout.strides = {90, 1};
      const ValueId y = program.reserve(tensor("y", dtype, Shape{sums, 90}, Role::gradient));
      (void)column_sum(program, Math{}, "op", program.part(whole, part, 11), program.part(y, sum, 3));
      ProgramRun run(shared_backend(), program);
      run.set_random(whole, 1);

      EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", " << sums << " x " << rows << " x " << n;
    }
  }
}

TEST(ColumnSum, OneSignedColumnsAndBf16ResultsLieWithinTheirBounds) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::bf16, Shape{30011, 17}, Role::gradient));
  (void)column_sum(program, Math{}, "op", x);
  ProgramRun run(shared_backend(), program);
  run.set_random(x, 1);
  std::vector<double> values = run.get(x);
  for (double& value : values) value = 1.0 + std::fabs(value);
  run.set(x, values);

  EXPECT_EQ(run_and_judge(run), "");
}

TEST(ColumnSum, ReadsAPartOfWiderRows) {
  Program program;
  const TensorSpec whole = tensor("whole", DType::bf16, Shape{50, 30}, Role::gradient);
  TensorSpec part = whole;
  part.name = "x";
  part.shape = Shape{50, 11};
  const ValueId source = program.add(whole);
  const ValueId x = program.part(source, part, 7);
  (void)column_sum(program, Math{}, "op", x);
  ProgramRun run(shared_backend(), program);
  run.set_random(source, 1);

  EXPECT_EQ(run_and_judge(run), "");
}

TEST(EmbeddingForward, CopiesRowsBitForBit) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Program program;
    const ValueId table = program.add(tensor("table", dtype, Shape{101, 77}, Role::parameter));
    const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{333}, Role::input));
    (void)embedding_forward(program, "op", table, tokens);
    ProgramRun run(shared_backend(), program);
    run.set_random(table, 1);
    run.set(tokens, indices(333, 101, 2));

    EXPECT_EQ(run_and_judge(run), "") << name(dtype);
  }
}

TEST(EmbeddingForward, OfTheRowsOfARankOthersTokensAre0) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Program program;
    const ValueId table = program.add(tensor("table", dtype, Shape{50, 77}, Role::parameter));
    const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{333}, Role::input));
    (void)embedding_forward(program, "op", table, tokens, {.first = 30, .vocabulary = 101});
    ProgramRun run(shared_backend(), program);
    run.set_random(table, 1);
    run.set(tokens, indices(333, 101, 2));

    EXPECT_EQ(run_and_judge(run), "") << name(dtype);
  }
}

TEST(EmbeddingBackward, OfTheRowsOfARankSumsTheirTokens) {
  Program program;
  const ValueId dy = program.add(tensor("dy", DType::bf16, Shape{333, 77}, Role::gradient));
  const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{333}, Role::input));
  (void)embedding_backward(program, Math{}, "op", dy, tokens, 50, {.first = 30, .vocabulary = 101});
  ProgramRun run(shared_backend(), program);
  run.set_random(dy, 1);
  run.set(tokens, indices(333, 101, 2));

  EXPECT_EQ(run_and_judge(run), "");
}

TEST(EmbeddingForward, ATokenOutsideTheTableGivesNaN) {
  Program program;
  const ValueId table = program.add(tensor("table", DType::bf16, Shape{4, 3}, Role::parameter));
  const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{3}, Role::input));
  const ValueId y = embedding_forward(program, "op", table, tokens);
  ProgramRun run(shared_backend(), program);
  run.set_random(table, 1);
  run.set(tokens, std::vector<double>{3, 4, -1});

  run.run();

  const std::vector<double> got = run.get(y);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i >= 3) << i;
}

// 500 tokens in a table of 211 rows: some rows occur many times, token 0 in every fifth place, some never (exactly 0).
TEST(EmbeddingBackward, SumsOccurrencesWithinBoundsAndLeavesOtherRowsZero) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const int threads : {1, 3}) {
      const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
      Program program;
      const ValueId dy = program.add(tensor("dy", dtype, Shape{500, 301}, Role::gradient));
      const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{500}, Role::input));
      const ValueId dtable = embedding_backward(program, Math{}, "op", dy, tokens, 211);
      ProgramRun run(*backend, program);
      run.set_random(dy, 1);
      std::vector<double> ids = indices(500, 180, 2);
      for (std::size_t i = 0; i < ids.size(); i += 5) ids[i] = 0;
      run.set(tokens, ids);

      EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", threads " << threads;

      const std::vector<double> got = run.get(dtable);
      for (std::size_t i = 180 * 301; i < got.size(); ++i) ASSERT_EQ(got[i], 0.0);
    }
  }
}

struct Logits {
  Program program;
  ValueId logits, labels;
};

Logits logits_of(DType dtype, std::int64_t rows, std::int64_t classes) {
  Logits result;
  result.logits = result.program.add(tensor("logits", dtype, Shape{rows, classes}, Role::activation));
  result.labels = result.program.add(tensor("labels", DType::i32, Shape{rows}, Role::input));
  return result;
}

TEST(CrossEntropyForward, OddShapesAndWideLogitsLieWithinTheirBounds) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const auto& [rows, classes] : {std::pair{1, 1}, {3, 7}, {33, 1023}, {5, 50257}}) {
      for (const double scale : {0.5, 30.0}) {
        Logits l = logits_of(dtype, rows, classes);
        (void)cross_entropy_forward(l.program, Math{}, "op", l.logits, l.labels);
        ProgramRun run(shared_backend(), l.program);
        run.set_random(l.logits, 1, scale);
        run.set(l.labels, indices(rows, classes, 2));

        EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", " << rows << " x " << classes << ", scale " << scale;
      }
    }
  }
}

// Without subtracting the maximum, exp(1000) overflows. Two equal classes: lse = 1000 + ln 2, loss = ln 2.
TEST(CrossEntropyForward, LogitsOfAThousandDoNotOverflow) {
  Logits l = logits_of(DType::f32, 1, 2);
  const CrossEntropyForward out = cross_entropy_forward(l.program, Math{}, "op", l.logits, l.labels);
  ProgramRun run(shared_backend(), l.program);
  run.set(l.logits, std::vector<double>{1000.0, 1000.0});
  run.set(l.labels, std::vector<double>{1.0});

  run.run();

  EXPECT_NEAR(run.get(out.lse)[0], 1000.693147, 1e-4);
  EXPECT_NEAR(run.get(out.loss)[0], 0.693147, 1e-6);
}

TEST(CrossEntropyForward, NaNInARowReachesTheLoss) {
  Logits l = logits_of(DType::bf16, 4, 300);
  const CrossEntropyForward out = cross_entropy_forward(l.program, Math{}, "op", l.logits, l.labels);
  ProgramRun run(shared_backend(), l.program);
  run.set_random(l.logits, 1);
  std::vector<double> values = run.get(l.logits);
  values[2 * 300 + 17] = std::nan("");
  run.set(l.logits, values);
  run.set(l.labels, indices(4, 300, 2));

  run.run();

  EXPECT_TRUE(std::isnan(run.get(out.loss)[0]));
  for (std::size_t row = 0; row < 4; ++row) EXPECT_EQ(std::isnan(run.get(out.lse)[row]), row == 2);
}

TEST(CrossEntropyBackward, OddShapesInPlaceOrNotLieWithinTheirBounds) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const bool in_place : {false, true}) {
      for (const auto& [rows, classes] : {std::pair{1, 1}, {3, 7}, {33, 1023}, {5, 50257}}) {
        Logits l = logits_of(dtype, rows, classes);
        const CrossEntropyForward forward = cross_entropy_forward(l.program, Math{}, "op", l.logits, l.labels);
        ProgramRun forward_run(shared_backend(), l.program);
        forward_run.set_random(l.logits, 1, 3.0);
        forward_run.set(l.labels, indices(rows, classes, 2));
        forward_run.run();

        Logits b = logits_of(dtype, rows, classes);
        const ValueId lse = b.program.add(tensor("lse", DType::f32, Shape{rows}, Role::statistic));
        (void)cross_entropy_backward(b.program, Math{}, "op", b.logits, b.labels, lse, in_place);
        ProgramRun run(shared_backend(), b.program);
        run.set_random(b.logits, 1, 3.0);
        run.set(b.labels, indices(rows, classes, 2));
        run.set(lse, forward_run.get(forward.lse));

        EXPECT_EQ(run_and_judge(run), "")
            << name(dtype) << ", " << rows << " x " << classes << ", in place " << in_place;
      }
    }
  }
}

}  // namespace reductions_test
}  // namespace gpubench
