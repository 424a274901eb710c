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

TEST(Embedding, MismatchesAreRefused) {
  Program program;
  const ValueId table = source(program, "table", DType::f32, {4, 2});
  const ValueId tokens = source(program, "tokens", DType::i32, {3});
  const ValueId floats = source(program, "floats", DType::f32, {3});
  const ValueId dy = source(program, "dy", DType::f32, {5, 2});

  EXPECT_EQ(program_error([&] { (void)embedding_forward(program, "y", table, floats); }),
            "embedding_forward: tensor 'floats' has type f32; expected i32");
  EXPECT_EQ(program_error([&] { (void)embedding_forward(program, "y", tokens, tokens); }),
            "embedding_forward: tensor 'tokens' has shape [3]; expected [vocabulary, h]");
  EXPECT_EQ(program_error([&] { (void)embedding_backward(program, f32_math, "y", dy, tokens, 4); }),
            "embedding_backward: tensor 'dy' has shape [5, 2]; expected [3, 2]");
}

}  // namespace embedding_test
}  // namespace gpubench::testing
