#include "reference/ops/transform/differentiate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "reference/ops/attention.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace differentiate_test {

std::vector<ValueId> sources_of(const Program& program) {
  std::vector<ValueId> sources;
  for (int id = 0; id < static_cast<int>(program.values().size()); ++id) {
    if (program.value({id}).source && !program.value({id}).part_of) sources.push_back({id});
  }
  return sources;
}

/// sum(weight * value) after the first `ops` ops on sources filled by their ids, with one element of `moved` changed by
/// `step`.
double objective(const Program& program, int ops, ValueId value, const std::vector<double>& weight, ValueId moved,
                 std::size_t element, double step) {
  TextbookRun run(program);
  for (const ValueId id : sources_of(program))
    run.set(id, spread(program.spec(id).shape.elements(), static_cast<std::uint64_t>(id.index)));
  std::vector<double> values = run.get(moved);
  values[element] += step;
  run.set(moved, values);
  for (int op = 0; op < ops; ++op) run.run(op);
  const std::vector<double> result = run.get(value);
  double sum = 0.0;
  for (std::size_t i = 0; i < result.size(); ++i) sum += weight[i] * result[i];
  return sum;
}

/// Compares every wanted gradient at `value`, in fp64, with central differences of all ops.
std::map<ValueId, ValueId> expect_gradients_agree(Program& program, ValueId value, const std::vector<ValueId>& wanted) {
  const int ops = static_cast<int>(program.ops().size());
  const ValueId seed = source(program, "seed", DType::f64, program.spec(value).shape, Role::gradient);
  const auto gradients = differentiate(program, std::array{Seed{value, seed}}, wanted);

  TextbookRun run(program);
  for (const ValueId id : sources_of(program))
    run.set(id, spread(program.spec(id).shape.elements(), static_cast<std::uint64_t>(id.index)));
  const std::vector<double> weight = run.get(seed);
  run.run();
  constexpr double h = 1e-5;  // the differences are good to about 1e-10
  for (const ValueId id : wanted) {
    const std::vector<double> gradient = run.get(gradients.at(id));
    EXPECT_EQ(program.spec(gradients.at(id)).shape, program.spec(id).shape);
    EXPECT_EQ(program.spec(gradients.at(id)).role, Role::gradient);
    double size = 0.0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double above = objective(program, ops, value, weight, id, i, h);
      const double below = objective(program, ops, value, weight, id, i, -h);
      EXPECT_LE(std::fabs(gradient[i] - (above - below) / (2 * h)), 2e-8) << program.spec(id).name << "[" << i << "]";
      size = std::max(size, std::fabs(gradient[i]));
    }
    EXPECT_GT(size, 1e-3) << program.spec(id).name;
  }
  return gradients;
}

int count(const Program& program, OpKind kind) {
  return static_cast<int>(
      std::count_if(program.ops().begin(), program.ops().end(), [&](const OpCall& op) { return op.kind == kind; }));
}

ValueId linear(Program& p, const std::string& label, ValueId x, ValueId w, ValueId bias, Gemm gemm_attributes = {}) {
  gemm_attributes.transpose_b = true;
  gemm_attributes.bias = true;
  return gemm(p, gemm_attributes, f64_math, label, x, w, {.bias = bias}).c;
}

ValueId parameter(Program& p, std::string name, Shape shape) {
  return source(p, std::move(name), DType::f64, std::move(shape), Role::parameter);
}

ValueId packed_part(Program& p, const char* name, ValueId whole, std::int64_t s, std::int64_t heads, std::int64_t d,
                    std::int64_t first) {
  const std::int64_t width = p.spec(whole).shape[1];
  TensorSpec spec = tensor(name, DType::f64, {p.spec(whole).shape[0] / s, s, heads, d}, Role::activation);
  spec.layout.strides = {s * width, width, d, 1};
  return p.part(whole, spec, first);
}

TEST(Differentiate, AFeedForwardBlockWithResidualAgreesWithCentralDifferences) {
  Program p;
  const ValueId x = source(p, "x", DType::f64, {3, 4});
  const ValueId gamma = parameter(p, "gamma", {4}), beta = parameter(p, "beta", {4});
  const ValueId up = parameter(p, "up.w", {6, 4}), up_bias = parameter(p, "up.b", {6});
  const ValueId down = parameter(p, "down.w", {4, 6}), down_bias = parameter(p, "down.b", {4});
  const ValueId normed = layer_norm_forward(p, {}, f64_math, "ln", x, gamma, beta).y;
  const ValueId hidden = gelu_forward(p, {}, f64_math, "gelu", linear(p, "up", normed, up, up_bias));
  const ValueId y = add(p, f64_math, "residual", x, linear(p, "down", hidden, down, down_bias));

  expect_gradients_agree(p, y, {x, gamma, beta, up, up_bias, down, down_bias});
}

