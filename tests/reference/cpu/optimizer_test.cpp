// gradient norm, clip and AdamW on the CPU, against the textbook: many tensors of odd sizes, tiny gradients, first
// steps.
#include "reference/ops/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/cpu/cpu_backend.h"
#include "reference/cpu/parallel.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/optimizer_programs.h"

namespace gpubench {
namespace optimizer_test {

using testing::add_gradients;
using testing::ProgramRun;
using testing::run_and_judge;
using testing::set_state;
using testing::shared_backend;
using testing::Training;
using testing::training;

const std::vector<std::int64_t> odd_sizes = {1, 7, 1023, 20000, 64, 9001, 3};

TEST(TensorList, EveryCutVisitsEachElementOnce) {
  cpu::TensorList list;
  for (const std::int64_t size : {5, 0, 64, 200, 1}) list.add(size);
  for (std::int64_t cut = 0; cut <= list.length(); cut += cpu::TensorList::alignment) {
    std::vector<std::vector<int>> visits = {
        std::vector<int>(5), {}, std::vector<int>(64), std::vector<int>(200), std::vector<int>(1)};
    const auto mark = [&](std::size_t tensor, std::int64_t first, std::int64_t count) {
      for (std::int64_t i = first; i < first + count; ++i) ++visits[tensor].at(static_cast<std::size_t>(i));
    };
    list.visit(0, cut, mark);
    list.visit(cut, list.length(), mark);
    for (const std::vector<int>& tensor : visits) {
      for (const int count : tensor) ASSERT_EQ(count, 1) << "cut at " << cut;
    }
  }
}

TEST(GradientNorm, ManyTensorsLieWithinTheBound) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const int threads : {1, 3}) {
      const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
      Program program;
      const std::vector<ValueId> ids = add_gradients(program, odd_sizes, {dtype});
      (void)gradient_norm(program, Math{}, "op", ids);
      ProgramRun run(*backend, program);
      for (std::size_t i = 0; i < ids.size(); ++i) run.set_random(ids[i], i, 0.01);

      EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", threads " << threads;
    }
  }
}

// 3-4-5 triangles whose squares leave the range of f32 at either end.
TEST(GradientNorm, NeitherOverflowsNorUnderflows) {
  for (const double scale : {1e30, 1e-30}) {
    Program program;
    const ValueId g = program.add(tensor("g", DType::f32, Shape{2}, Role::gradient));
    const ValueId norm = gradient_norm(program, Math{}, "op", std::vector{g});
    ProgramRun run(shared_backend(), program);
    run.set(g, std::vector<double>{3 * scale, 4 * scale});

    run.run();

    EXPECT_NEAR(run.get(norm)[0] / scale, 5.0, 1e-6);
  }
}

TEST(Clip, ScalesAboveTheLimitAndOnlyThere) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const double norm_value : {0.0, 0.5, 1.0, 3.7}) {
      Program program;
      const ValueId norm = program.add(tensor("norm", DType::f32, Shape{1}, Role::scalar));
      const std::vector<ValueId> ids = add_gradients(program, odd_sizes, {dtype});
      (void)clip(program, Clip{1.0}, Math{}, "op", norm, ids);
      ProgramRun run(shared_backend(), program);
      run.set(norm, std::vector<double>{norm_value});
      for (std::size_t i = 0; i < ids.size(); ++i) run.set_random(ids[i], i, 0.01);

      EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", norm " << norm_value;
    }
  }
}

TEST(Clip, ANaNNormReachesEveryGradient) {
  Program program;
  const ValueId norm = program.add(tensor("norm", DType::f32, Shape{1}, Role::scalar));
  const ValueId g = program.add(tensor("g", DType::f32, Shape{100}, Role::gradient));
  const std::vector<ValueId> out = clip(program, Clip{1.0}, Math{}, "op", norm, std::vector{g});
  ProgramRun run(shared_backend(), program);
  run.set(norm, std::vector<double>{std::nan("")});
  run.set_random(g, 1);

  run.run();

  for (const double value : run.get(out[0])) EXPECT_TRUE(std::isnan(value));
}

TEST(AdamW, ManyTensorsWithAndWithoutCopiesLieWithinTheirBounds) {
  for (const bool copies : {false, true}) {
    for (const DType gradient_dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const int step : {1, 2, 1000}) {
        for (const int threads : {1, 3}) {
          AdamW hyper;
          hyper.copies = copies;
          const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
          Training t = training(hyper, odd_sizes, {gradient_dtype}, {DType::bf16});
          ProgramRun run(*backend, t.program);
          set_state(run, t, step);

          EXPECT_EQ(run_and_judge(run), "") << "copies " << copies << ", " << name(gradient_dtype) << ", step " << step;
        }
      }
    }
  }
}

TEST(ClipAdamW, ManyTensorsWithAndWithoutCopiesLieWithinTheirBounds) {
  for (const bool copies : {false, true}) {
    for (const DType gradient_dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const double norm : {0.5, 3.7}) {
        AdamW hyper;
        hyper.copies = copies;
        Training t = training(hyper, odd_sizes, {gradient_dtype}, {DType::bf16}, DType::f32, DType::f32, 1.0);
        ProgramRun run(shared_backend(), t.program);
        set_state(run, t, 2, norm);

        EXPECT_EQ(run_and_judge(run), "") << "copies " << copies << ", " << name(gradient_dtype) << ", norm " << norm;
      }
    }
  }
}

