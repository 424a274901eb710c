#include "reference/ops/rotary.h"

#include <gtest/gtest.h>

#include <array>

#include "reference/ops/attention.h"
#include "reference/ops/transform/differentiate.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace rotary_test {

constexpr Rotary half{};
constexpr Rotary interleaved{.pairing = Rotary::Pairing::interleaved};

struct RotaryProgram {
  Program program;
  ValueId x;
  RotaryTables tables{};
  ValueId y;
};

RotaryProgram rotary_program(const Rotary& attributes, const Shape& shape, DType dtype = DType::f32) {
  const bool is_double = dtype == DType::f64;
  const DType table = is_double ? DType::f64 : DType::f32;
  RotaryProgram r;
  r.x = source(r.program, "x", dtype, shape);
  r.tables.cos = source(r.program, "cos", table, {shape[1], shape[3] / 2});
  r.tables.sin = source(r.program, "sin", table, {shape[1], shape[3] / 2});
  r.y = rotary(r.program, attributes, is_double ? f64_math : f32_math, "rotary", r.x, r.tables);
  return r;
}

/// Tables of the paper: position * 10000^(-2i/d).
void set_angles(TextbookRun& run, const RotaryTables& tables, std::int64_t s, std::int64_t d) {
  std::vector<double> cos;
  std::vector<double> sin;
  for (std::int64_t position = 0; position < s; ++position) {
    for (std::int64_t i = 0; i < d / 2; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(d);
      const double angle = static_cast<double>(position) * std::pow(10000.0, exponent);
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
  }
  run.set(tables.cos, cos);
  run.set(tables.sin, sin);
}

// One token at position 0 with tables (2, 3) and (5, 7), x = (1, 10, 100, 1000).
std::vector<double> turned_by_hand(const Rotary& attributes) {
  RotaryProgram r = rotary_program(attributes, {1, 1, 1, 4});
  TextbookRun run(r.program);
  run.set(r.x, {1, 10, 100, 1000});
  run.set(r.tables.cos, {2, 3});
  run.set(r.tables.sin, {5, 7});
  run.run();
  return run.get(r.y);
}

TEST(Rotary, HalvesPairElementsHalfAHeadApart) {
  // pairs (1, 100) and (10, 1000): 1*2 - 100*5, 10*3 - 1000*7, 100*2 + 1*5, 1000*3 + 10*7
  EXPECT_EQ(turned_by_hand(half), (std::vector<double>{-498, -6970, 205, 3070}));
}

TEST(Rotary, InterleavedPairsAreNeighbours) {
  // pairs (1, 10) and (100, 1000): 1*2 - 10*5, 10*2 + 1*5, 100*3 - 1000*7, 1000*3 + 100*7
  EXPECT_EQ(turned_by_hand(interleaved), (std::vector<double>{-48, 25, -6700, 3700}));
}

TEST(Rotary, TheInverseTurnsTheOtherWay) {
  // sines -5 and -7
  EXPECT_EQ(turned_by_hand({.inverse = true}), (std::vector<double>{502, 7030, 195, 2930}));
  EXPECT_EQ(turned_by_hand({.pairing = Rotary::Pairing::interleaved, .inverse = true}),
            (std::vector<double>{52, 15, 7300, 2300}));
}

TEST(Rotary, EveryHeadOfAPositionIsTurnedByItsRowAndEverySequenceStartsAtTheFirst) {
  // b = 2, s = 2, h = 2, d = 2: cosines 1 and 10 of positions 0 and 1, sines 0; x counts 1, 2, ... 16
  RotaryProgram r = rotary_program(half, {2, 2, 2, 2});
  TextbookRun run(r.program);
  std::vector<double> numbers;
  for (int i = 1; i <= 16; ++i) numbers.push_back(i);
  run.set(r.x, numbers);
  run.set(r.tables.cos, {1, 10});
  run.set(r.tables.sin, {0, 0});

  run.run();

  EXPECT_EQ(run.get(r.y), (std::vector<double>{1, 2, 3, 4, 50, 60, 70, 80, 9, 10, 11, 12, 130, 140, 150, 160}));
}

TEST(Rotary, PositionZeroIsLeftAsItIs) {
  RotaryProgram r = rotary_program(half, {1, 3, 2, 8});
  TextbookRun run(r.program);
  run.set(r.x, spread(48, 1));
  set_angles(run, r.tables, 3, 8);

  run.run();

  const std::vector<double> x = run.get(r.x);
  const std::vector<double> y = run.get(r.y);
  EXPECT_TRUE(std::equal(x.begin(), x.begin() + 16, y.begin()));
  EXPECT_FALSE(std::equal(x.begin() + 16, x.end(), y.begin() + 16));
}

TEST(Rotary, TrueAnglesKeepTheLengthOfEveryPair) {
  for (const Rotary& attributes : {half, interleaved}) {
    RotaryProgram r = rotary_program(attributes, {1, 20, 3, 6}, DType::f64);
    TextbookRun run(r.program);
    run.set(r.x, spread(360, 1));
    set_angles(run, r.tables, 20, 6);

    run.run();

    const std::vector<double> x = run.get(r.x);
    const std::vector<double> y = run.get(r.y);
    for (std::size_t head = 0; head < 360; head += 6) {
      for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t first = head + (attributes == half ? i : 2 * i);
        const std::size_t second = first + (attributes == half ? 3 : 1);
        EXPECT_NEAR(std::hypot(y[first], y[second]), std::hypot(x[first], x[second]), 1e-15);
      }
    }
  }
}

