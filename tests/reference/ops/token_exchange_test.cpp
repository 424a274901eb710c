#include "reference/ops/token_exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/ops/transform/differentiate.h"
#include "tests/reference/ops/rank_tensors.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace token_exchange_test {

/// Two ranks with four rows each; experts 0 and 1 are on rank 0, 2 and 3 on rank 1.
struct TwoRanks {
  explicit TwoRanks(std::int64_t rows = 4)
      : x(on_ranks(program, 2, DType::f32, {rows, 1})), sizes(on_ranks(program, 2, DType::i32, {4}, "sizes")) {}

  /// Rank 0 has a row for expert 0, two for 2, one for 3; rank 1 two for 0, one for 1, and one for none.
  void set_sizes(TextbookRun& run) const {
    run.set(sizes[0], {1, 0, 2, 1});
    run.set(sizes[1], {2, 1, 0, 0});
  }

  Program program;
  std::vector<ValueId> x, sizes;
};

TEST(DispatchTokens, BringsRowsToTheirExpertsInTheOrderOfTheRanksTheyComeFrom) {
  TwoRanks two;
  const DispatchedTokens made = dispatch_tokens(two.program, {2}, "y", two.x, two.sizes);
  TextbookRun run(two.program);
  two.set_sizes(run);
  run.set(two.x[0], {10, 11, 12, 13});
  run.set(two.x[1], {20, 21, 22, 23});
  run.run();
  EXPECT_EQ(run.get(made.y[0]), (std::vector<double>{10, 20, 21, 22, 0, 0, 0, 0}));
  EXPECT_EQ(run.get(made.y[1]), (std::vector<double>{11, 12, 13, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run.get(made.own_sizes[0]), (std::vector<double>{3, 1}));
  EXPECT_EQ(run.get(made.own_sizes[1]), (std::vector<double>{2, 1}));
}

TEST(ReturnTokens, BringsEachRankItsRowsBack) {
  TwoRanks two(8);
  const std::vector<ValueId> back = return_tokens(two.program, {2}, "x", two.x, two.sizes);
  TextbookRun run(two.program);
  two.set_sizes(run);
  run.set(two.x[0], {110, 120, 121, 122, 9, 9, 9, 9});
  run.set(two.x[1], {111, 112, 113, 9, 9, 9, 9, 9});
  run.run();
  EXPECT_EQ(run.get(back[0]), (std::vector<double>{110, 111, 112, 113}));
  EXPECT_EQ(run.get(back[1]), (std::vector<double>{120, 121, 122, 0}));
}

TEST(TokenExchange, EachOfTheTwoOpsIsTheOthersGradient) {
  TwoRanks two;
  const DispatchedTokens made = dispatch_tokens(two.program, {2}, "y", two.x, two.sizes);
  const std::vector<ValueId> back = return_tokens(two.program, {2}, "back", made.y, two.sizes);
  const std::vector<ValueId> dy = on_ranks(two.program, 2, DType::f32, {4, 1}, "dy");
  std::vector<Seed> seeds;
  for (std::size_t rank = 0; rank < 2; ++rank) seeds.push_back({back[rank], dy[rank]});
  const auto gradients = differentiate(two.program, seeds, two.x);
  TextbookRun run(two.program);
  two.set_sizes(run);
  for (const ValueId id : two.x) run.set(id, {0, 0, 0, 0});
  run.set(dy[0], {1, 2, 3, 4});
  run.set(dy[1], {5, 6, 7, 8});
  run.run();
  EXPECT_EQ(run.get(gradients.at(two.x[0])), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(run.get(gradients.at(two.x[1])), (std::vector<double>{5, 6, 7, 0}));
}

TEST(TokenExchange, SizesThatMakeNoSenseHaveNoRightAnswer) {
  for (const std::vector<double>& sizes : {std::vector<double>{-1, 1, 1, 1}, std::vector<double>{1, 1, 1, 2}}) {
    TwoRanks two;
    (void)dispatch_tokens(two.program, {2}, "y", two.x, two.sizes);
    TextbookRun run(two.program);
    run.set(two.sizes[0], {1, 1, 1, 1});
    run.set(two.sizes[1], sizes);
    for (const ValueId id : two.x) run.set(id, {1, 2, 3, 4});
    for (int output = 0; output < 4; ++output) {
      for (const Expected& expected : run.judge(0, output)) EXPECT_TRUE(std::isnan(expected.value)) << output;
    }
  }
}

TEST(TokenExchange, TellsWhoseRowsAreInAnothersPlace) {
  TwoRanks two;
  (void)dispatch_tokens(two.program, {2}, "y", two.x, two.sizes);
  TextbookRun run(two.program);
  two.set_sizes(run);
  run.set(two.x[0], {10, 11, 12, 13});
  run.set(two.x[1], {20, 21, 22, 23});
  const OpCall& call = two.program.op(0);
  std::vector<TensorView> inputs;
  for (const ValueId id : call.inputs) inputs.push_back(run.view(id));
  const std::vector<TensorSpec> outputs = specs_of(two.program, call.outputs);
  const std::vector<Mismatch> wrong{{1, 10}, {2, 11}, {3, 12}};  // y of rank 0, where rank 1's rows belong
  EXPECT_EQ(definition(call.kind).explain({call, inputs, outputs}, 0, wrong),
            "what rank 0 sent is in the place of rank 1's block, in chunk 0 of 2 (elements 1 to 3)");
}

// Of 4 rows of 4 bytes on each of two ranks, half crosses if routing is even.
TEST(TokenExchange, CountsWhatCrossesWhereRoutingIsEven) {
  TwoRanks two;
  const DispatchedTokens made = dispatch_tokens(two.program, {2}, "y", two.x, two.sizes);
  (void)return_tokens(two.program, {2}, "back", made.y, two.sizes);
  for (int op = 0; op < 2; ++op) {
    const Cost cost = cost_of(two.program, two.program.op(op));
    EXPECT_EQ(cost.message_bytes, 16.0);
    EXPECT_EQ(cost.bytes, 8.0);
    EXPECT_EQ(cost.flop, 0.0);
  }
}

TEST(TokenExchange, RefusesTensorsThatDoNotFitByName) {
  Program p;
  const std::vector<ValueId> x = on_ranks(p, 2, DType::f32, {3, 2}), sizes = on_ranks(p, 2, DType::i32, {4}, "sizes");
  const auto refused = [&](const std::vector<ValueId>& rows, const std::vector<ValueId>& of, const char* words) {
    const std::string thrown = program_error([&] { (void)dispatch_tokens(p, {2}, "y", rows, of); });
    EXPECT_NE(thrown.find(words), std::string::npos) << thrown;
  };
  refused(x, x, "'x@0'");
  refused(x, on_ranks(p, 2, DType::i32, {3}, "odd"), "a multiple of 2 experts");
  refused(x, on_ranks(p, 2, DType::i32, {2, 2}, "square"), "[experts]");
  refused(x, {sizes[0]}, "1 tensors");
  refused({sizes[0], sizes[1]}, sizes, "[rows, h]");
  EXPECT_THROW((void)return_tokens(p, {2}, "x", x, sizes), ProgramError);  // three rows are not divisible by two ranks
}

// For any sizes, runs lie within the existing rows, and sent equal received runs.
TEST(TokenRoutes, SentAndReceivedAreTheSameRunsWithinTheRows) {
  constexpr int members = 3, experts = 6;
  constexpr std::int64_t rows = 10;
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const std::vector<std::int32_t> sizes{1, 2, 3, 0, 1, 3, -4, 20, 5, 5, 5, 5, most, most, most, most, most, 0};
  const TokenRoutes routes(sizes, members, rows);
  for (int from = 0; from < members; ++from) {
    std::int64_t own = 0;
    for (const RowRun& run : routes.sent(from)) {
      EXPECT_EQ(run.own, own) << from;
      own += run.rows;
      bool found = false;
      for (const RowRun& other : routes.received(run.member))
        found = found ||
                (other.member == from && other.own == run.own && other.there == run.there && other.rows == run.rows);
      EXPECT_TRUE(found) << from << " to " << run.member;
    }
    EXPECT_LE(own, rows);
    std::int64_t there = 0, of_sizes = 0;
    for (const RowRun& run : routes.received(from)) {
      EXPECT_EQ(run.there, there) << from;
      there += run.rows;
    }
    EXPECT_LE(there, members * rows);
    for (const std::int32_t size : routes.own_sizes(from)) of_sizes += size;
    EXPECT_EQ(of_sizes, there);
    EXPECT_EQ(routes.own_sizes(from).size(), static_cast<std::size_t>(experts / members));
  }
}

}  // namespace token_exchange_test
}  // namespace gpubench::testing
