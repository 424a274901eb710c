// Cross-entropy on the CUDA backend's kernels, against the textbook: few and many classes, odd ones, in place or not.
#include "reference/ops/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/ops/tensor_checks.h"
#include "tests/reference/cross_entropy_programs.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench {
namespace cross_entropy_test {

using testing::EmulatedRun;
using testing::indices;
using testing::ProgramRun;
using testing::run_in_every_order;

Math math_of(DType dtype) {
  Math math;
  if (dtype == DType::f64) math.accumulate = DType::f64;
  return math;
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

struct Classes {
  std::int64_t rows, classes;
};
// Warps take up to 1024 classes; rows of an odd number begin at odd addresses.
const std::vector<Classes> class_sizes = {{1, 1}, {3, 7}, {9, 1000}, {5, 1023}, {3, 5001}, {2, 16384}};

TEST(CudaCrossEntropyForward, OddShapesAndWideLogitsLieWithinTheirBounds) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [rows, classes] : class_sizes) {
      for (const double scale : {0.5, 30.0}) {
        Logits l = logits_of(dtype, rows, classes);
        (void)cross_entropy_forward(l.program, math_of(dtype), "op", l.logits, l.labels);
        const auto fill = [&, rows = rows, classes = classes](ProgramRun& run) {
          run.set_random(l.logits, 1, scale);
          run.set(l.labels, indices(rows, classes, 2));
        };

        EXPECT_EQ(run_in_every_order(l.program, fill), "")
            << name(dtype) << ", " << rows << " x " << classes << ", scale " << scale;
      }
    }
  }
}

// Without subtracting the maximum, exp(1000) overflows. Two equal classes: lse = 1000 + ln 2, loss = ln 2.
TEST(CudaCrossEntropyForward, LogitsOfAThousandDoNotOverflow) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  Logits l = logits_of(DType::f32, 1, 2);
  const CrossEntropyForward out = cross_entropy_forward(l.program, Math{}, "op", l.logits, l.labels);
  ProgramRun run(*backend, l.program);
  run.set(l.logits, std::vector<double>{1000.0, 1000.0});
  run.set(l.labels, std::vector<double>{1.0});

  run.run();

  EXPECT_NEAR(run.get(out.lse)[0], 1000.693147, 1e-4);
  EXPECT_NEAR(run.get(out.loss)[0], 0.693147, 1e-6);
}

// A masked class has p = 0; the others: lse = ln(e^1 + e^2) = 2 + ln(1 + 1/e) = 2.313262.
TEST(CudaCrossEntropyForward, MaskedClassesCountNothing) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  for (const std::int64_t classes : {3, 2000}) {
    Logits l = logits_of(DType::f32, 1, classes);
    const CrossEntropyForward out = cross_entropy_forward(l.program, Math{}, "op", l.logits, l.labels);
    ProgramRun run(*backend, l.program);
    std::vector<double> values(static_cast<std::size_t>(classes), -INFINITY);
    values[0] = 1.0;
    values[static_cast<std::size_t>(classes) - 1] = 2.0;
    run.set(l.logits, values);
    run.set(l.labels, std::vector<double>{0.0});

    run.run();

    EXPECT_NEAR(run.get(out.lse)[0], 2.313262, 1e-5);
  }
}

TEST(CudaCrossEntropyForward, NaNInARowReachesTheLoss) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  for (const std::int64_t classes : {300, 3000}) {
    Logits l = logits_of(DType::bf16, 4, classes);
    const CrossEntropyForward out = cross_entropy_forward(l.program, Math{}, "op", l.logits, l.labels);
    ProgramRun run(*backend, l.program);
    run.set_random(l.logits, 1);
    std::vector<double> values = run.get(l.logits);
    values[2 * static_cast<std::size_t>(classes) + 17] = std::nan("");
    run.set(l.logits, values);
    run.set(l.labels, indices(4, classes, 2));

    run.run();

    EXPECT_TRUE(std::isnan(run.get(out.loss)[0]));
    for (std::size_t row = 0; row < 4; ++row) EXPECT_EQ(std::isnan(run.get(out.lse)[row]), row == 2);
  }
}

