#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "reference/ops/attention.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace attention_variants_test {

// One op on heads of d elements, `s` queries and `t` keys.
struct Example {
  Program program;
  ValueId q, k, v;
  AttentionOptions options;
  AttentionForward out;

  Example(const Attention& attention, DType type, const AttentionExtents& e, bool sinks = false,
          std::int64_t boundaries = 0) {
    q = source(program, "q", type, {e.b, e.s, e.hq, e.d});
    k = source(program, "k", type, {e.b, e.t, e.hkv, e.d});
    v = source(program, "v", type, {e.b, e.t, e.hkv, e.d_v == 0 ? e.d : e.d_v});
    if (sinks) options.sinks = source(program, "sinks", type == DType::f64 ? DType::f64 : DType::f32, {e.hq});
    if (boundaries > 0) options.documents = source(program, "documents", DType::i32, {e.b, boundaries});
    out =
        attention_forward(program, attention, type == DType::f64 ? f64_math : f32_math, "attention", q, k, v, options);
  }
};

constexpr AttentionExtents single(std::int64_t s, std::int64_t t) { return {1, s, 1, 1, 1, t}; }

// With q = 0 all keys weigh the same: o is the mean of the visible values 0, 1, 2, ..., lse the log of their number.
struct Seen {
  std::vector<double> mean, count;
};
Seen seen_by(const Attention& attention, std::int64_t s, std::int64_t t, const std::vector<double>& documents = {}) {
  Example x(attention, DType::f64, single(s, t), false, static_cast<std::int64_t>(documents.size()));
  TextbookRun run(x.program);
  run.set(x.q, std::vector<double>(static_cast<std::size_t>(s), 0.0));
  run.set(x.k, spread(t, 1));
  std::vector<double> values(static_cast<std::size_t>(t));
  for (std::size_t j = 0; j < values.size(); ++j) values[j] = static_cast<double>(j);
  run.set(x.v, values);
  if (x.options.documents) run.set(*x.options.documents, documents);
  Seen seen{values_of(run.judge(0, 0)), values_of(run.judge(0, 1))};
  for (double& count : seen.count) count = std::exp(count);
  return seen;
}

void expect_seen(const Seen& seen, const std::vector<double>& mean, const std::vector<double>& count) {
  expect_near(seen.mean, mean, 1e-14);
  expect_near(seen.count, count, 1e-14);
}

TEST(AttentionVariants, AWindowShowsEachQueryItsLastKeys) {
  expect_seen(seen_by({.window = 2}, 4, 4), {0, 0.5, 1.5, 2.5}, {1, 2, 2, 2});
  expect_seen(seen_by({.window = 1}, 3, 3), {0, 1, 2}, {1, 1, 1});
  expect_seen(seen_by({.window = 9}, 3, 3), {0, 0.5, 1}, {1, 2, 3});
}

TEST(AttentionVariants, TheLastOfFewerQueriesSeesTheLastKey) {
  expect_seen(seen_by({}, 2, 4), {1, 1.5}, {3, 4});
  expect_seen(seen_by({.window = 2}, 2, 4), {1.5, 2.5}, {2, 2});
  expect_seen(seen_by({.causal = false}, 2, 4), {1.5, 1.5}, {4, 4});
  expect_seen(seen_by({.causal = false}, 3, 1), {0, 0, 0}, {1, 1, 1});
}

TEST(AttentionVariants, AQuerySeesItsOwnDocument) {
  expect_seen(seen_by({}, 5, 5, {0, 2, 5}), {0, 0.5, 2, 2.5, 3}, {1, 2, 1, 2, 3});
  expect_seen(seen_by({.causal = false}, 5, 5, {0, 2, 5}), {0.5, 0.5, 3, 3, 3}, {2, 2, 3, 3, 3});
  expect_seen(seen_by({.window = 2}, 5, 5, {0, 2, 5}), {0, 0.5, 2, 2.5, 3.5}, {1, 2, 1, 2, 2});
}

