// Training in fp64 compared with explicit formulas; single steps compared with it; broken recipes must be rejected.
#include "harness/verify/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "harness/verify/learning.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/optimizer.h"
#include "tests/suites/workloads.h"

namespace gpubench {
namespace training_test {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint64_t seed = 7;
constexpr int batches = 3;

// One row of two classes whose logits are the weights, for explicit formulas.
struct TwoClasses {
  Program p;
  ValueId w, labels, m, v, step;

  explicit TwoClasses(DType type = DType::f32) {
    w = p.add(tensor("w", type, {1, 2}, Role::parameter, Fill::normal(1.0)));
    TensorSpec label = tensor("labels", DType::i32, {1}, Role::input, Fill::integers(0, 1));
    label.placement = Placement::shard(0);
    labels = p.add(label);
    m = p.add(tensor("w.m", type, {1, 2}, Role::state, Fill::normal(1.0)));
    v = p.add(tensor("w.v", type, {1, 2}, Role::state, Fill::positive(1.0)));
    const ValueId lr = p.add(tensor("lr", DType::f32, {1}, Role::scalar, Fill::constant(0.125)));
    step = p.add(tensor("number", DType::i32, {1}, Role::scalar, Fill::constant(10)));
    const CrossEntropyForward forward = cross_entropy_forward(p, {}, "loss", w, labels);
    const ValueId dw = cross_entropy_backward(p, {}, "dw", w, labels, forward.lse);
    adamw(p, {}, {}, "adamw", lr, step, std::array{AdamWTensor{w, dw, m, v, {}}});
  }
};

TEST(ReferenceTraining, FollowsTheFormulasFromMomentsOfZeroOn) {
  const TwoClasses model;
  const ReferenceTraining reference(model.p, seed, batches, 8, 8);
  const auto source = [&](ValueId id, int step, std::int64_t e) {
    return reference.sources(model.p, step).at(id).get(e);
  };

  std::array<double, 2> w{source(model.w, 0, 0), source(model.w, 0, 1)}, m{}, v{};
  for (int step = 0; step < 8; ++step) {
    for (std::size_t i = 0; i < 2; ++i) {
      const auto e = static_cast<std::int64_t>(i);
      // Sources are rounded to f32: half an ulp of it, 2^-24.
      EXPECT_NEAR(source(model.w, step, e), w[i], 0x1p-24 * std::fabs(w[i])) << step;
      EXPECT_NEAR(source(model.m, step, e), m[i], 0x1p-24 * std::fabs(m[i])) << step;
      EXPECT_NEAR(source(model.v, step, e), v[i], 0x1p-24 * std::fabs(v[i])) << step;
    }
    EXPECT_EQ(source(model.step, step, 0), step + 1);
    const auto label = static_cast<std::size_t>(source(model.labels, step, 0));
    ASSERT_LT(label, 2U);
    // softmax and its cross-entropy, then AdamW with beta1 0.9, beta2 0.95, epsilon 1e-8, weight decay 0.1, lr 1/8
    const double sum = std::exp(w[0]) + std::exp(w[1]);
    EXPECT_NEAR(reference.losses().at(static_cast<std::size_t>(step)), std::log(sum) - w[label], 1e-12);
    for (std::size_t i = 0; i < 2; ++i) {
      const double g = std::exp(w[i]) / sum - (i == label ? 1.0 : 0.0);
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      const double mhat = m[i] / (1.0 - std::pow(0.9, step + 1)), vhat = v[i] / (1.0 - std::pow(0.95, step + 1));
      w[i] -= 0.125 * (mhat / (std::sqrt(vhat) + 1e-8) + 0.1 * w[i]);
    }
  }
}

TEST(ReferenceTraining, HasItsBatchesInTurn) {
  const TwoClasses model;
  const ReferenceTraining reference(model.p, seed, batches, 1, 1);
  EXPECT_THAT(reference.data(model.p, 0), SizeIs(2));  // batch and number of the step
  std::vector<double> labels;
  for (std::uint64_t other = 0; other < 32; ++other) {  // one seed may give the same label in all batches, 32 may not
    const ReferenceTraining one(model.p, other, batches, 1, 1);
    for (int step = 0; step < batches; ++step) {
      const double label = one.data(model.p, step).at(model.labels).get(0);
      EXPECT_EQ(one.data(model.p, step + batches).at(model.labels).get(0), label);
      labels.push_back(label);
    }
  }
  EXPECT_THAT(labels, ::testing::AllOf(Contains(0.0), Contains(1.0)));
}

TEST(ReferenceTraining, RefusesAProgramThatDoesNotTrain) {
  Program p;
  p.add(tensor("x", DType::f32, {1}, Role::input));
  EXPECT_FALSE(is_training_step(p));
  EXPECT_THROW(ReferenceTraining(p, seed, batches, 1, 1), ProgramError);
}

Program small_model(const std::string& recipe) {
  const Case c{"transformer",
               "gpt2_train_step",
               {{"b", 2}, {"s", 16}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"vocab", 64}},
               recipe,
               {},
               1,
               "small",
               Tier::smoke,
               CacheMode::step};
  return testing::program_of(c);
}

ValueId named(const Program& program, const std::string& name) {
  for (int i = 0; i < static_cast<int>(program.values().size()); ++i) {
    if (program.spec({i}).name == name) return {i};
  }
  throw std::runtime_error("no value " + name);
}

TEST(ReferenceTraining, GivesEachRecipeItsStateInTheTypesOfTheRecipe) {
  const Program f32 = small_model("f32"), f16 = small_model("f16"), bf16 = small_model("bf16");
  const ReferenceTraining reference(f32, seed, batches, 3, 3);
  const SourceValues wide = reference.sources(f32, 2), narrow = reference.sources(f16, 2);
  const HostTensor& weight = wide.at(named(f32, "wte"));
  EXPECT_EQ(narrow.at(named(f16, "wte.master")).bytes, weight.bytes);
  EXPECT_EQ(narrow.at(named(f16, "wte.m")).bytes, wide.at(named(f32, "wte.m")).bytes);
  EXPECT_EQ(narrow.at(named(f16, "loss_scale")).get(0), 1024.0);
  // The set-up ops copy the masters to the weights in use.
  TextbookTrainee trainee(bf16, 0);
  trainee.begin(reference.sources(bf16, 2));
  const TensorView copy = *trainee.left(named(bf16, "wte"));
  for (std::int64_t e = 0; e < weight.elements(); ++e) ASSERT_EQ(copy[e], round_to(DType::bf16, weight.get(e)));
}

// Wrong in one tensor of one step.
class WrongOnce final : public TextbookTrainee {
 public:
  WrongOnce(const Program& program, std::string op, int step, double factor)
      : TextbookTrainee(program, 0), op_(std::move(op)), wrong_step_(step), factor_(factor) {}
  void step() override {
    ++steps_;
    TextbookTrainee::step();
  }

