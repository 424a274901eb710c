// Formulas that are right on paper and cancel, overflow or saturate: the data of every run reveal each in every type of
// an op.
#include "harness/parity/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/range_data.h"
#include "reference/ops/routing.h"
#include "reference/ops/softmax.h"
#include "tests/harness/parity/judged_program.h"

namespace gpubench {
namespace unstable_forms_test {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

/// Adds tensors of one type, and tensors that are f32 in all recipes except f64's.
struct Operands {
  Program& p;
  DType type;
  [[nodiscard]] ValueId operator()(const char* name, const Shape& shape, const Fill& how = Fill::normal(1.0)) const {
    return p.add(tensor(name, type, shape, Role::activation, how));
  }
  [[nodiscard]] ValueId f32(const char* name, const Shape& shape, const Fill& how = Fill::normal(1.0)) const {
    return p.add(tensor(name, type == DType::f64 ? DType::f64 : DType::f32, shape, Role::statistic, how));
  }
  [[nodiscard]] ValueId labels(std::int64_t rows, std::int64_t classes) const {
    return p.add(tensor("labels", DType::i32, {rows}, Role::input, Fill::integers(0, classes - 1)));
  }
  [[nodiscard]] BatchNormChannels channels(std::int64_t count) const {
    return {f32("gamma", {count}), f32("beta", {count}), f32("running_mean", {count}),
            f32("running_var", {count}, Fill::positive(1.0))};
  }
};

struct Unstable {
  std::string op;
  std::function<void(Program&, const Math&, const Operands&)> append;
  std::vector<std::string> forms;  ///< in order
  std::string of_f32 = {};         ///< the first, which narrower types round away
};

const std::string two_sums = "variance as E[x^2] - E[x]^2", gradient = "gradient of gamma as sum(dy x) - mean sum(dy)",
                  no_maximum = "exponentials without a maximum", from_zero = "maximum that starts at 0",
                  sigmoid = "sigmoid as e^x / (1 + e^x)", by_exp = "tanh as (e^2t - 1) / (e^2t + 1)",
                  no_epsilon = "moments divided without epsilon",
                  scaled_up = "gradients below the limit scaled up to it",
                  not_scaled = "gradients at the limit not scaled",
                  quotients = "norm of quotients by the largest gradient";

const std::vector<Unstable>& ops() {
  const Shape rows{16, 80}, images{2, 5, 5, 12}, heads{1, 24, 2, 16};
  static const std::vector<Unstable> all{
      {"layer_norm",
       [=](Program& p, const Math& math, const Operands& in) {
         layer_norm_forward(p, {}, math, "op", in("x", rows), in.f32("gamma", {80}), in.f32("beta", {80}));
       },
       {two_sums}},
      {"residual_norm",
       [=](Program& p, const Math& math, const Operands& in) {
         residual_norm_forward(p, {}, math, "op", in("x", rows), in("r", rows), in.f32("gamma", {80}),
                               in.f32("beta", {80}));
       },
       {two_sums}},
      {"layer_norm_backward",
       [=](Program& p, const Math& math, const Operands& in) {
         layer_norm_backward(p, {}, math, "op", in("dy", rows), in("x", rows), in.f32("gamma", {80}),
                             in.f32("mean", {16}), in.f32("rstd", {16}, Fill::constant(1.0)));
       },
       {gradient}},
      {"batch_norm",
       [=](Program& p, const Math& math, const Operands& in) {
         batch_norm_forward(p, {}, math, "op", in("x", images), in.channels(12));
       },
       {two_sums}},
      {"batch_norm_relu",
       [=](Program& p, const Math& math, const Operands& in) {
         batch_norm_relu_forward(p, {}, math, "op", in("x", images), in.channels(12), in("r", images));
       },
       {two_sums}},
      {"batch_norm_backward",
       [=](Program& p, const Math& math, const Operands& in) {
         batch_norm_backward(p, math, "op", in("dy", images), in("x", images), in.f32("gamma", {12}),
                             in.f32("mean", {12}), in.f32("rstd", {12}, Fill::constant(1.0)));
       },
       {gradient}},
      {"softmax",
       [=](Program& p, const Math& math, const Operands& in) { softmax_forward(p, math, "op", in("x", rows)); },
       {no_maximum, from_zero}},
      {"cross_entropy",
       [=](Program& p, const Math& math, const Operands& in) {
         cross_entropy_forward(p, math, "op", in("logits", rows), in.labels(16, 80));
       },
       {no_maximum, from_zero}},
      {"cross_entropy_forward_backward",
       [=](Program& p, const Math& math, const Operands& in) {
         cross_entropy_forward_backward(p, math, "op", in("logits", rows), in.labels(16, 80));
       },
       {no_maximum, from_zero}},
      {"routing",
       [=](Program& p, const Math& math, const Operands& in) {
         routing_forward(p, {.k = 2, .normalize = true}, math, "op", in("logits", rows));
       },
       {no_maximum, from_zero}},
      {"sigmoid_routing",
       [=](Program& p, const Math& math, const Operands& in) {
         routing_forward(p, {.k = 2, .scores = Routing::Scores::sigmoid}, math, "op", in("logits", rows));
       },
       {sigmoid}},
      {"attention",
       [=](Program& p, const Math& math, const Operands& in) {
         attention_forward(p, {.scale = 0.25}, math, "op", in("q", heads), in("k", heads), in("v", heads));
       },
       {no_maximum, from_zero}},
      {"gelu",
       [=](Program& p, const Math& math, const Operands& in) { gelu_forward(p, {}, math, "op", in("x", {1000})); },
       {by_exp}},
      {"gelu_backward",
       [=](Program& p, const Math& math, const Operands& in) {
         gelu_backward(p, {}, math, "op", in("x", {1000}), in("dy", {1000}));
       },
       {by_exp}},
      {"gemm_gelu",
       [=](Program& p, const Math& math, const Operands& in) {
         Gemm g;
         g.bias = true;
         g.epilogue = Gemm::Epilogue::gelu;
         gemm(p, g, math, "op", in("a", {8, 16}), in("b", {16, 96}), {.bias = in("bias", {96})});
       },
       {by_exp}},
      {"gemm_gelu_gradient",
       [=](Program& p, const Math& math, const Operands& in) {
         Gemm g;
         g.epilogue = Gemm::Epilogue::gelu_gradient;
         gemm(p, g, math, "op", in("a", {8, 16}), in("b", {16, 96}), {.pre = in("pre", {8, 96})});
       },
       {by_exp}},
      {"gemm_gelu_bias_gradient",
       [=](Program& p, const Math& math, const Operands& in) {
         Gemm g;
         g.epilogue = Gemm::Epilogue::gelu_gradient;
         gemm_gelu_bias_gradient(p, g, math, "op", in("a", {8, 16}), in("b", {16, 96}), in("pre", {8, 96}));
       },
       {by_exp}},
      {"silu",
       [=](Program& p, const Math& math, const Operands& in) { silu_forward(p, math, "op", in("x", {1000})); },
       {sigmoid}},
      {"silu_backward",
       [=](Program& p, const Math& math, const Operands& in) {
         silu_backward(p, math, "op", in("x", {1000}), in("dy", {1000}));
       },
       {sigmoid}},
      {"swiglu",
       [=](Program& p, const Math& math, const Operands& in) {
         swiglu_forward(p, math, "op", in("gate", {1000}), in("up", {1000}));
       },
       {sigmoid}},
      {"swiglu_backward",
       [=](Program& p, const Math& math, const Operands& in) {
         swiglu_backward(p, math, "op", in("gate", {1000}), in("up", {1000}), in("dy", {1000}));
       },
       {sigmoid}},
      {"clip",
       [=](Program& p, const Math& math, const Operands& in) {
         clip(p, {}, math, "op", in.f32("norm", {1}, Fill::constant(4.0)), std::vector<ValueId>{in("g", {100})});
       },
       {scaled_up},
       not_scaled},
      {"gradient_norm",
       [=](Program& p, const Math& math, const Operands& in) {
         gradient_norm(p, math, "op", std::vector<ValueId>{in("g", {100}), in("h", {7})});
       },
       {quotients}},
      {"adamw",
       [=](Program& p, const Math& math, const Operands& in) {
         const AdamWTensor weight{
             in.f32("w", {60}), in.f32("g", {60}), in.f32("m", {60}), in.f32("v", {60}, Fill::positive(1.0)), {}};
         adamw(p, {}, math, "op", in.f32("lr", {1}, Fill::constant(1e-3)),
               p.add(tensor("step", DType::i32, {1}, Role::scalar, Fill::constant(1.0))),
               std::vector<AdamWTensor>{weight});
       },
       {no_epsilon}},
  };
  return all;
}

class UnstableForms : public testing::TestWithParam<std::pair<std::size_t, DType>> {
 protected:
  [[nodiscard]] static const Unstable& op() { return ops()[GetParam().first]; }
  [[nodiscard]] static FaultReport report() {
    const DType type = GetParam().second;
    Program program;
    op().append(program, {.accumulate = type == DType::f64 ? DType::f64 : DType::f32}, {program, type});
    return faults_of_op(program);
  }
};

TEST_P(UnstableForms, AreSeenAndWhatIsRightRaisesNoAlarm) {
  const FaultReport all = report();
  EXPECT_THAT(all.alarms, IsEmpty());
  std::vector<std::string> names;
  for (const FaultTrial& trial : all.trials) {
    if (!fault_families()[trial.family].name.starts_with("formula that")) continue;
    names.push_back(trial.name);
    EXPECT_EQ(trial.caught_by, CheckRule::bound) << trial.name << ": " << trial.size;
  }
  std::sort(names.begin(), names.end());
  std::vector<std::string> expected = op().forms;
  if (GetParam().second == DType::f32 && !op().of_f32.empty()) expected.insert(expected.begin(), op().of_f32);
  EXPECT_THAT(names, ElementsAreArray(expected));
}

std::vector<std::pair<std::size_t, DType>> ops_and_types() {
  std::vector<std::pair<std::size_t, DType>> all;
  for (std::size_t i = 0; i < ops().size(); ++i) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) all.emplace_back(i, type);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, UnstableForms, testing::ValuesIn(ops_and_types()), [](const auto& one) {
  return ops()[one.param.first].op + "_" + std::string(name(one.param.second));
});

std::vector<Expected> expected_on_ranges(const Program& program, std::vector<HostTensor>& inputs) {
  std::vector<TensorSpec> input_specs, output_specs;
  for (const ValueId id : program.op(0).inputs) {
    input_specs.push_back(program.spec(id));
    inputs.emplace_back(input_specs.back());
  }
  for (const ValueId id : program.op(0).outputs) output_specs.push_back(program.spec(id));
  const OpDefinition& meaning = definition(program.op(0).kind);
  const std::vector<RevealingData> data = meaning.revealing_data({program.op(0), input_specs, output_specs});
  for (const RevealingData::Input& input : data.at(0).inputs) fill(inputs[input.index], input);
  return expected_output({program.op(0), views_of(inputs), output_specs}, static_cast<int>(output_specs.size()) - 1);
}

// Welford's method moves its mean along a row; the formula with two passes takes one mean.
TEST(RangeData, AcceptsVariancesByTwoPassesAndByWelfordsMethod) {
  for (const DType type : {DType::bf16, DType::f16, DType::f32}) {
    constexpr std::int64_t rows = 32, n = 768;
    Program p;
    const Operands in{p, type};
    layer_norm_forward(p, {}, Math{}, "op", in("x", {rows, n}), in.f32("gamma", {n}), in.f32("beta", {n}));
    std::vector<HostTensor> inputs;
    const std::vector<Expected> rstd = expected_on_ranges(p, inputs);
    for (std::int64_t row = 0; row < rows; ++row) {
      float sum = 0.0F, moving = 0.0F, moving_squares = 0.0F, squares = 0.0F;
      for (std::int64_t i = 0; i < n; ++i) {
        const auto x = static_cast<float>(inputs[0].get(row * n + i));
        sum += x;
        const float before = x - moving;
        moving += before / static_cast<float>(i + 1);
        moving_squares += before * (x - moving);
      }
      const float mean = sum / n;
      for (std::int64_t i = 0; i < n; ++i) {
        const float deviation = static_cast<float>(inputs[0].get(row * n + i)) - mean;
        squares += deviation * deviation;
      }
      const Expected& expected = rstd[static_cast<std::size_t>(row)];
      for (const float of : {squares, moving_squares})
        EXPECT_LE(std::fabs(1.0F / std::sqrt(of / n + 1e-5F) - expected.value), expected.bound)
            << name(type) << " row " << row;
    }
  }
}

// -0 where e^-x is infinite, where the textbook has up to -2.4e-37.
TEST(RangeData, AcceptsSiluByTheFormulaThatIsDocumented) {
  for (float x = -120.0F; x <= 120.0F; x += 0.25F) {
    Program p;
    silu_forward(p, Math{}, "op", Operands{p, DType::f32}("x", {1}));
    HostTensor input(p.spec(p.op(0).inputs[0]));
    input.set(0, x);
    const std::vector<TensorSpec> output{p.spec(p.op(0).outputs[0])};
    const Expected y = expected_output({p.op(0), std::vector<TensorView>{input.view()}, output}, 0)[0];
    EXPECT_LE(std::fabs(x / (1.0F + std::exp(-x)) - y.value), y.bound) << x;
    EXPECT_LE(y.bound, 1e-5 * std::fabs(x) + 1e-35) << x;
  }
}

TEST(RangeData, RepeatAsOftenAsTheirTensorIsLong) {
  HostTensor x(tensor("x", DType::bf16, {10}, Role::input, Fill::normal(1.0)));
  fill(x, RevealingData::Input{0, [](std::int64_t e) { return static_cast<double>(e); }, 4});
  for (std::int64_t e = 0; e < 10; ++e) EXPECT_EQ(x.get(e), static_cast<double>(e % 4));
}

TEST(RangeData, HaveMeansOfAHundredToAThousandDeviations) {
  for (const DType type : {DType::bf16, DType::f16, DType::f32, DType::f64}) {
    const LargeMeans means{type};
    constexpr std::int64_t n = 4096;
    double squares = 0.0;
    for (std::int64_t e = 0; e < n; ++e) {
      const double x = means.element(0, e, n), deviation = x - means.mean(0);
      EXPECT_EQ(round_to(type, x), x);
      squares += deviation * deviation;
    }
    const double ratio = means.mean(0) / std::sqrt(squares / n);
    EXPECT_GT(ratio, 100.0);
    EXPECT_LT(ratio, 1000.0);
    EXPECT_NEAR(means.rstd() * means.mean(0), ratio, 0.05 * ratio);
  }
}

}  // namespace unstable_forms_test
}  // namespace gpubench
