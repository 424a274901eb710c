// column_sum and embedding on the CUDA backend's kernels, against the textbook: sums over rows and over
// occurrences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/embedding.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/cuda/emulation/memory_watch.h"
#include "tests/reference/indices.h"

namespace gpubench {
namespace reductions_test {

using testing::indices;
using testing::ProgramRun;
using testing::run_in_every_order;

TEST(CudaColumnSum, OddShapesLieWithinTheirBounds) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [rows, n] : {std::pair{0, 5}, {1, 1}, {7, 1}, {3, 7}, {517, 65}, {300, 256}, {2, 2001}}) {
      Program program;
      const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
      const ValueId x = program.add(tensor("x", dtype, Shape{rows, n}, Role::gradient));
      const ValueId into = program.reserve(tensor("y", wide, Shape{n}, Role::gradient));
      Math math;
      math.accumulate = wide;
      (void)column_sum(program, math, "op", x, into);

      EXPECT_EQ(run_in_every_order(program, [&](ProgramRun& run) { run.set_random(x, 1); }), "")
          << name(dtype) << ", " << rows << " x " << n;
    }
  }
}

TEST(CudaColumnSum, OfSharesReadsAndWritesPartsOfWiderRows) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (const auto& [sums, rows, n] : {std::tuple{1, 9, 5}, {7, 128, 64}, {90, 3, 17}, {2, 301, 33}}) {
      Program program;
      TensorSpec part = tensor("part", dtype, Shape{sums, rows, n}, Role::gradient);
      part.layout.strides = {rows * 80, 80, 1};
      const ValueId whole = program.add(tensor("whole", dtype, Shape{sums, rows, 80}, Role::gradient));
      Math math;
      if (dtype == DType::f64) math.accumulate = dtype;
      TensorSpec sum = tensor("sum", dtype, Shape{sums, n}, Role::gradient);
      sum.layout.strides = {90, 1};
      const ValueId y = program.reserve(tensor("y", dtype, Shape{sums, 90}, Role::gradient));
      (void)column_sum(program, math, "op", program.part(whole, part, 8), program.part(y, sum, 3));

      EXPECT_EQ(run_in_every_order(program, [&](ProgramRun& run) { run.set_random(whole, 1); }), "")
          << name(dtype) << ", " << sums << " x " << rows << " x " << n;
    }
  }
}

TEST(CudaColumnSum, OneSignedColumnsAndNarrowResultsLieWithinTheirBounds) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Program program;
    const ValueId x = program.add(tensor("x", dtype, Shape{3011, 17}, Role::gradient));
    (void)column_sum(program, Math{}, "op", x);
    const auto fill = [&](ProgramRun& run) {
      run.set_random(x, 1);
      std::vector<double> values = run.get(x);
      for (double& value : values) value = 1.0 + std::fabs(value);
      run.set(x, values);
    };

    EXPECT_EQ(run_in_every_order(program, fill), "") << name(dtype);
  }
}

TEST(CudaColumnSum, ReadsAPartOfWiderRows) {
  for (const std::int64_t first : {7, 8}) {
    Program program;
    const TensorSpec whole = tensor("whole", DType::bf16, Shape{50, 64}, Role::gradient);
    TensorSpec part = whole;
    part.name = "x";
    part.shape = Shape{50, 24};
    const ValueId source = program.add(whole);
    const ValueId x = program.part(source, part, first);
    (void)column_sum(program, Math{}, "op", x);

    EXPECT_EQ(run_in_every_order(program, [&](ProgramRun& run) { run.set_random(source, 1); }), "");
  }
}

TEST(CudaEmbeddingForward, CopiesRowsBitForBit) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8}) {
    for (const std::int64_t h : {1, 77, 64}) {
      Program program;
      const ValueId table = program.add(tensor("table", dtype, Shape{101, h}, Role::parameter));
      const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{133}, Role::input));
      (void)embedding_forward(program, "op", table, tokens);
      const auto fill = [&](ProgramRun& run) {
        run.set_random(table, 1, 20.0);
        run.set(tokens, indices(133, 101, 2));
      };

      EXPECT_EQ(run_in_every_order(program, fill), "") << name(dtype) << ", " << h;
    }
  }
}

TEST(CudaEmbedding, OfTheRowsOfARankLooksUpAndSumsTheirTokens) {
  const TableRows rows{.first = 30, .vocabulary = 101};
  for (const std::int64_t h : {77, 64}) {
    Program program;
    const ValueId table = program.add(tensor("table", DType::bf16, Shape{50, h}, Role::parameter));
    const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{500}, Role::input));
    const ValueId dy = program.add(tensor("dy", DType::bf16, Shape{500, h}, Role::gradient));
    const ValueId tied = program.add(tensor("tied", DType::bf16, Shape{50, h}, Role::gradient));
    (void)embedding_forward(program, "op", table, tokens, rows);
    (void)embedding_backward(program, Math{}, "scatter", dy, tokens, 50, rows);
    (void)embedding_backward_add(program, Math{}, "add", dy, tokens, tied, rows);
    const auto fill = [&](ProgramRun& run) {
      for (const ValueId id : {table, dy, tied}) run.set_random(id, 1);
      std::vector<double> ids = indices(500, 101, 2);
      for (std::size_t i = 0; i < ids.size(); i += 5) ids[i] = 33;  // more often than a warp has lanes
      run.set(tokens, ids);
    };

    EXPECT_EQ(run_in_every_order(program, fill), "") << h;
  }
}

