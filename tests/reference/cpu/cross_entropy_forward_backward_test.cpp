// Cross-entropy and its gradient in one op on the CPU, against the textbook and against the two ops.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/cpu/cpu_backend.h"
#include "reference/ops/cross_entropy.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/cross_entropy_programs.h"

namespace gpubench {
namespace cross_entropy_forward_backward_test {

using testing::indices;
using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

struct Experiment {
  Program program;
  ValueId logits, labels;
  CrossEntropyForwardBackward out;

  Experiment(DType dtype, std::int64_t rows, std::int64_t classes, bool in_place = false) {
    logits = program.add(tensor("logits", dtype, Shape{rows, classes}, Role::activation));
    labels = program.add(tensor("labels", DType::i32, Shape{rows}, Role::input));
    out = cross_entropy_forward_backward(program, Math{}, "op", logits, labels, in_place);
  }
};

TEST(CrossEntropyForwardBackward, OddShapesInPlaceOrNotLieWithinTheirBounds) {
  for (const int threads : {1, 3}) {
    const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const bool in_place : {false, true}) {
        for (const auto& [rows, classes] : {std::pair{1, 1}, {3, 7}, {33, 1023}, {5, 50257}}) {
          for (const double scale : {0.5, 30.0}) {
            Experiment e(dtype, rows, classes, in_place);
            ProgramRun run(*backend, e.program);
            run.set_random(e.logits, 1, scale);
            run.set(e.labels, indices(rows, classes, 2));

            EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", " << rows << " x " << classes << ", scale " << scale
                                              << ", in place " << in_place << ", threads " << threads;
          }
        }
      }
    }
  }
}

// Gradients of more than half of the caches are stored around them.
TEST(CrossEntropyForwardBackward, LargeGradientsLieWithinTheirBounds) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Experiment e(dtype, 211, 50257);
    ProgramRun run(shared_backend(), e.program);
    run.set_random(e.logits, 1, 3.0);
    run.set(e.labels, indices(211, 50257, 2));

    EXPECT_EQ(run_and_judge(run, 53), "") << name(dtype);
  }
}

TEST(CrossEntropyForwardBackward, RowsOfAPartLieWithinTheirBounds) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Program program;
    const TensorSpec whole = tensor("whole", dtype, Shape{6, 700}, Role::activation);
    TensorSpec part = whole;
    part.name = "logits";
    part.shape = Shape{6, 601};
    const ValueId source = program.add(whole);
    const ValueId logits = program.part(source, part, 5);
    const ValueId labels = program.add(tensor("labels", DType::i32, Shape{6}, Role::input));
    (void)cross_entropy_forward_backward(program, Math{}, "op", logits, labels);
    ProgramRun run(shared_backend(), program);
    run.set_random(source, 1);
    run.set(labels, indices(6, 601, 2));

    EXPECT_EQ(run_and_judge(run), "") << name(dtype);
  }
}

// Row 0: two classes that are masked, and p = 1/4, 3/4 of the others, ln 3 apart; row 1: logits of a thousand, p = 1/2.
TEST(CrossEntropyForwardBackward, MaskedClassesGetNoGradientAndLargeLogitsDoNotOverflow) {
  for (const bool in_place : {false, true}) {
    Experiment e(DType::f32, 2, 4, in_place);
    ProgramRun run(shared_backend(), e.program);
    run.set(e.logits, std::vector<double>{-INFINITY, 0.0, -INFINITY, std::log(3.0), 1000.0, 0.0, 1000.0, -1000.0});
    run.set(e.labels, std::vector<double>{1.0, 2.0});

    run.run();

    const std::vector<double> want{0.0, -0.375, 0.0, 0.375, 0.25, 0.0, -0.25, 0.0};
    const std::vector<double> got = run.get(e.out.dlogits);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
    EXPECT_EQ(got[0], 0.0);
    EXPECT_NEAR(run.get(e.out.lse)[1], 1000.693147, 1e-4);
    EXPECT_NEAR(run.get(e.out.loss)[0], 0.5 * (2.0 * 0.693147 + 0.693147), 1e-6);
  }
}