TEST(Rotary, ScoresDependOnTheDistanceOfTheirPositions) {
  const std::int64_t s = 12, d = 8;
  const std::vector<double> q = spread(d, 1);
  const std::vector<double> k = spread(d, 2);
  for (const Rotary& attributes : {half, interleaved}) {
    RotaryProgram r = rotary_program(attributes, {1, s, 2, d}, DType::f64);
    TextbookRun run(r.program);
    std::vector<double> x;
    for (std::int64_t position = 0; position < s; ++position) {
      x.insert(x.end(), q.begin(), q.end());
      x.insert(x.end(), k.begin(), k.end());
    }
    run.set(r.x, x);
    set_angles(run, r.tables, s, d);
    run.run();
    const std::vector<double> y = run.get(r.y);
    const auto score = [&](std::size_t query, std::size_t key) {
      double sum = 0.0;
      for (std::size_t i = 0; i < 8; ++i) sum += y[query * 16 + i] * y[key * 16 + 8 + i];
      return sum;
    };

    for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(score(i + 4, i + 1), score(3, 0), 1e-13);
    EXPECT_GT(std::fabs(score(4, 0) - score(3, 0)), 1e-3);
  }
}

TEST(Rotary, TheInverseOfTrueAnglesGivesTheInputBack) {
  for (const Rotary& attributes : {half, interleaved}) {
    RotaryProgram r = rotary_program(attributes, {2, 5, 3, 8}, DType::f64);
    Rotary back = attributes;
    back.inverse = true;
    const ValueId again = rotary(r.program, back, f64_math, "back", r.y, r.tables);
    TextbookRun run(r.program);
    run.set(r.x, spread(240, 1));
    set_angles(run, r.tables, 5, 8);

    run.run();

    expect_near(run.get(again), run.get(r.x), 1e-15);
  }
}

TEST(Rotary, DerivativesAgreeWithDifferencesForAnyTables) {
  for (const auto pairing : {Rotary::Pairing::half, Rotary::Pairing::interleaved}) {
    for (const bool inverse : {false, true}) {
      RotaryProgram r = rotary_program({pairing, inverse}, {2, 2, 2, 4}, DType::f64);
      expect_derivative_agrees(
          r.program, r.y, {{r.x, spread(32, 1)}, {r.tables.cos, spread(4, 2)}, {r.tables.sin, spread(4, 3)}}, {r.x});
    }
  }
}

TEST(Rotary, TheGradientOfATableIsRefused) {
  RotaryProgram r = rotary_program(half, {1, 2, 1, 4});
  SingleOpTape tape(r.program);
  tape.given[r.y] = source(r.program, "dy", DType::f32, {1, 2, 1, 4});
  tape.wanted_inputs = {r.x, r.tables.sin};
  const OpCall forward = r.program.op(0);

  EXPECT_EQ(program_error([&] { definition(rotary_kind).derivative(r.program, forward, tape); }),
            "rotary: the gradient of table 'sin' of op 'rotary' is wanted; expected constant tables");
}

struct Packed {
  ValueId qkv, q, k, v;
};

Packed packed_qkv(Program& program, std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) {
  const std::int64_t width = 3 * h * d;
  const ValueId qkv = source(program, "qkv", DType::f64, {b * s, width});
  const auto part = [&](const char* name, std::int64_t first) {
    TensorSpec spec = tensor(name, DType::f64, {b, s, h, d}, Role::input);
    spec.layout.strides = {s * width, width, d, 1};
    return program.part(qkv, spec, first);
  };
  return {qkv, part("q", 0), part("k", h * d), part("v", 2 * h * d)};
}