TEST(CudaEmbeddingForward, ATokenOutsideTheTableGivesNaN) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  for (const std::int64_t h : {3, 8}) {
    Program program;
    const ValueId table = program.add(tensor("table", DType::bf16, Shape{4, h}, Role::parameter));
    const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{3}, Role::input));
    const ValueId y = embedding_forward(program, "op", table, tokens);
    ProgramRun run(*backend, program);
    run.set_random(table, 1);
    run.set(tokens, std::vector<double>{3, 4, -1});

    run.run();

    const std::vector<double> got = run.get(y);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i >= static_cast<std::size_t>(h)) << i;
  }
}

/// embedding_backward, or embedding_backward_add to a table that is filled; returns what is to be set at random.
std::vector<ValueId> scatter(Program& program, const Math& math, ValueId dy, ValueId tokens, std::int64_t rows,
                             bool adds) {
  if (!adds) {
    (void)embedding_backward(program, math, "op", dy, tokens, rows);
    return {dy};
  }
  const TensorSpec& like = program.spec(dy);
  const ValueId dtable = program.add(tensor("dtable", like.dtype, Shape{rows, like.shape[1]}, Role::gradient));
  (void)embedding_backward_add(program, math, "op", dy, tokens, dtable);
  return {dy, dtable};
}

// Token 0 is in every fifth place, 100 times: frequent. Some tokens occur a few times, some never (exactly 0), token 7
// exactly 32 times and 8 exactly 33.
void expect_rare_and_frequent_tokens_within_bounds(bool adds) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t h : {1, 61, 128}) {
      Program program;
      Math math;
      math.accumulate = dtype == DType::f64 ? DType::f64 : DType::f32;
      const ValueId dy = program.add(tensor("dy", dtype, Shape{500, h}, Role::gradient));
      const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{500}, Role::input));
      const std::vector<ValueId> random = scatter(program, math, dy, tokens, 211, adds);
      std::vector<double> ids = indices(500, 170, 2);
      for (double& id : ids) id += 10;
      for (std::size_t i = 0; i < ids.size(); i += 5) ids[i] = 0;
      for (std::size_t i = 0; i < 32; ++i) ids[15 * i + 1] = 7;
      for (std::size_t i = 0; i < 33; ++i) ids[15 * i + 2] = 8;
      const auto fill = [&](ProgramRun& run) {
        for (const ValueId id : random) run.set_random(id, static_cast<std::uint64_t>(id.index));
        run.set(tokens, ids);
      };

      EXPECT_EQ(run_in_every_order(program, fill), "") << name(dtype) << ", " << h;
    }
  }
}

TEST(CudaEmbeddingBackward, SumsRareAndFrequentTokensWithinBoundsAndLeavesOtherRowsZero) {
  expect_rare_and_frequent_tokens_within_bounds(false);
}

TEST(CudaEmbeddingBackward, AddsRareAndFrequentTokensWithinBoundsAndLeavesOtherRowsAsTheyWere) {
  expect_rare_and_frequent_tokens_within_bounds(true);
}

// 3 tokens of 64 bf16, two of them the same: dy, and two rows of the table; its other 598 rows aren't touched.
TEST(CudaEmbeddingBackward, AddingReadsTheRowsOfTheTableThatTokensName) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  std::int64_t read[2];
  for (const bool adds : {false, true}) {
    Program program;
    const ValueId dy = program.add(tensor("dy", DType::bf16, Shape{3, 64}, Role::gradient));
    const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{3}, Role::input));
    const std::vector<ValueId> random = scatter(program, Math{}, dy, tokens, 600, adds);
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

// As the table of positions of a batch of 40: each of 128 tokens occurs 40 times, more often than a warp has lanes.
std::vector<double> positions_of_a_batch() {
  std::vector<double> tokens(40 * 128);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<double>(i % 128);
  return tokens;
}

// Zipf's law: token k occurs 1200 / k times; in an order that has nothing to do with it.
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

// How many tokens occur more often than a warp has lanes.
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

// dy once. Besides that integers: a token's places are told when they are counted, placed, put in order and summed, the
// last once per slice of 64 columns. All lanes of a warp read what a row of the table has, and all 256 threads of a
// block three integers of a frequent token, to put its places in order and for each slice. Searching all tokens for
// each frequent one would read 128 integers per token and slice.
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
    const std::int64_t of_tokens = count * (4 + 3 + 8 * 2);  // 8 lanes share a slice of a row, of which there are 2
    const std::int64_t of_blocks = frequent(ids) * (1 + 2) * 256 * 3;
    EXPECT_LE(integers, of_tokens + rows * 80 + of_blocks + 2 * 12 * 256);
    EXPECT_GT(integers, count);
  }
}

TEST(CudaEmbeddingBackward, TokensOutsideTheTableCountNowhere) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  Program program;
  const ValueId dy = program.add(tensor("dy", DType::f32, Shape{3, 2}, Role::gradient));
  const ValueId tokens = program.add(tensor("tokens", DType::i32, Shape{3}, Role::input));
  const ValueId dtable = embedding_backward(program, Math{}, "op", dy, tokens, 2);
  ProgramRun run(*backend, program);
  run.set(dy, std::vector<double>{1, 2, 3, 4, 5, 6});
  run.set(tokens, std::vector<double>{2, 1, -1});

  run.run();

  EXPECT_EQ(run.get(dtable), (std::vector<double>{0, 0, 3, 4}));
}

}  // namespace reductions_test
}  // namespace gpubench