TEST(ClipAdamW, ANaNNormReachesEveryWeight) {
  Training t = training(AdamW{}, {100}, {DType::f32}, {DType::bf16}, DType::f32, DType::f32, 1.0);
  ProgramRun run(shared_backend(), t.program);
  set_state(run, t, 1, std::nan(""));

  run.run();

  for (const double value : run.get(t.tensors[0].weight)) EXPECT_TRUE(std::isnan(value));
}

// The copies of 10 million weights are 20 MB, which is stored around the caches.
TEST(AdamW, ALargeTensorWithACopyLiesWithinItsBound) {
  AdamW hyper;
  hyper.copies = true;
  Training t = training(hyper, {10'000'019}, {DType::bf16}, {DType::bf16});
  ProgramRun run(shared_backend(), t.program);
  set_state(run, t, 3);

  EXPECT_EQ(run_and_judge(run, 997), "");
}

TEST(Sgd, ManyTensorsOfEveryKindLieWithinTheirBounds) {
  for (const bool extras : {false, true}) {
    for (const DType gradient_dtype : {DType::f32, DType::bf16, DType::f16}) {
      const Sgd hyper{.weight_decay = extras ? 0.0 : 1e-4, .nesterov = extras, .copies = extras};
      const testing::SgdTraining t = testing::sgd_training(hyper, odd_sizes, {gradient_dtype}, {DType::bf16});
      ProgramRun run(shared_backend(), t.program);
      set_state(run, t);

      EXPECT_EQ(run_and_judge(run), "") << "Nesterov and copies " << extras << ", " << name(gradient_dtype);
    }
  }
}

TEST(Lion, ManyTensorsOfEveryKindLieWithinTheirBounds) {
  for (const bool copies : {false, true}) {
    for (const DType gradient_dtype : {DType::f32, DType::bf16, DType::f16}) {
      const Lion hyper{.weight_decay = copies ? 0.0 : 0.1, .copies = copies};
      const testing::SgdTraining t = testing::sgd_training(hyper, odd_sizes, {gradient_dtype}, {DType::bf16});
      ProgramRun run(shared_backend(), t.program);
      set_state(run, t);

      EXPECT_EQ(run_and_judge(run), "") << "copies " << copies << ", " << name(gradient_dtype);
    }
  }
}

TEST(Adam, ADecayWithinTheGradientLiesWithinItsBounds) {
  for (const std::optional<double> limit : {std::optional<double>{}, {1.0}}) {
    const Training t = training({.l2 = true}, odd_sizes, {DType::f32}, {DType::bf16}, DType::f32, DType::f32, limit);
    ProgramRun run(shared_backend(), t.program);
    set_state(run, t, 2);

    EXPECT_EQ(run_and_judge(run), "") << "clips " << limit.has_value();
  }
}

// Tracker 1: the scale stays; 2: it grows. An infinite or NaN gradient: nothing changes but the scale, which halves.
TEST(LossScaling, AStepAndASkippedOneLieWithinTheirBounds) {
  for (const int threads : {1, 3}) {
    const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
    const testing::ScaledTraining t = testing::scaled_training(odd_sizes, {DType::f32, DType::bf16});
    for (const auto& [bad, tracker] :
         {std::pair<std::optional<double>, double>{{}, 1}, {{}, 2}, {-INFINITY, 2}, {NAN, 1}}) {
      ProgramRun run(*backend, t.program);
      set_state(run, t, tracker, bad);
      const std::vector<double> w = run.get(t.sgd[0].weight), v = run.get(t.adamw[0].v);

      EXPECT_EQ(run_and_judge(run), "") << "tracker " << tracker << ", threads " << threads;

      EXPECT_EQ(run.get(t.sgd[0].weight) == w, bad.has_value());
      EXPECT_EQ(run.get(t.adamw[0].v) == v, bad.has_value());
      EXPECT_EQ(run.get(t.scale)[0], bad ? 512 : tracker == 2 ? 2048 : 1024);
      EXPECT_EQ(run.get(t.tracker)[0], !bad && tracker == 1 ? 2 : 0);
    }
  }
}

// First step from zero moments: m' / bc1 = g and v' / bc2 = g^2, so w' = w - lr (sign(g) + weight_decay w).
TEST(AdamW, TheFirstStepMovesByTheLearningRate) {
  Training t = training(AdamW{}, {2}, {DType::f32}, {DType::bf16});
  ProgramRun run(shared_backend(), t.program);
  run.set(t.lr, std::vector<double>{0.5});
  run.set(t.step, std::vector<double>{1});
  run.set(t.tensors[0].weight, std::vector<double>{1.0, 1.0});
  run.set(t.tensors[0].gradient, std::vector<double>{4.0, -4.0});
  run.set(t.tensors[0].m, std::vector<double>{0.0, 0.0});
  run.set(t.tensors[0].v, std::vector<double>{0.0, 0.0});

  run.run();

  const std::vector<double> w = run.get(t.tensors[0].weight);
  EXPECT_NEAR(w[0], 1.0 - 0.5 * (1.0 + 0.1), 1e-6);
  EXPECT_NEAR(w[1], 1.0 - 0.5 * (-1.0 + 0.1), 1e-6);
}

// The step and the learning rate are tensors: a bound launch reads them anew.
TEST(AdamW, AChangedLearningRateCountsWithoutBindingAgain) {
  Training t = training(AdamW{}, {5}, {DType::f32}, {DType::bf16});
  ProgramRun run(shared_backend(), t.program);
  set_state(run, t, 1);
  run.run();
  const std::vector<double> after_one = run.get(t.tensors[0].weight);

  run.set(t.lr, std::vector<double>{0.0});
  run.run_again();

  EXPECT_EQ(run.get(t.tensors[0].weight), after_one);
}

}  // namespace optimizer_test
}  // namespace gpubench
