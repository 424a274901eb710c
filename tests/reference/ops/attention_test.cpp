#include "reference/ops/attention.h"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "tests/reference/ops/float_attention.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace attention_test {

struct Example {
  Program program;
  ValueId q, k, v;
  AttentionForward out;

  Example(const Attention& attention, DType type, std::int64_t b, std::int64_t s, std::int64_t hq, std::int64_t hkv,
          std::int64_t d) {
    const Math math = type == DType::f64 ? f64_math : f32_math;
    q = source(program, "q", type, {b, s, hq, d});
    k = source(program, "k", type, {b, s, hkv, d});
    v = source(program, "v", type, {b, s, hkv, d});
    out = attention_forward(program, attention, math, "attention", q, k, v);
  }
  void fill(TextbookRun& run, double size = 1.0) const {
    std::uint64_t seed = 1;
    for (const ValueId id : {q, k, v}) {
      std::vector<double> values = spread(program.spec(id).shape.elements(), seed++);
      for (double& value : values) value *= size;
      run.set(id, values);
    }
  }
};

TEST(Attention, WithOneKeyReturnsItsValueAndItsScore) {
  Example s({true, 0.5}, DType::f64, 1, 1, 1, 1, 2);
  TextbookRun run(s.program);
  run.set(s.q, {1, 2});
  run.set(s.k, {3, 4});  // score 0.5 * (3 + 8)
  run.set(s.v, {7, -9});

  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{7, -9}));
  EXPECT_EQ(values_of(run.judge(0, 1)), (std::vector<double>{5.5}));
}

TEST(Attention, TwoKeysWorkedOutByHand) {
  // q = 1, scores 0 and ln 3: p = 1/4, 3/4; o = (4 + 3 * 8) / 4 = 7; lse = ln 4. Row 1 has q = 0: p = 1/2, o = 6, ln 2.
  Example s({false, 1.0}, DType::f64, 1, 2, 1, 1, 1);
  TextbookRun run(s.program);
  run.set(s.q, {1, 0});
  run.set(s.k, {0, std::log(3.0)});
  run.set(s.v, {4, 8});

  expect_near(values_of(run.judge(0, 0)), {7, 6}, 1e-14);
  expect_near(values_of(run.judge(0, 1)), {std::log(4.0), std::log(2.0)}, 1e-15);
}

// Merges attention to 3 and to 4 of 7 keys, in fp64.
TEST(Attention, ToTwoSetsOfKeysIsJoinedToThatToAllOfThem) {
  constexpr std::int64_t b = 2, s = 5, heads = 3, d = 4;
  Program p;
  const ValueId q = source(p, "q", DType::f64, {b, s, heads, d});
  const auto keys = [&](const char* name, std::int64_t count) { return source(p, name, DType::f64, {b, count, 1, d}); };
  const ValueId k = keys("k", 7), v = keys("v", 7), k1 = keys("k1", 3), v1 = keys("v1", 3), k2 = keys("k2", 4),
                v2 = keys("v2", 4);
  const Attention full{.causal = false, .scale = 2.0};
  const AttentionForward all = attention_forward(p, full, f64_math, "all", q, k, v);
  const AttentionForward joined =
      attention_merge(p, f64_math, "joined", attention_forward(p, full, f64_math, "first", q, k1, v1),
                      attention_forward(p, full, f64_math, "second", q, k2, v2));
  TextbookRun run(p);
  run.set(q, spread(b * s * heads * d, 1));
  for (const auto& [whole, first, second, seed] : {std::tuple{k, k1, k2, 2}, {v, v1, v2, 3}}) {
    const std::vector<double> values = spread(b * 7 * d, seed);
    std::vector<double> of_first, of_second;
    for (std::size_t i = 0; i < values.size(); ++i) (i / d % 7 < 3 ? of_first : of_second).push_back(values[i]);
    run.set(whole, values);
    run.set(first, of_first);
    run.set(second, of_second);
  }
  run.run();

  expect_near(run.get(joined.o), run.get(all.o), 1e-14);
  expect_near(run.get(joined.lse), run.get(all.lse), 1e-14);
}

