// gradient norm, clip and AdamW on the CUDA backend's kernels, against the textbook: many tensors of odd sizes and
// mixed types, tiny gradients, first steps.
#include "reference/ops/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/cuda/kernels/optimizer.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/optimizer_programs.h"

namespace gpubench {
namespace optimizer_test {

using testing::add_gradients;
using testing::ProgramRun;
using testing::run_in_every_order;
using testing::set_state;
using testing::Training;
using testing::training;

// A chunk is 8192 elements; three multiprocessors' blocks take several turns.
const std::vector<std::int64_t> odd_sizes = {1, 7, 0, 1023, 20000, 64, 8192, 3};
const std::vector<DType> mixed_types = {DType::f32, DType::bf16, DType::f16};
const std::vector<DType> other_types = {DType::bf16, DType::f16, DType::f32};  // a copy is never of its gradient's type

TEST(CudaGradientNorm, ManyTensorsOfMixedTypesLieWithinTheBound) {
  Program program;
  const std::vector<ValueId> ids = add_gradients(program, odd_sizes, mixed_types);
  (void)gradient_norm(program, Math{}, "op", ids);
  const auto fill = [&](ProgramRun& run) {
    for (std::size_t i = 0; i < ids.size(); ++i) run.set_random(ids[i], i, 0.01);
  };

  EXPECT_EQ(run_in_every_order(program, fill), "");
}

TEST(CudaGradientNorm, OfF64IsAsExactAsF64) {
  Program program;
  const std::vector<ValueId> ids = add_gradients(program, odd_sizes, {DType::f64});
  (void)gradient_norm(program, Math{.accumulate = DType::f64}, "op", ids);
  ASSERT_EQ(program.spec(program.op(0).outputs[0]).dtype, DType::f64);
  const auto fill = [&](ProgramRun& run) {
    for (std::size_t i = 0; i < ids.size(); ++i) run.set_random(ids[i], i, 1e-60);
  };

  EXPECT_EQ(run_in_every_order(program, fill), "");
}

// 3-4-5 triangles whose squares leave the range of f32 at either end, apart and next to each other in one pack.
TEST(CudaGradientNorm, NeitherOverflowsNorUnderflows) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  for (const double scale : {1e30, 1e-30}) {
    for (const std::int64_t n : {2, 8}) {
      Program program;
      const ValueId g = program.add(tensor("g", DType::f32, Shape{n}, Role::gradient));
      const ValueId norm = gradient_norm(program, Math{}, "op", std::vector{g});
      ProgramRun run(*backend, program);
      std::vector<double> values(static_cast<std::size_t>(n), 0.0);
      values[0] = 3 * scale;
      values[1] = 4 * scale;
      run.set(g, values);

      run.run();

      EXPECT_NEAR(run.get(norm)[0] / scale, 5.0, 1e-6);
    }
  }
}

TEST(CudaClip, ScalesAboveTheLimitAndOnlyThere) {
  for (const double norm_value : {0.0, 1.0, 3.7}) {
    Program program;
    const ValueId norm = program.add(tensor("norm", DType::f32, Shape{1}, Role::scalar));
    const std::vector<ValueId> ids = add_gradients(program, odd_sizes, mixed_types);
    (void)clip(program, Clip{1.0}, Math{}, "op", norm, ids);
    const auto fill = [&](ProgramRun& run) {
      run.set(norm, std::vector<double>{norm_value});
      for (std::size_t i = 0; i < ids.size(); ++i) run.set_random(ids[i], i, 0.01);
    };

    EXPECT_EQ(run_in_every_order(program, fill), "") << "norm " << norm_value;
  }
}

TEST(CudaClip, ScalesF64AsExactlyAsF64) {
  for (const double norm_value : {1.0, 3.7}) {
    Program program;
    const ValueId norm = program.add(tensor("norm", DType::f64, Shape{1}, Role::scalar));
    const std::vector<ValueId> ids = add_gradients(program, odd_sizes, {DType::f64});
    (void)clip(program, Clip{1.0}, Math{.accumulate = DType::f64}, "op", norm, ids);
    const auto fill = [&](ProgramRun& run) {
      run.set(norm, std::vector<double>{norm_value});
      for (std::size_t i = 0; i < ids.size(); ++i) run.set_random(ids[i], i, 0.01);
    };

    EXPECT_EQ(run_in_every_order(program, fill), "") << "norm " << norm_value;
  }
}

TEST(CudaClip, ANaNNormReachesEveryGradient) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  Program program;
  const ValueId norm = program.add(tensor("norm", DType::f32, Shape{1}, Role::scalar));
  const ValueId g = program.add(tensor("g", DType::f32, Shape{100}, Role::gradient));
  const std::vector<ValueId> out = clip(program, Clip{1.0}, Math{}, "op", norm, std::vector{g});
  ProgramRun run(*backend, program);
  run.set(norm, std::vector<double>{std::nan("")});
  run.set_random(g, 1);

  run.run();

  for (const double value : run.get(out[0])) EXPECT_TRUE(std::isnan(value));
}

TEST(CudaAdamW, ManyTensorsWithAndWithoutCopiesLieWithinTheirBounds) {
  for (const bool copies : {false, true}) {
    for (const int step : {1, 2, 1000}) {
      AdamW hyper;
      hyper.copies = copies;
      const Training t = training(hyper, odd_sizes, mixed_types, other_types);

      EXPECT_EQ(run_in_every_order(t.program, [&](ProgramRun& run) { set_state(run, t, step); }), "")
          << "copies " << copies << ", step " << step;
    }
  }
}

