#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/cuda/emulation/memory_watch.h"
#include "tests/reference/reductions_contract.h"

namespace gpubench {
namespace reductions_test {

using testing::emulated_contract;
using testing::indices;
using testing::ProgramRun;
using testing::run_in_every_order;

TEST(CudaColumnSum, OddShapesLieWithinTheirBounds) {
  testing::expect_bounds_of_column_sums(emulated_contract(),
                                        {{0, 5}, {1, 1}, {7, 1}, {3, 7}, {517, 65}, {300, 256}, {2, 2001}});
}

TEST(CudaColumnSum, OfSharesReadsAndWritesPartsOfWiderRows) {
  testing::expect_bounds_of_sums_of_shares(emulated_contract(), {{1, 9, 5}, {7, 128, 64}, {90, 3, 17}, {2, 301, 33}});
}

TEST(CudaColumnSum, OneSignedColumnsAndNarrowResultsLieWithinTheirBounds) {
  testing::expect_bounds_of_one_signed_columns(emulated_contract(), 3011);
}

TEST(CudaColumnSum, ReadsAPartOfWiderRows) { testing::expect_bounds_of_column_sums_of_a_part(emulated_contract()); }

TEST(CudaEmbeddingForward, CopiesRowsBitForBit) { testing::expect_rows_of_tokens_bit_for_bit(emulated_contract()); }

TEST(CudaEmbeddingForward, ATokenOutsideTheTableGivesNaN) {
  testing::expect_nan_of_tokens_outside_the_table(emulated_contract());
}

TEST(CudaEmbedding, OfTheRowsOfARankLooksUpAndSumsTheirTokens) {
  testing::expect_bounds_of_the_rows_of_a_rank(emulated_contract(), true);
}

TEST(CudaEmbeddingBackward, SumsRareAndFrequentTokensWithinBoundsAndLeavesOtherRowsZero) {
  testing::expect_bounds_of_rare_and_frequent_tokens(emulated_contract(), {1, 61, 128}, false);
}

TEST(CudaEmbeddingBackward, TokensOutsideTheTableCountNowhere) {
  testing::expect_no_gradient_of_tokens_outside_the_table(emulated_contract());
}

TEST(CudaEmbeddingBackward, AddsRareAndFrequentTokensWithinBoundsAndLeavesOtherRowsAsTheyWere) {
  testing::expect_bounds_of_rare_and_frequent_tokens(emulated_contract(), {1, 61, 128}, true);
}

// 3 tokens of 64 bf16, two of them equal: reads dy and two table rows; the other 598 rows are not touched.
TEST(CudaEmbeddingBackward, AddingReadsTheRowsOfTheTableThatTokensName) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  std::int64_t read[2];
  for (const bool adds : {false, true}) {
    Program program;
    const ValueId dy = program.add(tensor("dy", DType::bf16, Shape{3, 64}, Role::gradient));
    const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{3}, Role::input));
    const std::vector<ValueId> random = testing::scatter(program, dy, tokens, 600, adds);
    ProgramRun run(*backend, program);
    for (const ValueId id : random) run.set_random(id, 1);
    run.set(tokens, std::vector<double>{7, 500, 7});
    const std::int64_t before = cuda::emulation::bytes_read();
    run.run();
    read[adds ? 1 : 0] = cuda::emulation::bytes_read() - before;
  }

  EXPECT_LE(read[1], read[0] + 2 * 64 * 2);
}

TEST(CudaEmbeddingBackward, OneTokenEverywhereOverSeveralTurnsLiesWithinItsBound) {
  Program program;
  const ValueId dy = program.add(tensor("dy", DType::bf16, Shape{5000, 16}, Role::gradient));
  const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{5000}, Role::input));
  (void)embedding_backward(program, Math{}, "op", dy, tokens, 3);
  const auto fill = [&](ProgramRun& run) {
    run.set_random(dy, 1);
    run.set(tokens, std::vector<double>(5000, 1.0));
  };

  EXPECT_EQ(run_in_every_order(program, fill), "");
}

// The position table for a batch of 40: each of 128 tokens occurs 40 times, more often than a warp has lanes.
std::vector<double> positions_of_a_batch() {
  std::vector<double> tokens(40 * 128);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<double>(i % 128);
  return tokens;
}

// Zipf's law: token k occurs 1200 / k times, in random order.
std::vector<double> words_of_a_text() {
  std::vector<double> tokens;
  for (int k = 1; k < 500; ++k) tokens.insert(tokens.end(), static_cast<std::size_t>(1200 / k), k);
  const std::vector<double> random = indices(static_cast<std::int64_t>(tokens.size()), std::int64_t{1} << 40, 3);
  std::vector<std::size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return random[a] < random[b]; });
  std::vector<double> shuffled;
  for (const std::size_t i : order) shuffled.push_back(tokens[i]);
  return shuffled;
}

// Number of tokens that occur more often than a warp has lanes.
std::int64_t frequent(const std::vector<double>& ids) {
  std::map<double, int> counts;
  for (const double id : ids) ++counts[id];
  return std::count_if(counts.begin(), counts.end(), [](const auto& entry) { return entry.second > 32; });
}

TEST(CudaEmbeddingBackward, PositionsOfABatchAndWordsOfATextGiveTheSameBitsInEveryOrder) {
  for (const std::vector<double>& ids : {positions_of_a_batch(), words_of_a_text()}) {
    const auto count = static_cast<std::int64_t>(ids.size());
    Program program;
    const ValueId dy = program.add(tensor("dy", DType::bf16, Shape{count, 24}, Role::gradient));
    const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{count}, Role::input));
    (void)embedding_backward(program, Math{}, "op", dy, tokens, 600);
    const auto fill = [&](ProgramRun& run) {
      run.set_random(dy, 1);
      run.set(tokens, ids);
    };

    EXPECT_EQ(run_in_every_order(program, fill), "") << ids.size() << " tokens";
  }
}

// dy once, and integers: a token's places are read when counted, placed, sorted and summed, the last once per slice of
// 64 columns. All lanes of a warp read a table row's list, and all 256 threads of a block three integers of a frequent
// token, for sorting and for each slice.
// Searching all tokens for each frequent one would read 128 integers per token and slice.
TEST(CudaEmbeddingBackward, WhatIsReadGrowsWithTheTokensHoweverTheyAreSpread) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  for (const std::vector<double>& ids : {positions_of_a_batch(), words_of_a_text()}) {
    const auto count = static_cast<std::int64_t>(ids.size());
    const std::int64_t rows = 600;
    Program program;
    const ValueId dy = program.add(tensor("dy", DType::bf16, Shape{count, 128}, Role::gradient));
    const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{count}, Role::input));
    (void)embedding_backward(program, Math{}, "op", dy, tokens, rows);
    ProgramRun run(*backend, program);
    run.set_random(dy, 1);
    run.set(tokens, ids);
    const std::int64_t before = cuda::emulation::bytes_read();

    run.run();

    const std::int64_t integers = (cuda::emulation::bytes_read() - before - count * 128 * 2) / 4;
    const std::int64_t of_tokens = count * (4 + 3 + 8 * 2);  // 8 lanes share each of the 2 slices of a row
    const std::int64_t of_blocks = frequent(ids) * (1 + 2) * 256 * 3;
    EXPECT_LE(integers, of_tokens + rows * 80 + of_blocks + 2 * 12 * 256);
    EXPECT_GT(integers, count);
  }
}

}  // namespace reductions_test
}  // namespace gpubench