TEST(CudaCrossEntropyBackward, OddShapesInPlaceOrNotLieWithinTheirBounds) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const bool in_place : {false, true}) {
      for (const auto& [rows, classes] : class_sizes) {
        Logits l = logits_of(dtype, rows, classes);
        const ValueId lse = l.program.add(tensor("lse", statistic_type(dtype), Shape{rows}, Role::statistic));
        (void)cross_entropy_backward(l.program, math_of(dtype), "op", l.logits, l.labels, lse, in_place);
        const auto fill = [&, rows = rows, classes = classes](ProgramRun& run) {
          run.set_random(l.logits, 1, 3.0);
          run.set(l.labels, indices(rows, classes, 2));
          const std::vector<double> logits = run.get(l.logits);
          std::vector<double> sums(static_cast<std::size_t>(rows));
          for (std::size_t i = 0; i < logits.size(); ++i)
            sums[i / static_cast<std::size_t>(classes)] += std::exp(logits[i]);
          for (double& sum : sums) sum = std::log(sum);
          run.set(lse, sums);
        };

        EXPECT_EQ(run_in_every_order(l.program, fill, EmulatedRun{classes > 10000 ? 11 : 1}), "")
            << name(dtype) << ", " << rows << " x " << classes << ", in place " << in_place;
      }
    }
  }
}

// Where logits and their gradient begin at different distances from a boundary of 16 bytes, no pack fits both.
TEST(CudaCrossEntropyBackward, PartsThatNoPackFitsLieWithinTheirBounds) {
  Program program;
  const TensorSpec whole = tensor("whole", DType::bf16, Shape{4, 300}, Role::activation);
  TensorSpec part = whole;
  part.name = "logits";
  part.shape = Shape{4, 201};
  const ValueId source = program.add(whole);
  const ValueId logits = program.part(source, part, 5);
  const ValueId labels = program.add(tensor("labels", DType::i32, Shape{4}, Role::input));
  const ValueId lse = program.add(tensor("lse", DType::f32, Shape{4}, Role::statistic));
  (void)cross_entropy_backward(program, Math{}, "op", logits, labels, lse);
  const auto fill = [&](ProgramRun& run) {
    run.set_random(source, 1);
    run.set(labels, std::vector<double>{0, 200, 3, 77});
    run.set(lse, std::vector<double>(4, 6.0));
  };

  EXPECT_EQ(run_in_every_order(program, fill), "");
}

// Blocks hold up to 24576 classes of 16 bits, or half as many of 32; longer rows are read twice.
TEST(CudaCrossEntropyForwardBackward, OddShapesInPlaceOrNotLieWithinTheirBounds) {
  std::vector<Classes> sizes = class_sizes;
  sizes.insert(sizes.end(), {{2, 16391}, {2, 33001}});
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const bool in_place : {false, true}) {
      for (const auto& [rows, classes] : sizes) {
        if (classes > 30000 && dtype == DType::f16) continue;  // long rows cost emulated threads
        Logits l = logits_of(dtype, rows, classes);
        (void)cross_entropy_forward_backward(l.program, math_of(dtype), "op", l.logits, l.labels, in_place);
        const auto fill = [&, rows = rows, classes = classes](ProgramRun& run) {
          run.set_random(l.logits, 1, classes % 2 == 0 ? 30.0 : 3.0);
          run.set(l.labels, indices(rows, classes, 2));
        };

        EXPECT_EQ(run_in_every_order(l.program, fill), "")
            << name(dtype) << ", " << rows << " x " << classes << ", in place " << in_place;
      }
    }
  }
}

// Labels before the first boundary of 16 bytes, in the first and the last pack, and behind it: each has another owner.
TEST(CudaCrossEntropyForwardBackward, LabelsAtTheEndsOfOddRowsLieWithinTheirBounds) {
  for (const std::int64_t classes : {1021, 3005, 32771}) {
    Logits l = logits_of(DType::bf16, 6, classes);
    (void)cross_entropy_forward_backward(l.program, Math{}, "op", l.logits, l.labels, true);
    const auto last = static_cast<double>(classes) - 1.0;
    const auto fill = [&](ProgramRun& run) {
      run.set_random(l.logits, 1, 3.0);
      run.set(l.labels, std::vector<double>{0, last, 1, last - 1, 8, last - 8});
    };

    EXPECT_EQ(run_in_every_order(l.program, fill, EmulatedRun{classes > 10000 ? 3 : 1}), "") << classes;
  }
}

TEST(CudaCrossEntropyForwardBackward, PartsThatNoPackFitsLieWithinTheirBounds) {
  for (const std::int64_t classes : {201, 1501}) {
    Program program;
    const TensorSpec whole = tensor("whole", DType::bf16, Shape{4, 1600}, Role::activation);
    TensorSpec part = whole;
    part.name = "logits";
    part.shape = Shape{4, classes};
    const ValueId source = program.add(whole);
    const ValueId logits = program.part(source, part, 5);
    const ValueId labels = program.add(tensor("labels", DType::i32, Shape{4}, Role::input));
    (void)cross_entropy_forward_backward(program, Math{}, "op", logits, labels);
    const auto fill = [&](ProgramRun& run) {
      run.set_random(source, 1);
      run.set(labels, std::vector<double>{0, 200, 3, 77});
    };

    EXPECT_EQ(run_in_every_order(program, fill), "") << classes;
  }
}