TEST(CudaClipAdamW, ManyTensorsWithAndWithoutCopiesLieWithinTheirBounds) {
  for (const bool copies : {false, true}) {
    for (const double norm : {0.5, 3.7}) {
      AdamW hyper;
      hyper.copies = copies;
      const Training t = training(hyper, odd_sizes, mixed_types, other_types, DType::f32, DType::f32, 1.0);

      EXPECT_EQ(run_in_every_order(t.program, [&](ProgramRun& run) { set_state(run, t, 2, norm); }), "")
          << "copies " << copies << ", norm " << norm;
    }
  }
}

TEST(CudaClipAdamW, EverythingInF64IsAsExactAsF64) {
  const Training t = training(AdamW{}, odd_sizes, {DType::f64}, {DType::f64}, DType::f64, DType::f64, 1.0);

  EXPECT_EQ(run_in_every_order(t.program, [&](ProgramRun& run) { set_state(run, t, 3); }), "");
}

TEST(CudaAdamW, EverythingInF64IsAsExactAsF64) {
  for (const bool copies : {false, true}) {
    for (const DType lr : {DType::f32, DType::f64}) {
      AdamW hyper;
      hyper.copies = copies;
      const Training t = training(hyper, odd_sizes, {DType::f64}, {DType::f64}, DType::f64, lr);

      EXPECT_EQ(run_in_every_order(t.program, [&](ProgramRun& run) { set_state(run, t, 3); }), "")
          << "copies " << copies << ", learning rate " << name(lr);
    }
  }
}

TEST(CudaSgd, ManyTensorsOfEveryKindLieWithinTheirBounds) {
  for (const bool extras : {false, true}) {
    const Sgd hyper{.weight_decay = extras ? 0.0 : 1e-4, .nesterov = extras, .copies = extras};
    const testing::SgdTraining t = testing::sgd_training(hyper, odd_sizes, mixed_types, other_types);

    EXPECT_EQ(run_in_every_order(t.program, [&](ProgramRun& run) { set_state(run, t); }), "")
        << "Nesterov and copies " << extras;
  }
}

TEST(CudaSgd, EverythingInF64IsAsExactAsF64) {
  const Sgd hyper{.weight_decay = 1e-4, .nesterov = true, .copies = true};
  const testing::SgdTraining t = testing::sgd_training(hyper, odd_sizes, {DType::f64}, {DType::f64}, DType::f64);

  EXPECT_EQ(run_in_every_order(t.program, [&](ProgramRun& run) { set_state(run, t); }), "");
}

TEST(CudaLion, ManyTensorsOfEveryKindLieWithinTheirBounds) {
  for (const bool copies : {false, true}) {
    const Lion hyper{.weight_decay = copies ? 0.0 : 0.1, .copies = copies};
    const testing::SgdTraining t = testing::sgd_training(hyper, odd_sizes, mixed_types, other_types);

    EXPECT_EQ(run_in_every_order(t.program, [&](ProgramRun& run) { set_state(run, t); }), "") << "copies " << copies;
  }
}

TEST(CudaAdam, ADecayWithinTheGradientLiesWithinItsBounds) {
  for (const DType state : {DType::f32, DType::f64}) {
    const std::vector<DType> types = state == DType::f64 ? std::vector{state} : mixed_types;
    const Training t = training({.l2 = true}, odd_sizes, types, types, state, state);

    EXPECT_EQ(run_in_every_order(t.program, [&](ProgramRun& run) { set_state(run, t, 2); }), "") << name(state);
  }
}

TEST(CudaLossScaling, AStepAndASkippedOneLieWithinTheirBounds) {
  const testing::ScaledTraining t = testing::scaled_training(odd_sizes, mixed_types);
  for (const auto& [bad, tracker] :
       {std::pair<std::optional<double>, double>{{}, 1}, {{}, 2}, {-INFINITY, 2}, {NAN, 1}}) {
    EXPECT_EQ(run_in_every_order(t.program, [&, b = bad, s = tracker](ProgramRun& run) { set_state(run, t, s, b); }),
              "")
        << "tracker " << tracker << ", bad " << bad.value_or(0.0);
  }
}

TEST(CudaLossScaling, EverythingInF64IsAsExactAsF64) {
  const testing::ScaledTraining t = testing::scaled_training(odd_sizes, {DType::f64}, DType::f64);

  EXPECT_EQ(run_in_every_order(t.program, [&](ProgramRun& run) { set_state(run, t, 2); }), "");
}

// First step from zero moments: m' / bc1 = g and v' / bc2 = g^2, so w' = w - lr (sign(g) + weight_decay w).
TEST(CudaAdamW, TheFirstStepMovesByTheLearningRate) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  const Training t = training(AdamW{}, {2}, mixed_types, other_types);
  ProgramRun run(*backend, t.program);
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
TEST(CudaAdamW, AChangedLearningRateCountsWithoutBindingAgain) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  const Training t = training(AdamW{}, {5}, mixed_types, other_types);
  ProgramRun run(*backend, t.program);
  set_state(run, t, 1);
  run.run();
  const std::vector<double> after_one = run.get(t.tensors[0].weight);

  run.set(t.lr, std::vector<double>{0.0});
  run.run_again();

  EXPECT_EQ(run.get(t.tensors[0].weight), after_one);
}

}  // namespace optimizer_test
}  // namespace gpubench