TEST(CrossEntropyForwardBackward, NaNAndLabelsOutsideTheClassesSpoilTheirRowsAndTheLoss) {
  Experiment e(DType::bf16, 4, 300);
  ProgramRun run(shared_backend(), e.program);
  run.set_random(e.logits, 1);
  std::vector<double> values = run.get(e.logits);
  values[2 * 300 + 17] = std::nan("");
  run.set(e.logits, values);
  run.set(e.labels, std::vector<double>{0, 300, 2, 3});

  run.run();

  EXPECT_TRUE(std::isnan(run.get(e.out.loss)[0]));
  for (std::size_t row = 0; row < 4; ++row) EXPECT_EQ(std::isnan(run.get(e.out.lse)[row]), row == 2) << row;
  const std::vector<double> gradient = run.get(e.out.dlogits);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    ASSERT_EQ(std::isnan(gradient[i]), i / 300 == 1 || i / 300 == 2) << i;
  }
}

TEST(CrossEntropyTerms, EveryTermOfTheLossLiesWithinItsBoundBothWays) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& [rows, classes] : {std::pair{3, 7}, {33, 1023}, {5, 5001}}) {
      for (const testing::CrossEntropyProgram& p : testing::cross_entropy_programs(dtype, rows, classes)) {
        ProgramRun run(shared_backend(), p.program);
        fill(run, p);

        EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", " << rows << " x " << classes << ", " << p.what;
      }
    }
  }
}

TEST(CountLabels, CountsThoseThatDoOnTheCpu) {
  for (const std::int64_t rows : {1, 2, 77, 5000}) {
    for (const int parts : {1, 3}) {
      const testing::CountedLabels counted(rows, parts);
      ProgramRun run(shared_backend(), counted.program);
      counted.fill(run);
      EXPECT_EQ(run_and_judge(run), "") << rows << " in " << parts;
    }
  }
}

// Nothing to learn: a mean over no rows, and no gradient at all.
TEST(CrossEntropyTerms, WhereEveryRowIsIgnoredTheLossIsNaNAndNothingHasAGradient) {
  Program program;
  const ValueId logits = program.add(tensor("logits", DType::f32, Shape{2, 300}, Role::activation));
  const ValueId labels = program.add(tensor("labels", DType::i32, Shape{2}, Role::input));
  const auto out = cross_entropy_forward_backward(program, Math{}, "op", logits, labels, false, {.ignores = true});
  ProgramRun run(shared_backend(), program);
  run.set_random(logits, 1);
  run.set(labels, std::vector<double>{-100, -100});

  run.run();

  EXPECT_TRUE(std::isnan(run.get(out.loss)[0]));
  EXPECT_EQ(run.get(out.dlogits), std::vector<double>(600, 0.0));
}

TEST(CrossEntropyBackward, ALabelOutsideTheClassesSpoilsItsRow) {
  Program program;
  const ValueId logits = program.add(tensor("logits", DType::f32, Shape{2, 3}, Role::activation));
  const ValueId labels = program.add(tensor("labels", DType::i32, Shape{2}, Role::input));
  const ValueId lse = program.add(tensor("lse", DType::f32, Shape{2}, Role::statistic));
  const ValueId dlogits = cross_entropy_backward(program, Math{}, "op", logits, labels, lse);
  ProgramRun run(shared_backend(), program);
  run.set_random(logits, 1);
  run.set(labels, std::vector<double>{2, 3});
  run.set(lse, std::vector<double>{1, 1});

  run.run();

  const std::vector<double> gradient = run.get(dlogits);
  for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_EQ(std::isnan(gradient[i]), i >= 3) << i;
}

}  // namespace cross_entropy_forward_backward_test
}  // namespace gpubench