TEST(Differentiate, AttentionFromAPackedProjectionAgreesWithCentralDifferences) {
  // x -> qkv (grouped: 2 query heads, 1 kv head) -> attention -> heads as rows -> projection, with an epilogue
  Program p;
  const ValueId x = source(p, "x", DType::f64, {6, 5});
  const ValueId w = parameter(p, "qkv.w", {12, 5}), bias = parameter(p, "qkv.b", {12});
  const ValueId out = parameter(p, "out.w", {4, 6}), out_bias = parameter(p, "out.b", {4});
  const ValueId qkv = linear(p, "qkv", x, w, bias);
  const ValueId q = packed_part(p, "q", qkv, 3, 2, 3, 0), k = packed_part(p, "k", qkv, 3, 1, 3, 6),
                v = packed_part(p, "v", qkv, 3, 1, 3, 9);
  const ValueId o = attention_forward(p, {true, 0.6}, f64_math, "attention", q, k, v).o;
  const ValueId rows = p.part(o, tensor("rows", DType::f64, {6, 6}, Role::activation), 0);
  const ValueId y = linear(p, "out", rows, out, out_bias, {.epilogue = Gemm::Epilogue::gelu});

  expect_gradients_agree(p, y, {x, w, bias, out, out_bias});

  // dq, dk and dv lie in one packed gradient, at the offsets of q, k and v, and nothing is copied or added
  const auto backward =
      std::find_if(p.ops().begin(), p.ops().end(), [](const OpCall& op) { return op.kind == attention_backward_kind; });
  ASSERT_NE(backward, p.ops().end());
  const std::array forward{q, k, v};
  for (std::size_t i = 0; i < 3; ++i) {
    const Value& gradient = p.value(backward->outputs[i]);
    EXPECT_EQ(gradient.storage, p.value(backward->outputs[0]).storage);
    EXPECT_EQ(gradient.offset_bytes, p.value(forward[i]).offset_bytes);
    EXPECT_EQ(gradient.spec.layout, p.spec(forward[i]).layout);
  }
  EXPECT_EQ(count(p, add_kind) + count(p, reorder_kind) + count(p, copy_kind), 0);
}

// Gradients of joined tensors need no copy between a packed gradient and its parts.
TEST(Differentiate, JoinedPartsHaveTheirGradientsInPlace) {
  Program p;
  const ValueId x = source(p, "x", DType::f64, {3, 4}), w = parameter(p, "w", {4, 5});
  const ValueId packed = gemm(p, {}, f64_math, "packed", x, w).c;
  const auto columns = [&](const char* name, ValueId whole, std::int64_t n, std::int64_t first) {
    TensorSpec spec = tensor(name, DType::f64, {3, n}, Role::activation);
    spec.layout.strides = {5, 1};
    return p.part(whole, std::move(spec), first);
  };
  const ValueId y = p.reserve(tensor("y", DType::f64, {3, 5}, Role::activation));
  reorder_into(p, "front", columns("a", packed, 2, 3), columns("to_a", y, 2, 0));
  reorder_into(p, "back", columns("b", packed, 3, 0), columns("to_b", y, 3, 2));

  expect_gradients_agree(p, y, {x, w});

  EXPECT_EQ(count(p, reorder_kind), 4);
}

TEST(Differentiate, GradientsOfAVectorOfASampleAreSumsOverItsRows) {
  for (const std::int64_t rows : {2, 6}) {
    Program p;
    const ValueId x = source(p, "x", DType::f64, {6, 3}), a = parameter(p, "a", {rows, 3}),
                  b = parameter(p, "b", {rows, 3});
    const ValueId modulated = modulate_forward(p, f64_math, "modulated", x, a, b);

    expect_gradients_agree(p, multiply(p, f64_math, "gated", modulated, a), {x, a, b});

    EXPECT_EQ(count(p, column_sum_kind), rows == 2 ? 3 : 0);
  }
}