// Weights 1/4 and 3/4 of 4 and 8; a part without keys leaves the other unchanged.
TEST(Attention, PartsAreWeighedByTheirLogSumExps) {
  Program p;
  const auto part = [&](const std::string& name) {
    return AttentionForward{source(p, name + ".o", DType::f32, {1, 2, 1, 1}),
                            source(p, name + ".lse", DType::f32, {1, 1, 2})};
  };
  const AttentionForward one = part("one"), other = part("other");
  attention_merge(p, f32_math, "joined", one, other);
  TextbookRun run(p);
  run.set(one.o, {4, 5});
  run.set(one.lse, {0, 100});
  run.set(other.o, {8, 7});
  run.set(other.lse, {std::log(3.0), -std::numeric_limits<double>::infinity()});

  expect_near(values_of(run.judge(0, 0)), {7, 5}, 1e-6);
  expect_near(values_of(run.judge(0, 1)), {std::log(4.0), 100}, 1e-6);
  // As f32 would compute it, and a weight that is off by a thousandth.
  EXPECT_TRUE(within(run.judge(0, 0)[0], DType::f32, 7.0000005));
  EXPECT_FALSE(within(run.judge(0, 0)[0], DType::f32, 7.001));
  EXPECT_EQ(program_error([&] {
              attention_merge(p, f32_math, "odd", one, {other.o, one.o});
            }),
            "attention_merge: tensor 'one.o' has shape [1, 2, 1, 1]; expected [1, 1, 2]");
}

TEST(Attention, TheFirstCausalRowSeesOnlyTheFirstKey) {
  Example s({true, 1.0}, DType::f64, 2, 5, 2, 2, 3);
  TextbookRun run(s.program);
  s.fill(run);
  const auto o = run.judge(0, 0);

  for (const std::int64_t batch : {0, 1}) {
    for (std::int64_t e = 0; e < 6; ++e) EXPECT_EQ(o[batch * 30 + e].value, run.view(s.v)[batch * 30 + e]);
  }
}

// Four queries of two keys: the first two see none, the third the first key, the last both.
TEST(Attention, OfMoreCausalQueriesThanKeysTheFirstSeeNone) {
  for (const bool sinks : {false, true}) {
    Program p;
    const ValueId q = source(p, "q", DType::f64, {1, 4, 1, 1}), k = source(p, "k", DType::f64, {1, 2, 1, 1});
    const ValueId v = source(p, "v", DType::f64, {1, 2, 1, 1}), d_o = source(p, "do", DType::f64, {1, 4, 1, 1});
    AttentionOptions options;
    if (sinks) options.sinks = source(p, "sinks", DType::f64, {1});
    const Attention attention{.causal = true, .scale = 1.0, .window = 2};
    const AttentionForward out = attention_forward(p, attention, f64_math, "a", q, k, v, options);
    const AttentionBackward back =
        attention_backward(p, attention, f64_math, "b", d_o, q, k, v, out.o, out.lse, options);
    TextbookRun run(p);
    run.set(q, {5, -5, 0, 0});
    run.set(k, {1, 1});
    run.set(v, {3, 5});
    run.set(d_o, {1, 1, 1, 1});
    if (sinks) run.set(*options.sinks, {0.0});
    run.run();
    // A sink of score 0 weighs as much as each key, and has no value.
    EXPECT_EQ(run.get(out.o), sinks ? (std::vector<double>{0, 0, 1.5, 8.0 / 3.0}) : (std::vector<double>{0, 0, 3, 4}));
    const std::vector<double> lse = run.get(out.lse);
    for (const std::size_t none : {0, 1}) EXPECT_EQ(lse[none], sinks ? 0.0 : -HUGE_VAL);
    EXPECT_NEAR(lse[3], std::log(sinks ? 3.0 : 2.0), 1e-15);
    EXPECT_EQ(run.get(back.dq)[0], 0.0);
    expect_near(run.get(back.dv),
                sinks ? std::vector<double>{1.0 / 2 + 1.0 / 3, 1.0 / 3} : std::vector<double>{1.5, 0.5}, 1e-15);
    for (int op = 0; op < 2; ++op) {
      for (int output = 0; output < static_cast<int>(p.op(op).outputs.size()); ++output) {
        for (const Expected& one : run.judge(op, output)) EXPECT_FALSE(std::isnan(one.bound)) << op << " " << output;
      }
    }
  }
}

TEST(Attention, CostCountsTheKeysThatAreSeen) {
  Program p;
  const ValueId q = source(p, "q", DType::f32, {1, 4, 1, 8}), k = source(p, "k", DType::f32, {1, 2, 1, 8});
  (void)attention_forward(p, {}, f32_math, "a", q, k, k);
  EXPECT_EQ(cost_of(p, p.op(0)).flop, 2 * 3 * 16);
}

