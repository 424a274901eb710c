#include "reference/ops/token_groups.h"

#include <gtest/gtest.h>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace token_groups_test {

enum Output { sizes_output, order_output, places_output };

// Pairs 0 to 5 name experts 2 0 | 1 2 | 0 2. Expert 0 has pairs 1 and 4, expert 1 pair 2, expert 2 pairs 0, 3 and 5.
const std::vector<double> chosen{2, 0, 1, 2, 0, 2};

TEST(TokenGroups, PairsAreSortedByExpertAndStayInOrderWithinOne) {
  Program p;
  const ValueId indices = source(p, "indices", DType::i32, {3, 2});
  (void)group_tokens(p, {.experts = 4}, "groups", indices);
  TextbookRun run(p);
  run.set(indices, chosen);
  EXPECT_EQ(values_of(run.judge(0, sizes_output)), (std::vector<double>{2, 1, 3, 0}));
  EXPECT_EQ(values_of(run.judge(0, order_output)), (std::vector<double>{1, 4, 2, 0, 3, 5}));
  EXPECT_EQ(values_of(run.judge(0, places_output)), (std::vector<double>{3, 0, 2, 4, 1, 5}));
}

TEST(TokenGroups, PairsOfExpertsElsewhereAreLeftOut) {
  Program p;
  const ValueId indices = source(p, "indices", DType::i32, {3, 2});
  (void)group_tokens(p, {.experts = 2, .first = 1}, "groups", indices);
  TextbookRun run(p);
  run.set(indices, chosen);
  EXPECT_EQ(values_of(run.judge(0, sizes_output)), (std::vector<double>{1, 3}));
  EXPECT_EQ(values_of(run.judge(0, order_output)), (std::vector<double>{2, 0, 3, 5, -1, -1}));
  EXPECT_EQ(values_of(run.judge(0, places_output)), (std::vector<double>{1, -1, 0, 2, -1, 3}));
}

struct Example {
  Program program;
  ValueId x, order, places, weights, rows, dy;
  static constexpr std::int64_t tokens = 3, k = 2, h = 2;

  explicit Example(DType type = DType::f64) {
    const DType wide = type == DType::f64 ? DType::f64 : DType::f32;
    x = source(program, "x", type, {tokens, h});
    rows = source(program, "rows", type, {tokens * k, h});
    dy = source(program, "dy", type, {tokens, h});
    order = source(program, "order", DType::i32, {tokens * k});
    places = source(program, "places", DType::i32, {tokens, k});
    weights = source(program, "weights", wide, {tokens, k});
  }
  void fill(TextbookRun& run) const {
    run.set(x, {1, 2, 3, 4, 5, 6});
    run.set(rows, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    run.set(dy, {1, 1, 2, 0, 0, 1});
    run.set(order, {2, 0, 3, 5, -1, -1});
    run.set(places, {1, -1, 0, 2, -1, 3});
    run.set(weights, {2, 3, 5, 7, 11, 13});
  }
};

TEST(TokenGroups, RowsMoveToTheirExpertsByHand) {
  Example s;
  (void)permute_tokens(s.program, f64_math, "plain", s.x, s.order);
  (void)permute_tokens(s.program, f64_math, "weighted", s.x, s.order, s.weights);
  TextbookRun run(s.program);
  s.fill(run);
  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{3, 4, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0}));
  EXPECT_EQ(values_of(run.judge(1, 0)), (std::vector<double>{15, 20, 2, 4, 21, 28, 65, 78, 0, 0, 0, 0}));
}

// Token 0 has row 1, token 1 rows 0 and 2, token 2 row 3.
TEST(TokenGroups, RowsOfATokenAreSummedByHand) {
  Example s;
  (void)unpermute_tokens(s.program, f64_math, "plain", s.rows, s.places);
  (void)unpermute_tokens(s.program, f64_math, "weighted", s.rows, s.places, s.weights);
  (void)unpermute_backward_weights(s.program, f64_math, "dweights", s.rows, s.places, s.dy);
  TextbookRun run(s.program);
  s.fill(run);
  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{3, 4, 6, 8, 7, 8}));
  EXPECT_EQ(values_of(run.judge(1, 0)), (std::vector<double>{6, 8, 40, 52, 91, 104}));
  EXPECT_EQ(values_of(run.judge(2, 0)), (std::vector<double>{7, 0, 2, 10, 0, 8}));
}

