#include "reference/ops/embedding.h"

#include <gtest/gtest.h>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace embedding_test {

struct Lookup {
  Program program;
  ValueId table, tokens, y;
  explicit Lookup(DType dtype = DType::f64)
      : table(source(program, "table", dtype, {4, 2}, Role::parameter)),
        tokens(source(program, "tokens", DType::i32, {3})),
        y(embedding_forward(program, "look up", table, tokens)) {}
};

TEST(Embedding, LooksUpRowsExactly) {
  Lookup lookup(DType::f32);
  TextbookRun run(lookup.program);
  run.set(lookup.table, {1, 2, 3, 4, 5, 6, 7, 8});
  run.set(lookup.tokens, {2, 0, 2});
  run.run();

  EXPECT_EQ(run.get(lookup.y), (std::vector<double>{5, 6, 1, 2, 5, 6}));
  for (const Expected& judged : run.judge(0, 0)) EXPECT_EQ(judged.bound, 0.0);
}

TEST(Embedding, BackwardSumsOccurrencesAndLeavesOthersExactlyZero) {
  Program program;
  const ValueId dy = source(program, "dy", DType::f32, {3, 2});
  const ValueId tokens = source(program, "tokens", DType::i32, {3});
  const ValueId dtable = embedding_backward(program, f32_math, "scatter", dy, tokens, 4);
  TextbookRun run(program);
  run.set(dy, {1, 2, 10, 20, 100, 200});
  run.set(tokens, {2, 0, 2});
  run.run();

  EXPECT_EQ(run.get(dtable), (std::vector<double>{10, 20, 0, 0, 101, 202, 0, 0}));
  const std::vector<Expected> judged = run.judge(0, 0);
  EXPECT_EQ(judged[2].bound, 0.0);
  // two occurrences: 2 u sqrt(2) (101 + sqrt(1 + 10000))
  EXPECT_NEAR(judged[4].bound, 2 * 0x1p-24 * std::sqrt(2.0) * (101 + std::sqrt(10001.0)), 1e-16);
}

// Rows 2 and 3 of a table of six: tokens 2, 5, 3, 0 and an unknown one.
TEST(Embedding, OfTheRowsOfARankOthersTokensAre0AndTheirGradientsGoElsewhere) {
  const TableRows rows{.first = 2, .vocabulary = 6};
  Program program;
  const ValueId table = source(program, "table", DType::f32, {2, 2}, Role::parameter);
  const ValueId tokens = source(program, "tokens", DType::i32, {5});
  const ValueId y = embedding_forward(program, "look up", table, tokens, rows);
  const ValueId dy = source(program, "dy", DType::f32, {5, 2});
  const ValueId dtable = embedding_backward(program, f32_math, "scatter", dy, tokens, 2, rows);
  const ValueId given = source(program, "given", DType::f32, {2, 2}, Role::gradient);
  const ValueId sum = embedding_backward_add(program, f32_math, "add", dy, tokens, given, rows);
  TextbookRun run(program);
  run.set(table, {1, 2, 3, 4});
  run.set(tokens, {2, 5, 3, 0, 6});
  run.set(dy, {1, 2, 10, 20, 100, 200, 1000, 2000, 1e4, 2e4});
  run.set(given, {7, 8, 9, 10});
  run.run();

  const std::vector<double> looked_up = run.get(y);
  EXPECT_EQ(std::vector<double>(looked_up.begin(), looked_up.end() - 2), (std::vector<double>{1, 2, 0, 0, 3, 4, 0, 0}));
  EXPECT_TRUE(std::isnan(looked_up[8]) && std::isnan(looked_up[9]));
  EXPECT_EQ(run.get(dtable), (std::vector<double>{1, 2, 100, 200}));
  EXPECT_EQ(run.get(sum), (std::vector<double>{8, 10, 109, 210}));
}