TEST(Differentiate, AWholeAndItsPartsAddUp) {
  // qkv is read by attention through its parts, and by a scale as a whole.
  Program p;
  const ValueId x = source(p, "x", DType::f64, {3, 4}), w = parameter(p, "w", {4, 12});
  const ValueId qkv = gemm(p, {}, f64_math, "qkv", x, w).c;
  const ValueId q = packed_part(p, "q", qkv, 3, 1, 4, 0), k = packed_part(p, "k", qkv, 3, 1, 4, 4),
                v = packed_part(p, "v", qkv, 3, 1, 4, 8);
  const ValueId o = attention_forward(p, {false, 0.5}, f64_math, "attention", q, k, v).o;
  const ValueId projected =
      gemm(p, {}, f64_math, "wide", p.part(o, tensor("rows", DType::f64, {3, 4}, Role::activation), 0),
           parameter(p, "wide.w", {4, 12}))
          .c;
  const ValueId y = add(p, f64_math, "sum", projected, scale(p, {0.25}, f64_math, "scaled", qkv));

  expect_gradients_agree(p, y, {x, w});
}

TEST(Differentiate, APartWithSeveralReadersIsAddedUpIntoThePackedGradient) {
  // the same q against two sets of keys; both kv pairs are parts of the packed value as well
  Program p;
  const ValueId x = source(p, "x", DType::f64, {3, 4}), w = parameter(p, "w", {4, 10});
  const ValueId packed = gemm(p, {}, f64_math, "packed", x, w).c;
  const ValueId q = packed_part(p, "q", packed, 3, 1, 2, 0);
  const auto head = [&](const char* label, const char* k, const char* v, std::int64_t first) {
    return attention_forward(p, {true, 0.5}, f64_math, label, q, packed_part(p, k, packed, 3, 1, 2, first),
                             packed_part(p, v, packed, 3, 1, 2, first + 2))
        .o;
  };
  const ValueId one = head("one", "k1", "v1", 2);
  const ValueId y = add(p, f64_math, "sum", one, head("two", "k2", "v2", 6));

  expect_gradients_agree(p, y, {w});
}

TEST(Differentiate, PartsOfASourceCanBeWantedOneByOne) {
  Program p;
  const ValueId qkv = source(p, "qkv", DType::f64, {3, 12});
  const ValueId q = packed_part(p, "q", qkv, 3, 1, 4, 0), k = packed_part(p, "k", qkv, 3, 1, 4, 4),
                v = packed_part(p, "v", qkv, 3, 1, 4, 8);
  const ValueId o = attention_forward(p, {true, 0.5}, f64_math, "attention", q, k, v).o;

  expect_gradients_agree(p, o, {k});
}

TEST(Differentiate, ASourceIsWantedAsAWhole) {
  Program p;
  const ValueId qkv = source(p, "qkv", DType::f64, {3, 12});
  const ValueId q = packed_part(p, "q", qkv, 3, 1, 4, 0), k = packed_part(p, "k", qkv, 3, 1, 4, 4),
                v = packed_part(p, "v", qkv, 3, 1, 4, 8);
  const ValueId o = attention_forward(p, {true, 0.5}, f64_math, "attention", q, k, v).o;

  expect_gradients_agree(p, o, {qkv});
  EXPECT_EQ(p.ops().size(), 2U);
}

TEST(Differentiate, ALossNeedsNoSeedGradient) {
  // d(mean cross-entropy)/d(logits) of two equal logits and label 0: (p - 1, p) = (-1/2, 1/2); logits = x w, x = (2)
  Program p;
  const ValueId x = source(p, "x", DType::f64, {1, 1}), w = parameter(p, "w", {1, 2});
  const ValueId labels = source(p, "labels", DType::i32, {1});
  const ValueId logits = gemm(p, {}, f64_math, "logits", x, w).c;
  const ValueId loss = cross_entropy_forward(p, f64_math, "loss", logits, labels).loss;

  const auto gradients = differentiate(p, std::array{Seed{loss, {}}}, std::array{w});

  TextbookRun run(p);
  run.set(x, {2});
  run.set(w, {0, 0});
  run.set(labels, {0});
  run.run();
  expect_near(run.get(gradients.at(w)), {-1, 1}, 1e-14);
}

TEST(Differentiate, GradientsOfSeveralReadersAreAddedOnce) {
  // y = x + 3 x: dx = dy + 3 dy
  Program p;
  const ValueId x = source(p, "x", DType::f64, {2});
  const ValueId y = add(p, f64_math, "y", x, scale(p, {3.0}, f64_math, "three", x));
  const ValueId dy = source(p, "dy", DType::f64, {2});

  const auto gradients = differentiate(p, std::array{Seed{y, dy}}, std::array{x});

  TextbookRun run(p);
  run.set(x, {1, 1});
  run.set(dy, {1, 10});
  run.run();
  EXPECT_EQ(run.get(gradients.at(x)), (std::vector<double>{4, 40}));
  EXPECT_EQ(count(p, add_kind), 2);  // the forward's, and one for the sum
}

