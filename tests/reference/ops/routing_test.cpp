#include "reference/ops/routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace routing_test {

enum Output { indices_output, weights_output };

struct Example {
  Program program;
  ValueId logits, bias{};
  RoutingForward out{};

  Example(DType type, std::int64_t tokens, std::int64_t experts, const Routing& routing) {
    logits = source(program, "logits", type, {tokens, experts});
    const DType wide = type == DType::f64 ? DType::f64 : DType::f32;
    std::optional<ValueId> given;
    if (routing.bias) given = bias = source(program, "bias", wide, {experts});
    out = routing_forward(program, routing, type == DType::f64 ? f64_math : f32_math, "routing", logits, given);
  }

  std::vector<Expected> judge(TextbookRun& run, Output output, const std::vector<double>& written) const {
    run.set(out.indices, written);
    return run.judge_stored(0, output);
  }
  std::vector<double> right_indices(TextbookRun& run, const std::vector<double>& written) const {
    return values_of(judge(run, indices_output, written));
  }
};

// Scores 1/10, 2/10, 3/10, 4/10.
const std::vector<double> one_to_four{std::log(1.0), std::log(2.0), std::log(3.0), std::log(4.0)};

TEST(Routing, WeightsOfASoftmaxAndOfTheSoftmaxOverTheChosen) {
  for (const bool normalize : {false, true}) {
    Example s(DType::f64, 1, 4, {.k = 2, .normalize = normalize});
    TextbookRun run(s.program);
    run.set(s.logits, one_to_four);
    EXPECT_EQ(values_of(run.judge(0, indices_output)), (std::vector<double>{3, 2}));
    expect_near(values_of(run.judge(0, weights_output)),
                normalize ? std::vector<double>{4.0 / 7, 3.0 / 7} : std::vector<double>{0.4, 0.3}, 1e-15);
  }
}

// Sigmoids 1/2, 2/3, 3/4, 4/5; with the biases 1.5, 5/3, 0.75, 0.8. The weights are without them: of 2/3 and 1/2, whose
// sum is 7/6, times 3.5.
TEST(Routing, ABiasCountsInTheChoiceAlone) {
  Example s(DType::f64, 1, 4,
            {.k = 2, .scores = Routing::Scores::sigmoid, .normalize = true, .bias = true, .scale = 3.5});
  TextbookRun run(s.program);
  run.set(s.logits, one_to_four);
  run.set(s.bias, {1, 1, 0, 0});
  EXPECT_EQ(values_of(run.judge(0, indices_output)), (std::vector<double>{1, 0}));
  expect_near(values_of(run.judge(0, weights_output)), {2, 1.5}, 1e-15);
}

TEST(Routing, EqualScoresMayComeInAnyOrderAndNoOthers) {
  Example s(DType::f32, 1, 5, {.k = 3});
  TextbookRun run(s.program);
  run.set(s.logits, {1, 2, 0, 2, 1});
  EXPECT_EQ(values_of(run.judge(0, indices_output)), (std::vector<double>{1, 3, 0}));
  EXPECT_EQ(s.right_indices(run, {1, 3, 0}), (std::vector<double>{1, 3, 0}));
  EXPECT_EQ(s.right_indices(run, {3, 1, 0}), (std::vector<double>{3, 1, 0}));
  EXPECT_EQ(s.right_indices(run, {1, 3, 4}), (std::vector<double>{1, 3, 4}));
  EXPECT_EQ(s.right_indices(run, {1, 1, 4}), (std::vector<double>{1, 3, 4}));
  EXPECT_EQ(s.right_indices(run, {3, 3, 0}), (std::vector<double>{3, 1, 0}));
  EXPECT_EQ(s.right_indices(run, {3, 1, 1}), (std::vector<double>{3, 1, 0}));
  EXPECT_EQ(s.right_indices(run, {1, 3, 2}), (std::vector<double>{1, 3, 0}));
}