 private:
  void after(int op) override {
    if (steps_ != wrong_step_ || program().op(op).label != op_) return;
    const ValueId output = program().op(op).outputs.front();
    HostTensor left(machine().view(output));
    left.set(0, left.get(0) * factor_);
    machine().give(output, left.view());
  }
  std::string op_;
  int wrong_step_;
  double factor_;
  int steps_ = 0;
};

std::vector<StepParity> judged(const Program& program, Trainee& trainee, int steps) {
  const ReferenceTraining reference(small_model("f32"), seed, batches, steps, steps);
  std::vector<StepParity> all;
  const std::vector<Judged> one{{&trainee, {}}};
  for (int step = 0; step < steps; ++step) all.push_back(judge_step(program, reference, step, one).front());
  return all;
}

// Slow: three steps in each of five recipes by the textbook.
TEST(SingleSteps, OfACorrectMachinePassInEveryRecipe) {
  for (const char* recipe : {"f32", "tf32", "bf16", "f16", "f8_hybrid"}) {
    const Program program = small_model(recipe);
    TextbookTrainee trainee(program, 0);
    for (const StepParity& step : judged(program, trainee, 3)) {
      EXPECT_TRUE(step.passed()) << recipe << ", step " << step.step << ": " << step.worst_tensor.tensor;
      EXPECT_GT(step.worst, 0.0);
      // At least all 16 parameters with two moments and a gradient each.
      EXPECT_GE(step.tensors, 16 * 4) << recipe;
    }
  }
}

TEST(SingleSteps, AWrongGradientFailsInItsStepAndItsTensor) {
  const Program program = small_model("bf16");
  // One of 3,072 elements of a gradient is 100 times too large, most of the tensor's norm.
  WrongOnce trainee(program, "block0.qkv.db", 2, 100.0);
  const std::vector<StepParity> steps = judged(program, trainee, 3);
  EXPECT_TRUE(steps[0].passed());
  EXPECT_TRUE(steps[2].passed()) << "what one step does wrong does not reach the next";
  ASSERT_FALSE(steps[1].passed());
  EXPECT_EQ(steps[1].step, 2);
  EXPECT_THAT(steps[1].worst_tensor.tensor, HasSubstr("block0.qkv.w"));
  for (const char* tensor : {"d(block0.qkv.w)'", "block0.qkv.w.m'", "block0.qkv.w.v'"})
    EXPECT_THAT(steps[1].rejected, Contains(Field(&EndToEndResult::tensor, tensor)));
  EXPECT_THAT(steps[1].rejected, Not(Contains(Field(&EndToEndResult::tensor, "d(block0.up)"))));
}

TEST(SingleSteps, NaNIsRejected) {
  const Program program = small_model("bf16");
  WrongOnce trainee(program, "loss.backward", 1, std::numeric_limits<double>::quiet_NaN());
  const std::vector<StepParity> steps = judged(program, trainee, 1);
  EXPECT_FALSE(steps[0].passed());
  EXPECT_TRUE(std::isinf(steps[0].worst));
}

TEST(SingleSteps, AnErrorIsInUnitsOfWhatIsAllowed) {
  const auto ratio = [](double error, double allowed) {
    return error_over_allowed({"t", Role::gradient, 1.0, error, allowed});
  };
  EXPECT_EQ(ratio(1.0, 4.0), 0.25);
  EXPECT_EQ(ratio(0.0, 0.0), 0.0);
  EXPECT_TRUE(std::isinf(ratio(1.0, 0.0)));
  EXPECT_TRUE(std::isinf(ratio(std::nan(""), 1.0)));
  EXPECT_TRUE(std::isinf(ratio(1.0, std::nan(""))));
}

TEST(BrokenRecipes, EachIsToldApartByWhatItMustBe) {
  for (const BrokenRecipe& broken : broken_recipes()) {
    const Program program = small_model(std::string(broken.recipe));
    ASSERT_TRUE(broken.applies(program)) << broken.name;
    const ReferenceTraining reference(small_model("f32"), seed, batches, 2, 2);
    TextbookTrainee right(program, 0);
    BrokenTrainee wrong(program, broken, 0);
    // The same values are compared, so that only the fault makes a difference.
    const ShownBy compares = broken.compares == nullptr ? ShownBy() : ShownBy(broken.compares);
    const std::vector<Judged> both{{&right, compares}, {&wrong, compares}};
    int seen = 0;
    for (int step = 0; step < 2; ++step) {
      const std::vector<StepParity> parities = judge_step(program, reference, step, both);
      EXPECT_TRUE(parities[0].passed()) << broken.name << ": " << parities[0].worst_tensor.tensor;
      for (const EndToEndResult& result : parities[1].rejected) seen += must_show(broken, result) ? 1 : 0;
    }
    EXPECT_GT(seen, 0) << broken.name;
  }
}

TEST(BrokenRecipes, NoneIsAppliedToAProgramThatLacksWhatItBreaks) {
  const TwoClasses model;  // neither a scale nor copies
  for (const BrokenRecipe& broken : broken_recipes()) {
    const bool scales_or_copies = broken.recipe == "f16" || broken.name == "bf16 master weights";
    EXPECT_EQ(broken.applies(model.p), !scales_or_copies) << broken.name;
  }
}

TEST(FreeTraining, CarriesItsOwnStateAndLearns) {
  const Program program = small_model("bf16");
  const ReferenceTraining reference(small_model("f32"), seed, batches, 12, 1);
  TextbookTrainee trainee(program, 0);
  const std::vector<double> losses = free_losses(trainee, reference, 12);
  ASSERT_THAT(losses, SizeIs(12));
  EXPECT_LT(losses[9], losses[0]);  // of the same batch
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], reference.losses()[i], 0.05);
}

}  // namespace training_test
}  // namespace gpubench