TEST(Differentiate, AValueReadTwiceByOneOpCountsTwice) {
  Program p;
  const ValueId x = source(p, "x", DType::f64, {2, 2});
  const ValueId y = gemm(p, {}, f64_math, "square", x, x).c;

  expect_gradients_agree(p, add(p, f64_math, "y", y, y), {x});
}

TEST(Differentiate, AGradientThatIsContributedOnceIsUsedAsItIs) {
  Program p;
  const ValueId a = source(p, "a", DType::f32, {2}), b = source(p, "b", DType::f32, {2});
  const ValueId y = add(p, f32_math, "y", a, b);
  const ValueId dy = source(p, "dy", DType::f32, {2});

  const auto gradients = differentiate(p, std::array{Seed{y, dy}}, std::array{a, b});

  EXPECT_EQ(gradients.at(a), dy);
  EXPECT_EQ(gradients.at(b), dy);
  EXPECT_EQ(p.ops().size(), 1U);
}

TEST(Differentiate, SeveralSeedsAddUp) {
  // u = 2 x, y = 3 u; seeds du = 1 at u and dy = 1 at y: dx = 2 (1 + 3)
  Program p;
  const ValueId x = source(p, "x", DType::f64, {1});
  const ValueId u = scale(p, {2.0}, f64_math, "u", x);
  const ValueId y = scale(p, {3.0}, f64_math, "y", u);
  const ValueId du = source(p, "du", DType::f64, {1}), dy = source(p, "dy", DType::f64, {1});

  const auto gradients = differentiate(p, std::array{Seed{u, du}, Seed{y, dy}}, std::array{x});

  TextbookRun run(p);
  for (const ValueId id : {x, du, dy}) run.set(id, {1});
  run.run();
  EXPECT_EQ(run.get(gradients.at(x)), (std::vector<double>{8}));
}

TEST(Differentiate, OnlyWhatIsNeededIsComputed) {
  // The gradient of the last weight needs neither the first layer's backward nor that of the input.
  Program p;
  const ValueId x = source(p, "x", DType::f32, {4, 4});
  const ValueId w1 = source(p, "w1", DType::f32, {4, 4}), w2 = source(p, "w2", DType::f32, {4, 4});
  const ValueId y = gemm(p, {}, f32_math, "two", gemm(p, {}, f32_math, "one", x, w1).c, w2).c;
  const ValueId dy = source(p, "dy", DType::f32, {4, 4});

  const auto gradients = differentiate(p, std::array{Seed{y, dy}}, std::array{w2});

  EXPECT_EQ(p.ops().size(), 3U);
  EXPECT_EQ(p.spec(gradients.at(w2)).to_string(), "d(w2): f32[4, 4]");
}

TEST(Differentiate, AWantedPartDoesNotDragItsSiblingsAlong) {
  Program p;
  const ValueId whole = source(p, "whole", DType::f64, {8});
  const ValueId a = p.part(whole, tensor("a", DType::f64, {4}, Role::input), 0);
  const ValueId b = p.part(whole, tensor("b", DType::f64, {4}, Role::input), 4);
  const ValueId y = add(p, f64_math, "y", scale(p, {2.0}, f64_math, "two", a), scale(p, {3.0}, f64_math, "three", b));

  expect_gradients_agree(p, y, {a});
  EXPECT_EQ(p.ops().size(), 4U);  // one more: the scale by 2, backwards
}

TEST(Differentiate, AWeightThatWasUpdatedBeforeTheForwardIsReadAsUpdated) {
  Program p;
  const ValueId lr = source(p, "lr", DType::f32, {1}), step = source(p, "step", DType::i32, {1});
  const std::array tensors{AdamWTensor{source(p, "w", DType::f32, {4, 4}),
                                       source(p, "g", DType::f32, {4, 4}),
                                       source(p, "m", DType::f32, {4, 4}),
                                       source(p, "v", DType::f32, {4, 4}),
                                       {}}};
  adamw(p, {}, f32_math, "adamw", lr, step, tensors);
  const ValueId updated = p.op(0).outputs[0];
  const ValueId x = source(p, "x", DType::f32, {4, 4}), dy = source(p, "dy", DType::f32, {4, 4});
  const ValueId y = gemm(p, {}, f32_math, "y", x, updated).c;

  (void)differentiate(p, std::array{Seed{y, dy}}, std::array{x});

  ASSERT_EQ(p.ops().size(), 3U);
  EXPECT_EQ(p.op(2).inputs[1], updated);
}