// The two largest scores differ by 2^-23 relative, which rounding may reverse, the third by 2^-6.
TEST(Routing, ScoresWithinTheirBoundsMayChangePlacesAndOthersMayNot) {
  Example s(DType::f32, 1, 4, {.k = 2});
  TextbookRun run(s.program);
  run.set(s.logits, {0.0, 1.0, 1.0 + 0x1p-23, 1.0 - 0x1p-6});
  EXPECT_EQ(s.right_indices(run, {2, 1}), (std::vector<double>{2, 1}));
  EXPECT_EQ(s.right_indices(run, {1, 2}), (std::vector<double>{1, 2}));
  EXPECT_EQ(s.right_indices(run, {2, 3}), (std::vector<double>{2, 1}));
  EXPECT_EQ(s.right_indices(run, {3, 2}), (std::vector<double>{2, 1}));
  EXPECT_EQ(s.right_indices(run, {1, 1}), (std::vector<double>{1, 2}));
}

TEST(Routing, WeightsAreJudgedOnTheIndicesThatWereStored) {
  Example s(DType::f64, 1, 4, {.k = 2, .normalize = true});
  TextbookRun run(s.program);
  run.set(s.logits, one_to_four);
  expect_near(values_of(s.judge(run, weights_output, {2, 0})), {0.75, 0.25}, 1e-15);
  EXPECT_TRUE(std::isnan(s.judge(run, weights_output, {2, 7})[1].value));
}

TEST(Routing, ARowWithANanHasNoRightIndex) {
  Example s(DType::f32, 1, 3, {});
  TextbookRun run(s.program);
  run.set(s.logits, {1, std::numeric_limits<double>::quiet_NaN(), 2});
  EXPECT_TRUE(std::isnan(s.right_indices(run, {2})[0]));
}

std::vector<Routing> routers() {
  using Scores = Routing::Scores;
  return {{.k = 1},
          {.k = 3, .scale = 0.75},
          {.k = 2, .normalize = true},
          {.k = 3, .scores = Scores::sigmoid},
          {.k = 4, .scores = Scores::sigmoid, .normalize = true, .bias = true, .scale = 2.5}};
}

// The logits are far enough apart that no step changes the choice.
TEST(Routing, GradientsAgreeWithCentralDifferences) {
  for (const Routing& routing : routers()) {
    Example s(DType::f64, 3, 7, routing);
    std::vector<double> logits;
    for (int i = 0; i < 21; ++i) logits.push_back(0.35 * (i * 5 % 7) - 1.0 + 0.01 * i);
    std::map<ValueId, std::vector<double>> fixed{{s.logits, logits}};
    if (routing.bias) fixed[s.bias] = {0.5, 0, 0, -0.5, 0, 0.25, 0};
    expect_derivative_agrees(s.program, s.out.weights, fixed, {s.logits});
  }
}

struct Fault {
  bool not_normalized = false;
  bool bias_in_weights = false;
  bool no_projection = false;
};

struct Rejected {
  int indices = 0, weights = 0, gradients = 0;
};