TEST(AttentionVariants, DocumentsWithoutLengthAndBoundariesOutsideAreNone) {
  expect_seen(seen_by({}, 4, 4, {0, 2, 2, 4, 4}), {0, 0.5, 2, 2.5}, {1, 2, 1, 2});
  expect_seen(seen_by({}, 4, 4, {-3, 2, 7}), {0, 0.5, 2, 2.5}, {1, 2, 1, 2});
}

TEST(AttentionVariants, ValuesMayBeWiderThanQueriesAndKeys) {
  Example x({}, DType::f64, {1, 2, 1, 1, 1, 2, 3});
  TextbookRun run(x.program);
  run.set(x.q, {0, 0});
  run.set(x.k, {5, -5});
  run.set(x.v, {1, 2, 3, 5, 8, 13});

  expect_near(values_of(run.judge(0, 0)), {1, 2, 3, 3, 5, 8}, 1e-14);
}

TEST(AttentionVariants, SoftcapLimitsTheScore) {
  // q k / cap = atanh(1/2), so the score is half the cap; a huge one is the cap.
  Example x({.softcap = 4.0}, DType::f64, single(1, 1));
  TextbookRun run(x.program);
  run.set(x.q, {1.0});
  run.set(x.v, {3.0});
  run.set(x.k, {4.0 * std::atanh(0.5)});
  expect_near(values_of(run.judge(0, 1)), {2.0}, 1e-15);
  run.set(x.k, {1e30});
  expect_near(values_of(run.judge(0, 1)), {4.0}, 1e-15);
}

TEST(AttentionVariants, ASinkTakesItsShareAndHasNoValue) {
  // exp(0) of the key, exp(ln 3) of the sink: a quarter.
  Example x({}, DType::f64, single(1, 1), true);
  TextbookRun run(x.program);
  run.set(x.q, {0.0});
  run.set(x.k, {5.0});
  run.set(x.v, {8.0});
  run.set(*x.options.sinks, {std::log(3.0)});

  expect_near(values_of(run.judge(0, 0)), {2.0}, 1e-15);
  expect_near(values_of(run.judge(0, 1)), {std::log(4.0)}, 1e-15);
}

TEST(AttentionVariants, TheGradientOfASinkWorkedOutByHand) {
  // Two queries of one head with D = do o = 6 and -1, exp(sink - lse) = 1/4 and 1/2: -(6/4 - 1/2) = -1.
  Program p;
  const auto head = [&](const char* name) { return source(p, name, DType::f64, {1, 2, 1, 1}); };
  const ValueId d_o = head("do"), q = head("q"), k = head("k"), v = head("v"), o = head("o");
  const ValueId lse = source(p, "lse", DType::f64, {1, 1, 2}), sinks = source(p, "sinks", DType::f64, {1});
  attention_backward(p, {}, f64_math, "backward", d_o, q, k, v, o, lse, {sinks});
  TextbookRun run(p);
  run.set(d_o, {2, 1});
  run.set(o, {3, -1});
  run.set(q, {1, 1});
  run.set(k, {1, 1});
  run.set(v, {1, 1});
  run.set(sinks, {0.0});
  run.set(lse, {std::log(4.0), std::log(2.0)});

  expect_near(values_of(run.judge(0, 3)), {-1.0}, 1e-15);
}