TEST(Attention, ProbabilitiesOfARowSumToOne) {
  Example s({false, 0.3}, DType::f64, 1, 20, 1, 1, 4);
  TextbookRun run(s.program);
  s.fill(run, 3.0);
  run.set(s.v, std::vector<double>(80, 2.5));

  expect_near(values_of(run.judge(0, 0)), std::vector<double>(80, 2.5), 1e-14);
}

TEST(Attention, GroupedQueriesAreHeadsWithRepeatedKeysAndValues) {
  Example grouped({true, 0.5}, DType::f64, 2, 6, 4, 2, 3);
  Example repeated({true, 0.5}, DType::f64, 2, 6, 4, 4, 3);
  TextbookRun a(grouped.program), b(repeated.program);
  grouped.fill(a);
  b.set(repeated.q, a.get(grouped.q));
  const auto repeat = [](const std::vector<double>& rows) {  // heads 0, 0, 1, 1 of [2, 6, 2, 3]
    std::vector<double> result;
    for (std::size_t row = 0; row < rows.size(); row += 3) {
      for (int copy = 0; copy < 2; ++copy) result.insert(result.end(), rows.begin() + row, rows.begin() + row + 3);
    }
    return result;
  };
  b.set(repeated.k, repeat(a.get(grouped.k)));
  b.set(repeated.v, repeat(a.get(grouped.v)));

  EXPECT_EQ(values_of(a.judge(0, 0)), values_of(b.judge(0, 0)));
  EXPECT_EQ(values_of(a.judge(0, 1)), values_of(b.judge(0, 1)));
}

TEST(Attention, PartsOfAPackedTensorGiveWhatDenseTensorsGive) {
  Example dense({true, 0.5}, DType::f32, 2, 5, 2, 1, 4);
  Program p;
  const ValueId qkv = source(p, "qkv", DType::f32, {10, 16});
  const auto part = [&](const char* name, std::int64_t heads, std::int64_t first) {
    TensorSpec spec = tensor(name, DType::f32, {2, 5, heads, 4}, Role::input);
    spec.layout.strides = {80, 16, 4, 1};
    return p.part(qkv, spec, first);
  };
  const ValueId q = part("q", 2, 0), k = part("k", 1, 8), v = part("v", 1, 12);
  attention_forward(p, {true, 0.5}, f32_math, "attention", q, k, v);
  TextbookRun a(dense.program), b(p);
  dense.fill(a);
  b.set(q, a.get(dense.q));
  b.set(k, a.get(dense.k));
  b.set(v, a.get(dense.v));

  EXPECT_EQ(values_of(a.judge(0, 0)), values_of(b.judge(0, 0)));
  EXPECT_EQ(values_of(a.judge(0, 1)), values_of(b.judge(0, 1)));
}

// Rejected elements of a flash-like single-precision forward (bf16: probabilities are cast, as in kernels).
struct Rejected {
  int o = 0, lse = 0;
};
Rejected judge_float(DType type, const FloatAttentionFaults& faults, double size = 1.5) {
  constexpr std::int64_t rows = 150, d = 64;
  Example s({true, 0.125}, type, 1, rows, 1, 1, d);
  TextbookRun run(s.program);
  s.fill(run, size);
  const FloatAttention got =
      attention_in_float({run.get(s.q), run.get(s.k), run.get(s.v)}, rows, d, 0.125F, type, faults);
  const auto o = run.judge(0, 0), lse = run.judge(0, 1);
  Rejected rejected;
  for (std::size_t i = 0; i < o.size(); ++i) rejected.o += within(o[i], type, round_to(type, got.o[i])) ? 0 : 1;
  for (std::size_t i = 0; i < lse.size(); ++i) rejected.lse += within(lse[i], DType::f32, got.lse[i]) ? 0 : 1;
  return rejected;
}

TEST(Attention, CorrectSinglePrecisionIsAccepted) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const double size : {0.1, 1.5, 6.0}) {
      const Rejected rejected = judge_float(type, {}, size);
      EXPECT_EQ(rejected.o, 0) << name(type) << " size " << size;
      EXPECT_EQ(rejected.lse, 0) << name(type) << " size " << size;
    }
  }
}

TEST(Attention, AScaleThatIsOffBySixteenInAThousandIsRejectedByTheLogSumExp) {
  EXPECT_GE(judge_float(DType::bf16, {.scale = 1.016F}).lse, 140);
}