Rejected rejected(const Routing& routing, DType type, const Fault& fault) {
  constexpr std::size_t tokens = 64, experts = 24;
  const auto k = static_cast<std::size_t>(routing.k);
  Example s(type, tokens, experts, routing);
  const ValueId dw = source(s.program, "dw", DType::f32, {tokens, routing.k});
  (void)routing_backward(s.program, routing, f32_math, "back", s.logits, s.out.indices, dw);
  TextbookRun run(s.program);
  std::vector<double> values = spread(tokens * experts, 5);
  for (double& value : values) value *= 4.0;
  run.set(s.logits, values);
  if (routing.bias) run.set(s.bias, spread(experts, 9));
  run.set(dw, spread(static_cast<std::int64_t>(tokens * k), 6));
  const std::vector<double> logits = run.get(s.logits), dweights = run.get(dw);
  const std::vector<double> bias = routing.bias ? run.get(s.bias) : std::vector<double>(experts);
  const bool softmax = routing.scores == Routing::Scores::softmax;
  const auto scale = static_cast<float>(routing.scale);
  std::vector<double> indices, weights, dlogits;
  for (std::size_t t = 0; t < tokens; ++t) {
    std::vector<float> score(experts), f(experts), incoming(experts);
    float sum = 0.0F, of_chosen = 0.0F, projection = 0.0F;
    for (std::size_t i = 0; i < experts; ++i) {
      const auto x = static_cast<float>(logits[t * experts + i]);
      sum += score[i] = softmax ? std::exp(x - 4.0F) : 1.0F / (1.0F + std::exp(-x));
    }
    if (softmax) {
      for (float& one : score) one /= sum;
    }
    std::vector<std::size_t> order(experts);
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](std::size_t i) { return score[i] + static_cast<float>(bias[i]); };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
    for (std::size_t j = 0; j < k; ++j) of_chosen += score[order[j]];
    const bool normalize = routing.normalize && !fault.not_normalized;
    for (std::size_t i = 0; i < experts; ++i) f[i] = normalize ? score[i] / of_chosen : score[i];
    for (std::size_t j = 0; j < k; ++j) {
      const float share = fault.bias_in_weights ? key(order[j]) : f[order[j]];
      indices.push_back(static_cast<double>(order[j]));
      weights.push_back(scale * share);
      incoming[order[j]] = static_cast<float>(dweights[t * k + j]);
      if ((softmax || normalize) && !fault.no_projection) projection += f[order[j]] * incoming[order[j]];
    }
    for (std::size_t i = 0; i < experts; ++i) {
      const bool chosen = std::find(order.begin(), order.begin() + routing.k, i) != order.begin() + routing.k;
      const float slope = softmax ? 1.0F : 1.0F - score[i];
      const bool counts = chosen || (softmax && !normalize);
      dlogits.push_back(counts ? round_to(type, scale * f[i] * slope * (incoming[i] - projection)) : 0.0);
    }
  }
  const auto count = [](const std::vector<Expected>& judged, DType stored, const std::vector<double>& got) {
    int bad = 0;
    for (std::size_t i = 0; i < got.size(); ++i) bad += within(judged[i], stored, got[i]) ? 0 : 1;
    return bad;
  };
  Rejected result;
  result.indices = count(s.judge(run, indices_output, indices), DType::i32, indices);
  result.weights = count(s.judge(run, weights_output, indices), DType::f32, weights);
  result.gradients = count(run.judge(1, 0), type, dlogits);
  return result;
}

TEST(Routing, CorrectSinglePrecisionIsAccepted) {
  for (const Routing& routing : routers()) {
    for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
      const Rejected wrong = rejected(routing, type, {});
      EXPECT_EQ(wrong.indices + wrong.weights + wrong.gradients, 0) << name(type) << " " << describe(routing);
    }
  }
}

TEST(Routing, TypicalFaultsAreRejected) {
  const Routing mixtral{.k = 2, .normalize = true};
  EXPECT_GT(rejected(mixtral, DType::f32, {.not_normalized = true}).weights, 120);
  EXPECT_GT(rejected(mixtral, DType::f32, {.no_projection = true}).gradients, 120);
  EXPECT_GT(rejected(routers().back(), DType::f32, {.bias_in_weights = true}).weights, 200);
  EXPECT_GT(rejected({.k = 2}, DType::f32, {.no_projection = true}).gradients, 1000);
}

TEST(Routing, SubsetsAgreeWithTheWhole) {
  Example s(DType::f32, 21, 6, {.k = 2});
  (void)routing_backward(s.program, {.k = 2}, f32_math, "back", s.logits, s.out.indices, s.out.weights);
  TextbookRun run(s.program);
  run.set(s.logits, spread(126, 3));
  run.run(0);
  for (const int output : {0, 1}) expect_subsets_agree(run, 0, output);
  expect_subsets_agree(run, 1, 0);
}

TEST(Routing, WhatDoesNotFitIsRefusedByName) {
  EXPECT_NE(program_error([] { Example(DType::f32, 4, 3, {.k = 4}); }).find("k = 4; expected 1 to 3"),
            std::string::npos);
  Program p;
  const ValueId logits = source(p, "logits", DType::f32, {4, 3});
  EXPECT_NE(program_error([&] { (void)routing_forward(p, {.bias = true}, f32_math, "r", logits); }).find("bias"),
            std::string::npos);
}

}  // namespace routing_test
}  // namespace gpubench::testing