TEST(AttentionVariants, BackwardAgreesWithCentralDifferencesOfTheForward) {
  struct Variant {
    Attention attention;
    std::int64_t t = 5;
    bool sinks = false;
    std::vector<double> documents;
    std::int64_t d_v = 3;
  };
  for (const Variant& variant : std::vector<Variant>{{{.scale = 0.7, .window = 3}, 5, false, {}},
                                                     {{.scale = 0.7}, 8, false, {}},
                                                     {{.causal = false, .scale = 0.7}, 3, false, {}},
                                                     {{.scale = 0.7, .softcap = 0.8}, 5, false, {}},
                                                     {{.scale = 0.7}, 5, true, {}},
                                                     {{.scale = 0.7}, 5, true, {}, 2},
                                                     {{.scale = 0.7}, 6, false, {}, 5},
                                                     {{.scale = 0.7}, 5, false, {0, 1, 4, 5, 0, 2, 2, 5}},
                                                     {{.scale = 0.7, .window = 2, .softcap = 0.8}, 7, true, {}}}) {
    const AttentionExtents e{2, 5, 4, 2, 3, variant.t, variant.d_v};
    Example x(variant.attention, DType::f64, e, variant.sinks, static_cast<std::int64_t>(variant.documents.size() / 2));
    std::map<ValueId, std::vector<double>> fixed{
        {x.q, spread(2 * 5 * 4 * 3, 1)}, {x.k, spread(2 * e.t * 2 * 3, 2)}, {x.v, spread(2 * e.t * 2 * e.d_v, 3)}};
    std::vector<ValueId> wanted{x.q, x.k, x.v};
    if (x.options.sinks) {
      fixed[*x.options.sinks] = spread(4, 4);
      wanted.push_back(*x.options.sinks);
    }
    if (x.options.documents) fixed[*x.options.documents] = variant.documents;

    expect_derivative_agrees(x.program, x.out.o, fixed, wanted);
  }
}

// Sets each element of an input to infinity in turn. Returns the number of finite results, whose bounds must be finite.
int judge_infinities(TextbookRun& run, const Program& program, int op, ValueId input) {
  const OpCall& call = program.op(op);
  const std::vector<double> usual = run.get(input);
  int finite = 0;
  for (std::size_t i = 0; i < 2 * usual.size(); ++i) {
    std::vector<double> special = usual;
    special[i / 2] = i % 2 == 0 ? HUGE_VAL : -HUGE_VAL;
    run.set(input, special);
    for (int output = 0; output < static_cast<int>(call.outputs.size()); ++output) {
      for (const Expected& one : run.judge(op, output)) {
        if (!std::isfinite(one.value)) continue;
        ++finite;
        EXPECT_TRUE(std::isfinite(one.bound)) << call.label << " output " << output << ", " << special[i / 2]
                                              << " in element " << i / 2 << " of " << program.spec(input).to_string();
      }
    }
  }
  run.set(input, usual);
  return finite;
}