TEST(Rotary, GradientsOfPackedQueriesAndKeysGoIntoOnePackedGradient) {
  Program program;
  const Packed packed = packed_qkv(program, 1, 3, 2, 4);
  const RotaryTables tables{source(program, "cos", DType::f64, {3, 2}), source(program, "sin", DType::f64, {3, 2})};
  const ValueId q = rotary(program, half, f64_math, "q.rotary", packed.q, tables);
  const ValueId k = rotary(program, half, f64_math, "k.rotary", packed.k, tables);
  const ValueId o = attention_forward(program, {}, f64_math, "attention", q, k, packed.v).o;
  const std::array<Seed, 1> seeds{Seed{o, source(program, "do", DType::f64, {1, 3, 2, 4}, Role::gradient)}};

  const ValueId dqkv = differentiate(program, seeds, std::array{packed.qkv}).at(packed.qkv);

  int turned_back = 0;
  for (const OpCall& op : program.ops()) {
    EXPECT_NE(op.kind.name, "reorder");
    if (op.kind != rotary_kind || !op.attributes.as<Rotary>().inverse) continue;
    ++turned_back;
    EXPECT_EQ(program.value(op.outputs[0]).storage, program.value(dqkv).storage);
  }
  EXPECT_EQ(turned_back, 2);
}

TEST(Rotary, PartsOfPackedStorageAreTurnedInPlaceAndTheOthersKept) {
  Program program;
  const Packed packed = packed_qkv(program, 2, 3, 2, 4);
  const RotaryTables tables{source(program, "cos", DType::f64, {3, 2}), source(program, "sin", DType::f64, {3, 2})};
  const ValueId turned =
      rotary(program, interleaved, f64_math, "k.rotary", packed.k, tables, program.update(packed.k, "k'"));
  const ValueId apart = rotary(program, interleaved, f64_math, "apart", packed.q, tables);
  TextbookRun run(program);
  run.set(packed.q, spread(48, 1));
  run.set(packed.k, spread(48, 1));
  run.set(packed.v, spread(48, 2));
  set_angles(run, tables, 3, 4);

  run.run();

  EXPECT_EQ(run.get(turned), run.get(apart));
  EXPECT_EQ(run.get(packed.k), run.get(turned));
  EXPECT_EQ(run.get(packed.q), spread(48, 1));
  EXPECT_EQ(run.get(packed.v), spread(48, 2));
  EXPECT_TRUE(program.is_state(program.value(turned).storage));
}

TEST(Rotary, TheBoundHasTwoRoundingsOfEachProduct) {
  RotaryProgram r = rotary_program(half, {1, 1, 1, 2});
  TextbookRun run(r.program);
  run.set(r.x, {3, -4});
  run.set(r.tables.cos, {0.5});
  run.set(r.tables.sin, {-2});

  const std::vector<Expected> y = run.judge(0, 0);

  EXPECT_EQ(y[0].value, 1.5 - 8);
  EXPECT_EQ(y[0].bound, 2 * 0x1p-24 * 9.5);
  EXPECT_EQ(y[1].value, -2 - 6);
  EXPECT_EQ(y[1].bound, 2 * 0x1p-24 * 8);
}

/// Accepted elements of y = R x; `turn` computes a pair from its table entries.
template <class Turn>
int accepted(const Turn& turn) {
  RotaryProgram r = rotary_program(interleaved, {1, 50, 4, 20});
  TextbookRun run(r.program);
  run.set(r.x, spread(4000, 1));
  set_angles(run, r.tables, 50, 20);
  const std::vector<double> x = run.get(r.x);
  const std::vector<double> cos = run.get(r.tables.cos);
  const std::vector<double> sin = run.get(r.tables.sin);
  const std::vector<Expected> judged = run.judge(0, 0);
  int count = 0;
  for (std::size_t pair = 0; pair < 2000; ++pair) {
    const std::size_t entry = pair / 40 * 10 + pair % 10;  // 4 heads of 10 pairs per position
    const auto [first, second] = turn(static_cast<float>(x[2 * pair]), static_cast<float>(x[2 * pair + 1]),
                                      static_cast<float>(cos[entry]), static_cast<float>(sin[entry]));
    count += within(judged[2 * pair], DType::f32, first) ? 1 : 0;
    count += within(judged[2 * pair + 1], DType::f32, second) ? 1 : 0;
  }
  return count;
}