TEST(Differentiate, StopsAtAWantedWeightThatSetUpMade) {
  Program p;
  const ValueId master = source(p, "w.master", DType::f32, {4, 4}), x = source(p, "x", DType::bf16, {4, 4});
  p.begin(Phase::setup);
  const ValueId w = cast(p, DType::bf16, "w", master);
  p.begin(Phase::timed);
  const ValueId y = gemm(p, {}, f32_math, "y", x, w).c;
  const ValueId dy = source(p, "dy", DType::bf16, {4, 4});

  const auto gradients = differentiate(p, std::array{Seed{y, dy}}, std::array{w});

  EXPECT_EQ(p.ops().size(), 3U);
  EXPECT_EQ(p.spec(gradients.at(w)).dtype, DType::bf16);
  EXPECT_EQ(p.op(2).phase, Phase::timed);
}

TEST(Differentiate, AWantedValueWithoutInfluenceIsAnError) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2}), idle = source(p, "idle", DType::f32, {2});
  const ValueId y = scale(p, {2.0}, f32_math, "y", x);
  const ValueId dy = source(p, "dy", DType::f32, {2});

  EXPECT_EQ(program_error([&] {
              (void)differentiate(p, std::array{Seed{y, dy}}, std::array{x, idle});
            }),
            "differentiate: 'idle' is wanted but influences no seed");
}

TEST(Differentiate, APartThatNothingFlowsIntoIsAnErrorNamingIt) {
  // only the first half of x w is read
  Program p;
  const ValueId x = source(p, "x", DType::f64, {2, 2}), w = source(p, "w", DType::f64, {2, 4});
  const ValueId packed = gemm(p, {}, f64_math, "packed", x, w).c;
  TensorSpec half = tensor("half", DType::f64, {2, 2}, Role::activation);
  half.layout.strides = {4, 1};
  const ValueId first = p.part(packed, half, 0);
  half.name = "other half";
  p.part(packed, half, 2);
  const ValueId y = scale(p, {2.0}, f64_math, "y", first);
  const ValueId dy = source(p, "dy", DType::f64, {2, 2});

  const std::string message = program_error([&] { (void)differentiate(p, std::array{Seed{y, dy}}, std::array{w}); });

  EXPECT_NE(message.find("nothing flows into 'other half'"), std::string::npos) << message;
}

TEST(Differentiate, ReadingAValueThatWasOverwrittenIsAnError) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2, 4}), w = source(p, "w", DType::f32, {4, 8}),
                labels = source(p, "labels", DType::i32, {2});
  const ValueId logits = gemm(p, {}, f32_math, "logits", x, w).c;
  const CrossEntropyForward forward = cross_entropy_forward(p, f32_math, "loss", logits, labels);
  cross_entropy_backward(p, f32_math, "by hand", logits, labels, forward.lse, true);

  const std::string message = program_error([&] {
    (void)differentiate(p, std::array{Seed{forward.loss, {}}}, std::array{w});
  });

  EXPECT_NE(message.find("would read 'logits' after op 'by hand' has overwritten it"), std::string::npos) << message;
}

TEST(Differentiate, AnOpWithoutDerivativeOnTheWayIsAnError) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {4});
  const ValueId norm = gradient_norm(p, f32_math, "norm", std::array{x});
  const ValueId seed = source(p, "seed", DType::f32, p.spec(norm).shape);

  const std::string message = program_error([&] {
    (void)differentiate(p, std::array{Seed{norm, seed}}, std::array{x});
  });

  EXPECT_NE(message.find("gradient_norm has no derivative"), std::string::npos) << message;
}

TEST(Differentiate, ASeedThatIsNoLossNeedsAGradient) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {4});
  const ValueId y = scale(p, {2.0}, f32_math, "y", x);

  EXPECT_NE(program_error([&] {
              (void)differentiate(p, std::array{Seed{y, {}}}, std::array{x});
            }).find("has no gradient"),
            std::string::npos);
}

TEST(Differentiate, ASeedGradientOfAnotherShapeIsAnError) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {4});
  const ValueId y = scale(p, {2.0}, f32_math, "y", x);
  const ValueId dy = source(p, "dy", DType::f32, {2, 2});

  EXPECT_NE(program_error([&] {
              (void)differentiate(p, std::array{Seed{y, dy}}, std::array{x});
            }).find("does not fit its value"),
            std::string::npos);
}

TEST(Differentiate, IntegersHaveNoGradients) {
  Program p;
  const ValueId tokens = source(p, "tokens", DType::i32, {4});
  const ValueId x = source(p, "x", DType::f32, {1});

  EXPECT_NE(program_error([&] {
              (void)differentiate(p, std::array{Seed{x, {}}}, std::array{tokens});
            }).find("of type i32"),
            std::string::npos);
}

}  // namespace differentiate_test
}  // namespace gpubench::testing