// Rows 2 and 3 of a table of six again: token 3 is looked up and gets no gradient.
TEST(Embedding, ThePaddingTokenIsLookedUpAndGetsNoGradient) {
  const TableRows rows{.first = 2, .vocabulary = 6, .padding_token = 3};
  Program program;
  const ValueId table = source(program, "table", DType::f32, {2, 2}, Role::parameter);
  const ValueId tokens = source(program, "tokens", DType::i32, {3});
  const ValueId y = embedding_forward(program, "look up", table, tokens, rows);
  const ValueId dy = source(program, "dy", DType::f32, {3, 2});
  const ValueId dtable = embedding_backward(program, f32_math, "scatter", dy, tokens, 2, rows);
  const ValueId given = source(program, "given", DType::f32, {2, 2}, Role::gradient);
  const ValueId sum = embedding_backward_add(program, f32_math, "add", dy, tokens, given, rows);
  TextbookRun run(program);
  run.set(table, {1, 2, 3, 4});
  run.set(tokens, {3, 2, 3});
  run.set(dy, {1, 2, 10, 20, 100, 200});
  run.set(given, {7, 8, 9, 10});
  run.run();
  EXPECT_EQ(run.get(y), (std::vector<double>{3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(run.get(dtable), (std::vector<double>{10, 20, 0, 0}));
  EXPECT_EQ(run.get(sum), (std::vector<double>{17, 28, 9, 10}));
}

TEST(Embedding, RowsThatAreNotInTheVocabularyAreRefused) {
  Program program;
  const ValueId table = source(program, "table", DType::f32, {2, 2}, Role::parameter);
  const ValueId tokens = source(program, "tokens", DType::i32, {3});
  EXPECT_EQ(program_error([&] { (void)embedding_forward(program, "y", table, tokens, {.first = 5, .vocabulary = 6}); }),
            "embedding_forward: rows 5 to 6 are not in a vocabulary of 6");
  EXPECT_EQ(program_error([&] { (void)embedding_forward(program, "y", table, tokens, {.first = 1}); }),
            "embedding_forward: rows 1 to 2 are not in a vocabulary of 2");
  EXPECT_EQ(program_error([&] { (void)embedding_forward(program, "y", table, tokens, {.padding_token = 2}); }),
            "embedding_forward: padding_token 2 is not in a vocabulary of 2");
}

struct Added {
  Program program;
  ValueId dy, tokens, dtable, sum;

  explicit Added(DType type, std::int64_t positions = 3, std::int64_t vocabulary = 4, std::int64_t h = 2)
      : dy(source(program, "dy", type, {positions, h})),
        tokens(source(program, "tokens", DType::i32, {positions})),
        dtable(source(program, "dtable", type, {vocabulary, h}, Role::gradient)),
        sum(embedding_backward_add(program, f32_math, "scatter", dy, tokens, dtable)) {}
};

TEST(Embedding, BackwardAddsToAGradientThatIsThereAndLeavesOtherRowsAsTheyWere) {
  Added added(DType::f32);
  TextbookRun run(added.program);
  run.set(added.dy, {1, 2, 10, 20, 100, 200});
  run.set(added.tokens, {2, 0, 2});
  run.set(added.dtable, {1000, 1000, 0.5, -0.5, 3000, 3000, 7, 8});
  const std::vector<Expected> judged = run.judge(0, 0);
  run.run();

  EXPECT_EQ(run.get(added.sum), (std::vector<double>{1010, 1020, 0.5, -0.5, 3101, 3202, 7, 8}));
  for (const std::size_t untouched : {2, 3, 6, 7}) EXPECT_EQ(judged[untouched].bound, 0.0);
  // Row 0 is 1000 + 10, with largest sums of neighbours 1000 and 1010: |C| + Q is more than twice their mean size.
  EXPECT_NEAR(judged[0].bound,
              2 * 0x1p-24 * std::sqrt(2.0) *
                  std::max(1010 + std::sqrt(1e6 + 100.0), 2 * std::sqrt((1e6 + 1010.0 * 1010.0) / 2)),
              1e-12);
}

// 256 + 1 = 257 lies between 256 and 258 of bf16 and goes to the even 256, twice; their sum is 258.
TEST(Embedding, ASumOfGradientsIsRoundedOnce) {
  Added added(DType::bf16);
  TextbookRun run(added.program);
  run.set(added.dy, {1, 1, 1, 1, 1, 1});
  run.set(added.tokens, {2, 2, 0});
  run.set(added.dtable, std::vector<double>(8, 256));
  const std::vector<Expected> judged = run.judge(0, 0);

  EXPECT_TRUE(within(judged[4], DType::bf16, 258));
  EXPECT_FALSE(within(judged[4], DType::bf16, 256));
}

TEST(Embedding, BackwardAndTheAddBehindItMeanTheSameButForOneRounding) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
    Added added(type, 20, 11, 7);
    Program two;
    const ValueId dy = source(two, "dy", type, {20, 7});
    const ValueId tokens = source(two, "tokens", DType::i32, {20});
    const ValueId other = source(two, "other", type, {11, 7});
    (void)embedding_backward(two, f32_math, "scatter", dy, tokens, 11);
    TextbookRun fused(added.program);
    TextbookRun parts(two);
    const std::vector<double> ids{0, 5, 5, 3, 10, 5, 2, 1, 0, 9, 9, 9, 9, 4, 5, 6, 7, 0, 1, 10};
    fused.set(added.dy, spread(140, 1));
    parts.set(dy, spread(140, 1));
    fused.set(added.tokens, ids);
    parts.set(tokens, ids);
    fused.set(added.dtable, spread(77, 2));
    parts.set(other, spread(77, 2));

    const std::vector<Expected> sums = fused.judge(0, 0);
    const std::vector<Expected> scattered = parts.judge(0, 0);
    const std::vector<double> before = parts.get(other);
    for (std::size_t i = 0; i < sums.size(); ++i)
      EXPECT_NEAR(sums[i].value, before[i] + scattered[i].value, 1e-15) << name(type) << ", element " << i;
    expect_subsets_agree(fused, 0, 0);
  }
}

// In single precision: `dtable` is a row of four; the tokens name the first row twice, and the second not at all.
TEST(Embedding, FaultsInAddingToAGradientAreRejected) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    Added added(type, 2, 2, 4);
    TextbookRun run(added.program);
    run.set(added.dy, spread(8, 1));
    run.set(added.tokens, {0, 0});
    run.set(added.dtable, spread(8, 2));
    const std::vector<double> dy = run.get(added.dy), before = run.get(added.dtable);
    const std::vector<Expected> judged = run.judge(0, 0);
    const auto accepted = [&](std::size_t at, float sum) {
      return within(judged[at], type, round_to(type, static_cast<double>(sum)));
    };
    for (std::size_t j = 0; j < 4; ++j) {
      const auto first = static_cast<float>(dy[j]), second = static_cast<float>(dy[4 + j]),
                 old = static_cast<float>(before[j]);
      EXPECT_TRUE(accepted(j, first + second + old));
      EXPECT_TRUE(accepted(j, old + first + second));
      EXPECT_FALSE(accepted(j, first + second)) << "overwritten";
      EXPECT_FALSE(accepted(j, first + old)) << "one occurrence left out";
      EXPECT_FALSE(accepted(j, (first + old) + (second + old))) << "added to for each occurrence";
      EXPECT_TRUE(accepted(4 + j, static_cast<float>(before[4 + j])));
      EXPECT_FALSE(accepted(4 + j, 0.0F)) << "cleared";
    }
  }
}