// A score of minus infinity is a key without weight; a log-sum-exp of infinity is a row of them. Other sums stay
// finite.
TEST(AttentionVariants, AnInfinityAnywhereLeavesFiniteBoundsWhereResultsAreFinite) {
  const AttentionExtents e{1, 4, 2, 1, 3, 4};
  int finite = 0;
  for (const Attention& attention : {Attention{.scale = 0.7}, Attention{.causal = false, .softcap = 0.8}}) {
    for (const DType type : {DType::f32, DType::bf16}) {
      Example x(attention, type, e, true);
      const ValueId d_o = source(x.program, "do", type, {1, 4, 2, 3});
      attention_backward(x.program, attention, f32_math, "backward", d_o, x.q, x.k, x.v, x.out.o, x.out.lse, x.options);
      TextbookRun run(x.program);
      std::uint64_t seed = 1;
      for (const ValueId id : {x.q, x.k, x.v, d_o, *x.options.sinks})
        run.set(id, spread(x.program.spec(id).shape.elements(), seed++));
      run.run(0);
      for (const int op : {0, 1}) {
        for (const ValueId input : x.program.op(op).inputs) finite += judge_infinities(run, x.program, op, input);
      }
    }
  }
  EXPECT_GT(finite, 10'000);
}

// Rejected elements of o and lse, of 96 rows of 16 elements, if computed with other attributes.
struct Rejected {
  int o = 0, lse = 0;
};
Rejected rejected(const Attention& attention, const Attention& other, std::optional<double> sink = {},
                  std::optional<double> other_sink = {}, const std::vector<double>& documents = {},
                  const std::vector<double>& other_documents = {}) {
  const AttentionExtents e{1, 96, 1, 1, 16, 96};
  const auto judged = [&](const Attention& attributes, const std::optional<double>& logit,
                          const std::vector<double>& boundaries, int output) {
    Example x(attributes, DType::bf16, e, logit.has_value(), static_cast<std::int64_t>(boundaries.size()));
    TextbookRun run(x.program);
    run.set(x.q, spread(96 * 16, 1));
    run.set(x.k, spread(96 * 16, 2));
    run.set(x.v, spread(96 * 16, 3));
    if (logit) run.set(*x.options.sinks, {*logit});
    if (x.options.documents) run.set(*x.options.documents, boundaries);
    return run.judge(0, output);
  };
  Rejected count;
  for (const int output : {0, 1}) {
    const std::vector<Expected> expected = judged(attention, sink, documents, output);
    const std::vector<Expected> got = judged(other, other_sink, other_documents, output);
    const DType type = output == 0 ? DType::bf16 : DType::f32;
    for (std::size_t i = 0; i < got.size(); ++i)
      (output == 0 ? count.o : count.lse) += within(expected[i], type, round_to(type, got[i].value)) ? 0 : 1;
  }
  return count;
}

TEST(AttentionVariants, WhatAnotherVariantComputesIsRejected) {
  EXPECT_EQ(rejected({}, {}).lse, 0);
  EXPECT_EQ(rejected({}, {}).o, 0);
  // 80 rows see one more key behind the window.
  EXPECT_EQ(rejected({.window = 16}, {.window = 17}).lse, 80);
  EXPECT_GE(rejected({.window = 16}, {.window = 17}).o, 80 * 8);
  // A boundary one too late: one query sees another document, and those after it lack a key: 48 rows.
  const std::vector<double> right{0, 48, 96}, late{0, 49, 96};
  EXPECT_EQ(rejected({}, {}, {}, {}, right, late).lse, 48);
  // 50 tanh(x / 50) of scores of about 1 lies 1e-4 below them.
  EXPECT_GE(rejected({.softcap = 50.0}, {}).lse, 80);
  EXPECT_EQ(rejected({}, {}, 2.0, {}).lse, 96);
  EXPECT_GE(rejected({}, {}, 2.0, {}).o, 96 * 8);
}

TEST(AttentionVariants, SubsetsAgreeWithTheWhole) {
  Example x({.window = 3, .softcap = 2.0}, DType::bf16, {2, 9, 4, 2, 8, 9}, true, 4);
  const auto [sinks, documents] = std::pair{*x.options.sinks, *x.options.documents};
  const ValueId d_o = source(x.program, "do", DType::bf16, {2, 9, 4, 8});
  attention_backward(x.program, {.window = 3, .softcap = 2.0}, f32_math, "backward", d_o, x.q, x.k, x.v, x.out.o,
                     x.out.lse, {sinks, documents});
  TextbookRun run(x.program);
  std::uint64_t seed = 1;
  for (const ValueId id : {x.q, x.k, x.v, d_o, sinks}) run.set(id, spread(x.program.spec(id).shape.elements(), seed++));
  run.set(documents, {0, 4, 4, 9, 0, 1, 2, 9});
  run.run(0);
  for (const int output : {0, 1}) expect_subsets_agree(run, 0, output);
  for (const int output : {0, 1, 2, 3}) expect_subsets_agree(run, 1, output);
}

// Pairs of query and key, counted by hand; 4 FLOP for each of d = 1.
TEST(AttentionVariants, CostCountsWhatIsSeen) {
  const auto pairs = [](const Attention& attention, std::int64_t s, std::int64_t t, std::int64_t boundaries = 0) {
    return cost_of(Example(attention, DType::bf16, single(s, t), false, boundaries).program).flop / 4.0;
  };
  EXPECT_EQ(pairs({}, 4, 6), 3 + 4 + 5 + 6);
  EXPECT_EQ(pairs({.causal = false}, 4, 6), 24);
  EXPECT_EQ(pairs({.window = 2}, 4, 4), 1 + 2 + 2 + 2);
  EXPECT_EQ(pairs({.window = 5}, 4, 6), 3 + 4 + 5 + 5);
  EXPECT_EQ(pairs({.window = 2}, 4, 6), 8);
  EXPECT_EQ(pairs({}, 8, 8, 3), 2 * (1 + 2 + 3 + 4));
  EXPECT_EQ(pairs({.causal = false}, 8, 8, 3), 2 * 16);
}

}  // namespace attention_variants_test
}  // namespace gpubench::testing