// The gradient needs group_tokens's other output, so the program has that op too.
void expect_gradients(bool back, bool weighted) {
  Program p;
  const ValueId indices = source(p, "indices", DType::i32, {3, 2});
  const ValueId x = source(p, "x", DType::f64, {back ? 6 : 3, 2}), weights = source(p, "weights", DType::f64, {3, 2});
  const TokenGroups groups = group_tokens(p, {.experts = 2, .first = 1}, "groups", indices);
  const auto given = weighted ? std::optional(weights) : std::nullopt;
  const ValueId y = back ? unpermute_tokens(p, f64_math, "y", x, groups.places, given)
                         : permute_tokens(p, f64_math, "y", x, groups.order, given);
  const std::vector<double> seed = spread(p.spec(y).shape.elements(), 77);
  const ValueId dy = source(p, "dy", DType::f64, p.spec(y).shape, Role::gradient);
  SingleOpTape tape(p);
  tape.given[y] = dy;
  tape.wanted_inputs = {x, weights};
  const OpCall call = p.op(1);
  definition(call.kind).derivative(p, call, tape);
  std::map<ValueId, std::vector<double>> fixed{{x, spread(p.spec(x).shape.elements(), 1)}, {weights, spread(6, 2)}};
  const auto set = [&](TextbookRun& run) {
    run.set(indices, chosen);
    run.set(dy, seed);
    for (const auto& [id, values] : fixed) run.set(id, values);
  };
  TextbookRun run(p);
  set(run);
  run.run();
  const auto objective = [&] {
    TextbookRun moved(p);
    set(moved);
    moved.run(0);
    moved.run(1);
    const std::vector<double> values = moved.get(y);
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += seed[i] * values[i];
    return sum;
  };
  EXPECT_EQ(tape.contributions.size(), weighted ? 2U : 1U);
  for (const auto& [input, gradient] : tape.contributions) {
    const std::vector<double> derived = run.get(gradient);
    for (std::size_t i = 0; i < derived.size(); ++i) {
      const double kept = fixed[input][i];
      fixed[input][i] = kept + 0.5;  // linear in each input, so the step may be large
      const double above = objective();
      fixed[input][i] = kept - 0.5;
      EXPECT_NEAR(derived[i], above - objective(), 1e-13) << p.spec(input).name << "[" << i << "]";
      fixed[input][i] = kept;
    }
  }
}

TEST(TokenGroups, GradientsAgreeWithDifferences) {
  for (const bool back : {false, true}) {
    for (const bool weighted : {false, true}) expect_gradients(back, weighted);
  }
}

TEST(TokenGroups, AGradientNeedsTheOpThatGrouped) {
  Example s;
  const ValueId y = permute_tokens(s.program, f64_math, "y", s.x, s.order);
  SingleOpTape tape(s.program);
  tape.given[y] = s.rows;
  tape.wanted_inputs = {s.x};
  const OpCall call = s.program.op(0);
  const std::string message = program_error([&] { definition(call.kind).derivative(s.program, call, tape); });
  EXPECT_NE(message.find("'order' of op 'y' has no places"), std::string::npos) << message;
}

TEST(TokenGroups, SubsetsAgreeWithTheWhole) {
  Example s(DType::bf16);
  (void)permute_tokens(s.program, f32_math, "weighted", s.x, s.order, s.weights);
  (void)unpermute_tokens(s.program, f32_math, "back", s.rows, s.places, s.weights);
  (void)unpermute_backward_weights(s.program, f32_math, "dweights", s.rows, s.places, s.dy);
  TextbookRun run(s.program);
  s.fill(run);
  for (const int op : {0, 1, 2}) expect_subsets_agree(run, op, 0);
}

// A sum in bf16 loses the last bits of two rows; a missing row is far off.
TEST(TokenGroups, ARoundedOrIncompleteSumIsRejected) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2, 64}), places = source(p, "places", DType::i32, {1, 2});
  (void)unpermute_tokens(p, f32_math, "y", x, places);
  TextbookRun run(p);
  const std::vector<double> values = spread(128, 3);
  run.set(x, values);
  run.set(places, {1, 0});
  const std::vector<double> rows = run.get(x);
  const std::vector<Expected> judged = run.judge(0, 0);
  int right = 0, rounded = 0, incomplete = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const float sum = static_cast<float>(rows[i]) + static_cast<float>(rows[64 + i]);
    right += within(judged[i], DType::f32, sum) ? 1 : 0;
    rounded += within(judged[i], DType::f32, round_to(DType::bf16, sum)) ? 1 : 0;
    incomplete += within(judged[i], DType::f32, rows[i]) ? 1 : 0;
  }
  EXPECT_EQ(right, 64);
  EXPECT_EQ(rounded, 0);
  EXPECT_EQ(incomplete, 0);
}

TEST(TokenGroups, WhatDoesNotFitIsRefusedByName) {
  Example s;
  EXPECT_NE(program_error([&] { (void)permute_tokens(s.program, f64_math, "y", s.rows, s.places); }).find("'places'"),
            std::string::npos);
  EXPECT_NE(program_error([&] {
              (void)unpermute_tokens(s.program, f64_math, "y", s.rows, s.places, s.rows);
            }).find("expected"),
            std::string::npos);
  EXPECT_NE(program_error([&] { (void)group_tokens(s.program, {.experts = 0}, "g", s.places); }).find("experts = 0"),
            std::string::npos);
}

}  // namespace token_groups_test
}  // namespace gpubench::testing