// p = 1/4, 3/4 of two classes ln 3 apart; all others are masked, and get no gradient at all.
TEST(CudaCrossEntropyForwardBackward, MaskedClassesCountNothingAndGetNoGradient) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  for (const std::int64_t classes : {3, 2000, 17000}) {
    Logits l = logits_of(DType::f32, 1, classes);
    const auto out = cross_entropy_forward_backward(l.program, Math{}, "op", l.logits, l.labels, true);
    ProgramRun run(*backend, l.program);
    std::vector<double> values(static_cast<std::size_t>(classes), -INFINITY);
    values.front() = 1000.0;
    values.back() = 1000.0 + std::log(3.0);
    run.set(l.logits, values);
    run.set(l.labels, std::vector<double>{0.0});

    run.run();

    const std::vector<double> gradient = run.get(out.dlogits);
    EXPECT_NEAR(gradient.front(), -0.75, 1e-4);  // a logit near 1000 is rounded by 3e-5
    EXPECT_NEAR(gradient.back(), 0.75, 1e-4);
    for (std::size_t i = 1; i + 1 < gradient.size(); ++i) ASSERT_EQ(gradient[i], 0.0) << i;
    EXPECT_NEAR(run.get(out.loss)[0], 1.386294, 1e-4);  // ln 4
  }
}

TEST(CudaCrossEntropyForwardBackward, NaNAndLabelsOutsideTheClassesSpoilTheirRowsAndTheLoss) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  for (const std::int64_t classes : {300, 3000, 33000}) {
    Logits l = logits_of(DType::bf16, 4, classes);
    const auto out = cross_entropy_forward_backward(l.program, Math{}, "op", l.logits, l.labels);
    ProgramRun run(*backend, l.program);
    run.set_random(l.logits, 1);
    std::vector<double> values = run.get(l.logits);
    values[2 * static_cast<std::size_t>(classes) + 17] = std::nan("");
    run.set(l.logits, values);
    run.set(l.labels, std::vector<double>{0.0, static_cast<double>(classes), 2.0, 3.0});

    run.run();

    EXPECT_TRUE(std::isnan(run.get(out.loss)[0]));
    for (std::size_t row = 0; row < 4; ++row) EXPECT_EQ(std::isnan(run.get(out.lse)[row]), row == 2) << row;
    const std::vector<double> gradient = run.get(out.dlogits);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const std::size_t row = i / static_cast<std::size_t>(classes);
      ASSERT_EQ(std::isnan(gradient[i]), row == 1 || row == 2) << i;
    }
  }
}

TEST(CudaCrossEntropyTerms, EveryTermOfTheLossLiesWithinItsBoundBothWays) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [rows, classes] : {Classes{3, 7}, Classes{9, 1000}, Classes{4, 5001}}) {
      for (const testing::CrossEntropyProgram& p : testing::cross_entropy_programs(dtype, rows, classes)) {
        EXPECT_EQ(run_in_every_order(p.program, [&](ProgramRun& run) { fill(run, p); }), "")
            << name(dtype) << ", " << rows << " x " << classes << ", " << p.what;
      }
    }
  }
}

TEST(CudaCountLabels, CountsThoseThatDo) {
  for (const std::int64_t rows : {1, 2, 77, 5000}) {
    for (const int parts : {1, 3}) {
      const testing::CountedLabels counted(rows, parts);
      EXPECT_EQ(run_in_every_order(counted.program, [&](ProgramRun& run) { counted.fill(run); }), "")
          << rows << " in " << parts;
    }
  }
}

// Rows that no block holds are read a second time.
TEST(CudaCrossEntropyTerms, LongRowsLieWithinTheirBounds) {
  for (const testing::CrossEntropyProgram& p : testing::cross_entropy_programs(DType::bf16, 2, 33001)) {
    if (!p.what.starts_with("both")) continue;
    EXPECT_EQ(run_in_every_order(p.program, [&](ProgramRun& run) { fill(run, p); }), "") << p.what;
  }
}

TEST(CudaCrossEntropyTerms, WhereEveryRowIsIgnoredTheLossIsNaNAndNothingHasAGradient) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  Logits l = logits_of(DType::f32, 2, 300);
  const auto out =
      cross_entropy_forward_backward(l.program, Math{}, "op", l.logits, l.labels, false, {.ignores = true});
  ProgramRun run(*backend, l.program);
  run.set_random(l.logits, 1);
  run.set(l.labels, std::vector<double>{-100, -100});

  run.run();

  EXPECT_TRUE(std::isnan(run.get(out.loss)[0]));
  EXPECT_EQ(run.get(out.dlogits), std::vector<double>(600, 0.0));
}

}  // namespace cross_entropy_test
}  // namespace gpubench