TEST(Embedding, DerivativeAgreesWithDifferences) {
  Lookup lookup;

  expect_derivative_agrees(lookup.program, lookup.y, {{lookup.table, spread(8, 1)}, {lookup.tokens, {3, 1, 3}}},
                           {lookup.table});
}

TEST(Embedding, ATokenOutsideTheVocabularyHasNoRightAnswer) {
  Lookup lookup;
  TextbookRun run(lookup.program);
  run.set(lookup.table, spread(8, 1));
  run.set(lookup.tokens, {0, 4, -1});

  const std::vector<Expected> judged = run.judge(0, 0);

  EXPECT_FALSE(std::isnan(judged[0].value));
  EXPECT_TRUE(std::isnan(judged[2].value));
  EXPECT_TRUE(std::isnan(judged[4].value));
}

TEST(Embedding, SubsetsOfUnitsAgreeWithAll) {
  Program program;
  const ValueId table = source(program, "table", DType::bf16, {11, 7});
  const ValueId tokens = source(program, "tokens", DType::i32, {20});
  const ValueId dy = source(program, "dy", DType::bf16, {20, 7});
  (void)embedding_forward(program, "forward", table, tokens);
  (void)embedding_backward(program, f32_math, "backward", dy, tokens, 11);
  TextbookRun run(program);
  run.set(table, spread(77, 1));
  run.set(dy, spread(140, 2));
  run.set(tokens, {0, 5, 5, 3, 10, 5, 2, 1, 0, 9, 9, 9, 9, 4, 5, 6, 7, 0, 1, 10});

  expect_subsets_agree(run, 0, 0);
  expect_subsets_agree(run, 1, 0);
}