TEST(Attention, AMaskThatLeaksOneKeyIsRejected) {
  const Rejected rejected = judge_float(DType::bf16, {.leak = 1});

  EXPECT_EQ(rejected.lse, 149);  // every row but the last, which has no key to leak
  EXPECT_GE(rejected.o, 64);
}

TEST(Attention, ALostBlockOfKeysIsRejected) { EXPECT_GE(judge_float(DType::bf16, {.lost_keys = 16}).lse, 130); }

TEST(Attention, ScoresRoundedToBf16AreRejectedByTheLogSumExp) {
  EXPECT_GE(judge_float(DType::bf16, {.scores = DType::bf16}).lse, 75);
}

TEST(Attention, ProbabilitiesCastToEightBitsAreRejected) {
  EXPECT_GE(judge_float(DType::bf16, {.coarse_probabilities = true}).o, 150 * 64 * 4 / 10);
}

TEST(Attention, ALogarithmOfFiveDigitsIsRejected) {
  EXPECT_GE(judge_float(DType::f32, {.five_digit_ln2 = true}).lse, 100);
}

TEST(Attention, SubsetsAgreeWithTheWhole) {
  for (const bool causal : {true, false}) {
    Example s({causal, 0.5}, DType::bf16, 2, 9, 4, 2, 8);
    TextbookRun run(s.program);
    s.fill(run);
    for (const int output : {0, 1}) expect_subsets_agree(run, 0, output);
  }
}

TEST(Attention, LandmarksAreFirstRowsTileEdgesAndTheLastRow) {
  Example s({}, DType::bf16, 1, 200, 1, 1, 8);
  TextbookRun run(s.program);

  EXPECT_EQ(run.units(0, 0).landmarks, (std::vector<std::int64_t>{0, 1, 2, 3, 63, 64, 127, 128, 199}));
}

TEST(Attention, CostHalvesWhenCausal) {
  // 4 B Hq S^2 D; causal counts S (S + 1) / 2 scores
  Example full({false, 1.0}, DType::bf16, 2, 10, 4, 2, 8);
  Example causal({true, 1.0}, DType::bf16, 2, 10, 4, 2, 8);

  EXPECT_EQ(cost_of(full.program).flop, 4.0 * 2 * 4 * 100 * 8);
  EXPECT_EQ(cost_of(causal.program).flop, 4.0 * 2 * 4 * 55 * 8);
  // q, o with 4 heads, k, v with 2, of 2 bytes; lse of 4
  EXPECT_EQ(cost_of(causal.program).bytes, 2.0 * 2 * 10 * 8 * (2 * 4 + 2 * 2) + 4.0 * 2 * 4 * 10);
}

TEST(Attention, MisfitsAreErrorsNamingTheTensor) {
  Program p;
  const ValueId q = source(p, "q", DType::f32, {1, 4, 3, 8}), k = source(p, "k", DType::f32, {1, 4, 2, 8});
  const ValueId longer = source(p, "longer", DType::f32, {1, 5, 3, 8});
  const ValueId documents = source(p, "documents", DType::i32, {1, 3}), sinks = source(p, "sinks", DType::f32, {2});
  TensorSpec spread_out = tensor("spread out", DType::f32, {1, 4, 3, 8}, Role::input);
  spread_out.layout.strides = {192, 48, 16, 2};
  const ValueId gaps = p.add(spread_out);

  EXPECT_NE(program_error([&] { attention_forward(p, {}, f32_math, "a", q, k, k); }).find("divides the 3 query heads"),
            std::string::npos);
  EXPECT_NE(program_error([&] {
              attention_forward(p, {}, f32_math, "a", q, longer, longer, {{}, documents});
            }).find("as many keys as the 4 queries of the documents"),
            std::string::npos);
  EXPECT_NE(program_error([&] { attention_forward(p, {}, f32_math, "a", q, q, q, {sinks}); }).find("'sinks'"),
            std::string::npos);
  EXPECT_NE(program_error([&] {
              attention_forward(p, {.causal = false, .window = 2}, f32_math, "a", q, q, q);
            }).find("window is 2; expected a number of keys, and causal attention"),
            std::string::npos);
  EXPECT_NE(
      program_error([&] { attention_forward(p, {.softcap = -1.0}, f32_math, "a", q, q, q); }).find("softcap is -1"),
      std::string::npos);
  EXPECT_NE(program_error([&] { attention_forward(p, {}, f32_math, "a", gaps, q, q); }).find("contiguous last axis"),
            std::string::npos);
}

}  // namespace attention_test
}  // namespace gpubench::testing