TEST(Rotary, F32ArithmeticIsAcceptedWithAndWithoutFusedProducts) {
  EXPECT_EQ(accepted([](float a, float b, float c, float s) {
              const volatile float ac = a * c, bs = b * s, bc = b * c, as = a * s;
              return std::pair{ac - bs, bc + as};
            }),
            4000);
  EXPECT_EQ(accepted([](float a, float b, float c, float s) {
              return std::pair{std::fma(a, c, -(b * s)), std::fma(b, c, a * s)};
            }),
            4000);
}

TEST(Rotary, TypicalFaultsAreRejected) {
  // Position 0, 80 elements of 4000, is the same for every angle.
  EXPECT_LE(accepted([](float a, float b, float c, float s) {
              return std::pair{a * c + b * s, b * c - a * s};
            }),
            80 + 40);
  EXPECT_LE(accepted([](float a, float b, float c, float s) {
              const auto short_c = static_cast<float>(round_to(DType::bf16, c));  // tables kept in bf16
              const auto short_s = static_cast<float>(round_to(DType::bf16, s));
              return std::pair{a * short_c - b * short_s, b * short_c + a * short_s};
            }),
            80 + 40);
}

TEST(Rotary, SubsetsOfUnitsAgreeWithAll) {
  RotaryProgram r = rotary_program(half, {2, 9, 3, 14}, DType::bf16);
  TextbookRun run(r.program);
  run.set(r.x, spread(756, 1));
  set_angles(run, r.tables, 9, 14);

  expect_subsets_agree(run, 0, 0);
}

TEST(Rotary, CostsSixFlopPerPairAndMovesEveryTensorOnce) {
  const RotaryProgram r = rotary_program(half, {2, 16, 4, 8}, DType::bf16);
  const Cost cost = cost_of(r.program, r.program.op(0));

  EXPECT_EQ(cost.flop, 6.0 * 2 * 16 * 4 * 4);
  EXPECT_EQ(cost.bytes, 2.0 * (2 * 16 * 4 * 8) * 2 + 2.0 * (16 * 4) * 4);
}

TEST(Rotary, DescribesWhatDiffersFromTheDefault) {
  EXPECT_EQ(describe(half), "");
  EXPECT_EQ(describe(Rotary{.pairing = Rotary::Pairing::interleaved, .inverse = true}), "interleaved, inverse");
}

TEST(Rotary, AMismatchNamesTheTensorItsShapeAndWhatWasExpected) {
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {2, 3, 4, 6});
  const ValueId odd = source(program, "odd", DType::bf16, {2, 3, 4, 5});
  const ValueId flat = source(program, "flat", DType::bf16, {6, 24});
  const ValueId table = source(program, "table", DType::f32, {3, 3});
  const ValueId wide = source(program, "wide", DType::f32, {3, 6});
  const ValueId narrow = source(program, "narrow", DType::bf16, {3, 3});
  const auto refused = [&](ValueId data, const RotaryTables& tables) {
    return program_error([&] { (void)rotary(program, half, f32_math, "r", data, tables); });
  };

  EXPECT_EQ(refused(odd, {table, table}),
            "rotary: tensor 'odd' has shape [2, 3, 4, 5]; expected [b, s, heads, d] with at least one element and an "
            "even d");
  EXPECT_EQ(refused(flat, {table, table}),
            "rotary: tensor 'flat' has shape [6, 24]; expected [b, s, heads, d] with at least one element and an "
            "even d");
  EXPECT_EQ(refused(x, {table, wide}), "rotary: tensor 'wide' has shape [3, 6]; expected [3, 3]");
  EXPECT_EQ(refused(x, {narrow, table}), "rotary: tensor 'narrow' has type bf16; expected f32");
  const ValueId elsewhere = program.reserve(tensor("elsewhere", DType::f32, {2, 3, 4, 6}, Role::activation));
  EXPECT_EQ(program_error([&] {
              (void)rotary(program, half, f32_math, "r", x, {table, table}, elsewhere);
            }),
            "rotary: tensor 'elsewhere' has type f32; expected bf16");
}

TEST(Rotary, HeadsThatAreNotContiguousAreRefused) {
  Program program;
  TensorSpec spec = tensor("x", DType::f32, {1, 2, 2, 4}, Role::input);
  spec.layout.strides = {16, 8, 1, 2};
  const ValueId x = program.add(spec);
  const ValueId table = source(program, "table", DType::f32, {2, 2});

  EXPECT_EQ(program_error([&] {
              (void)rotary(program, half, f32_math, "r", x, {table, table});
            }),
            "rotary: tensor 'x' has shape [1, 2, 2, 4] and layout strides(16, 8, 1, 2); expected a contiguous last "
            "axis");
}

}  // namespace rotary_test
}  // namespace gpubench::testing