TEST(Embedding, ReadsOnlyTheRowsThatAreLookedUp) {
  Program program;
  const ValueId table = source(program, "table", DType::bf16, {1000, 8});
  const ValueId tokens = source(program, "tokens", DType::i32, {5});
  const ValueId dy = source(program, "dy", DType::bf16, {5, 8});
  (void)embedding_forward(program, "forward", table, tokens);
  (void)embedding_backward(program, f32_math, "backward", dy, tokens, 1000);

  EXPECT_EQ(cost_of(program, program.op(0)).bytes, 2.0 * 5 * 8 * 2 + 20);
  EXPECT_EQ(cost_of(program, program.op(1)).bytes, 2.0 * 5 * 8 + 20 + 2.0 * 8000);
  EXPECT_EQ(cost_of(program, program.op(1)).flop, 40.0);
}

TEST(Embedding, AddingToAGradientReadsAndWritesNoMoreRowsThanThereAreTokens) {
  // 5 rows of dy, tokens, as many rows of the table twice; FLOP include the add's.
  const Added few(DType::bf16, 5, 1000, 8);
  EXPECT_EQ(cost_of(few.program).bytes, 5 * 8 * 2 + 20 + 2.0 * 5 * 8 * 2);
  EXPECT_EQ(cost_of(few.program).flop, 40.0 + 8000.0);
  const Added many(DType::bf16, 50, 3, 8);
  EXPECT_EQ(cost_of(many.program).bytes, 50 * 8 * 2 + 200 + 2.0 * 3 * 8 * 2);
}

TEST(Embedding, MismatchesAreRefused) {
  Program program;
  const ValueId table = source(program, "table", DType::f32, {4, 2});
  const ValueId tokens = source(program, "tokens", DType::i32, {3});
  const ValueId floats = source(program, "floats", DType::f32, {3});
  const ValueId dy = source(program, "dy", DType::f32, {5, 2});

  EXPECT_EQ(program_error([&] { (void)embedding_forward(program, "y", table, floats); }),
            "embedding_forward: tensor 'floats' has type f32; expected i32");
  EXPECT_EQ(program_error([&] { (void)embedding_forward(program, "y", tokens, tokens); }),
            "embedding_forward: tensor 'tokens' has shape [3]; expected [rows, h]");
  EXPECT_EQ(program_error([&] { (void)embedding_backward(program, f32_math, "y", dy, tokens, 4); }),
            "embedding_backward: tensor 'dy' has shape [5, 2]; expected [3, 2]");
  const ValueId fits = source(program, "fits", DType::bf16, {3, 2});
  EXPECT_EQ(program_error([&] { (void)embedding_backward_add(program, f32_math, "y", fits, tokens, table); }),
            "embedding_backward_add: tensor 'table' has type f32; expected bf16");
  const ValueId wide = source(program, "wide", DType::bf16, {4, 3});
  EXPECT_EQ(program_error([&] { (void)embedding_backward_add(program, f32_math, "y", fits, tokens, wide); }),
            "embedding_backward_add: tensor 'wide' has shape [4, 3]; expected [4, 2]");
}

}  // namespace embedding_test
}  // namespace gpubench::testing
