// What every communicator has to do, against the textbook and bit by bit: each test program that has one instantiates
// these tests for it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/hash.h"
#include "harness/run/rank_group.h"
#include "reference/ops/collective.h"
#include "reference/ops/token_exchange.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/ops/rank_tensors.h"

namespace gpubench::testing {

struct RankOpening {
  std::string name;  ///< of the instance
  int ranks = 2;
  std::function<RankSet(int ranks)> open;
  std::vector<DType> reduced{DType::f32, DType::bf16};  ///< types that it has sums of

  friend std::ostream& operator<<(std::ostream& out, const RankOpening& opening) { return out << opening.name; }
};

/// One tensor "x" of that many elements on each rank.
inline std::vector<ValueId> on_ranks(Program& program, DType type, const std::vector<std::int64_t>& counts) {
  const auto ranks = static_cast<int>(counts.size());
  std::vector<ValueId> ids;
  for (int rank = 0; rank < ranks; ++rank)
    ids.push_back(on_rank(program, "x", rank, ranks, type, {counts[static_cast<std::size_t>(rank)]}));
  return ids;
}

/// Whole numbers from -4 to 4, others on each rank: sums of 8 are exact in bf16.
inline std::vector<double> whole_numbers(std::int64_t count, std::size_t rank) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(hash_at(rank + 1, i) % 9) - 4.0;
  return values;
}

/// Judges the program's one op, twice over, on whole numbers; the textbook's bound is 0 for them.
inline std::string judged(Backend& ranks, const Program& program, const std::vector<ValueId>& x) {
  ProgramRun run(ranks, program);
  for (std::size_t i = 0; i < x.size(); ++i) run.set(x[i], whole_numbers(program.spec(x[i]).shape.elements(), i));
  if (std::string fault = run_and_judge(run); !fault.empty()) return fault;
  return run.canaries_intact() ? "" : "canaries";
}

/// A NaN on the first rank or on a later one is the maximum on all three.
inline void expect_nan_stays(Backend& three_ranks) {
  Program p;
  const std::vector<ValueId> x = on_ranks(p, DType::f32, {3, 3, 3});
  const std::vector<ValueId> y = all_reduce(p, {3, Reduction::maximum}, Math{}, "y", x);
  ProgramRun run(three_ranks, p);
  const double nan = std::nan("");
  run.set(x[0], std::vector<double>{1.0, nan, 2.0});
  run.set(x[1], std::vector<double>{3.0, 5.0, nan});
  run.set(x[2], std::vector<double>{2.0, 4.0, 6.0});
  run.run();
  for (const ValueId id : y) {
    EXPECT_EQ(run.get(id)[0], 3.0);
    EXPECT_TRUE(std::isnan(run.get(id)[1]));
    EXPECT_TRUE(std::isnan(run.get(id)[2]));
  }
}

class Collectives : public ::testing::TestWithParam<RankOpening> {
 protected:
  [[nodiscard]] std::vector<std::int64_t> each(std::int64_t count) const {
    return std::vector<std::int64_t>(static_cast<std::size_t>(ranks()), count);
  }
  [[nodiscard]] static int ranks() { return GetParam().ranks; }
  std::unique_ptr<Backend> ranks_ = open_rank_group(GetParam().open(ranks()));
};

// One element, fewer than ranks, not divisible by them, small enough for one meeting and not; last, of several pieces
// a rank, which are shared out in the same way whatever the reduction.
inline constexpr std::int64_t counts[] = {1, 3, 7, 1000, 1024, 4099, 100003};

TEST_P(Collectives, ReduceAllCountsBitForBitInAndOutOfPlace) {
  for (const std::int64_t count : counts) {
    for (const DType type : GetParam().reduced) {
      for (const Reduction reduction : {Reduction::sum, Reduction::average, Reduction::maximum}) {
        if (count == std::end(counts)[-1] && reduction != Reduction::sum) continue;
        for (const bool in_place : {false, true}) {
          Program p;
          const std::vector<ValueId> x = on_ranks(p, type, each(count));
          (void)all_reduce(p, {ranks(), reduction}, Math{}, "y", x, in_place);
          EXPECT_EQ(judged(*ranks_, p, x), "") << count << " " << name(type) << " " << name(reduction) << in_place;
        }
      }
    }
  }
}

TEST_P(Collectives, ComeToTheSameBitsWhereSumsRound) {
  for (const DType type : GetParam().reduced) {
    Program p;
    const std::vector<ValueId> x = on_ranks(p, type, each(5003));
    const std::vector<ValueId> y = all_reduce(p, {ranks()}, Math{}, "y", x);
    ProgramRun run(*ranks_, p);
    for (std::size_t i = 0; i < x.size(); ++i) run.set_random(x[i], i + 1);
    EXPECT_EQ(run_and_judge(run), "");
    for (const ValueId other : y) EXPECT_EQ(run.bytes_of(other), run.bytes_of(y[0]));
  }
}

TEST_P(Collectives, ReduceSeveralTensorsOfOneBucket) {
  Program p;
  std::vector<ValueId> x;
  for (int rank = 0; rank < ranks(); ++rank) {
    for (const auto& [name, type, n] : {std::tuple{"a", DType::f32, 770}, {"b", DType::bf16, 3}, {"c", DType::f32, 1}})
      x.push_back(on_rank(p, name, rank, ranks(), type, {n}));
  }
  (void)all_reduce(p, {ranks()}, Math{}, "y", x, true);
  EXPECT_EQ(judged(*ranks_, p, x), "");
}

TEST_P(Collectives, MoveEveryTypeBitForBit) {
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{77}, std::int64_t{1103}}) {
    for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f8_e4m3, DType::u8}) {
      const auto try_one = [&](const auto& build) {
        Program p;
        const std::vector<ValueId> x = on_ranks(p, type, each(count * ranks()));
        build(p, x);
        EXPECT_EQ(judged(*ranks_, p, x), "") << p.op(0).kind.name << " " << count << " " << name(type);
      };
      try_one([&](Program& p, const auto& x) { (void)all_gather(p, {ranks()}, "y", x); });
      try_one([&](Program& p, const auto& x) { (void)all_gather_in_place(p, {ranks()}, "y", x); });
      try_one([&](Program& p, const auto& x) { (void)broadcast(p, {ranks(), ranks() - 1}, "y", x.back()); });
      try_one([&](Program& p, const auto& x) { (void)send_recv(p, {ranks(), 1}, "y", x); });
      try_one([&](Program& p, const auto& x) { (void)send_recv(p, {ranks(), -2}, "y", x); });
      for (int round = 1; round <= rounds_of_pairs(ranks()); ++round)
        try_one([&](Program& p, const auto& x) { (void)send_recv(p, {ranks(), 1, round}, "y", x); });
      try_one([&](Program& p, const auto& x) {
        const auto pairs = static_cast<std::size_t>(ranks() * ranks());
        (void)all_to_all(p, {ranks(), std::vector<std::int64_t>(pairs, count)}, "y", x);
      });
    }
  }
}

TEST_P(Collectives, ScatterSumsInAndOutOfPlace) {
  for (const std::int64_t part : {1, 5, 2000}) {
    for (const bool in_place : {false, true}) {
      Program p;
      const std::vector<ValueId> x = on_ranks(p, DType::bf16, each(part * ranks()));
      (void)reduce_scatter(p, {ranks()}, Math{}, "y", x, in_place);
      EXPECT_EQ(judged(*ranks_, p, x), "") << part << in_place;
    }
  }
}

TEST_P(Collectives, ExchangeBlocksOfDifferentSizesSomeOfThemEmpty) {
  const int n = ranks();
  AllToAll exchange{n, {}};
  std::vector<std::int64_t> sent(static_cast<std::size_t>(n));
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      exchange.counts.push_back((5 * from + 3 * to) % 7 == 0 && to != 0 ? 0 : 11 * from + to + 1);
      sent[static_cast<std::size_t>(from)] += exchange.counts.back();
    }
  }
  Program p;
  const std::vector<ValueId> x = on_ranks(p, DType::f32, sent);
  (void)all_to_all(p, exchange, "y", x);
  EXPECT_EQ(judged(*ranks_, p, x), "");
}

/// How many of a rank's rows are for each expert: all for one, or few for some and none for the others, with rows left.
inline std::vector<double> uneven_sizes(std::int64_t experts, std::int64_t rows, std::size_t rank) {
  std::vector<double> sizes(static_cast<std::size_t>(experts));
  if (rank % 3 == 2) {
    sizes[rank % sizes.size()] = static_cast<double>(rows);
    return sizes;
  }
  std::int64_t left = rows - 1;
  for (std::size_t expert = 0; expert < sizes.size(); ++expert) {
    const std::int64_t size = std::min<std::int64_t>(left, static_cast<std::int64_t>(hash_at(rank + 11, expert) % 4));
    sizes[expert] = static_cast<double>(size);
    left -= size;
  }
  return sizes;
}

TEST_P(Collectives, BringTokensToTheirExpertsAndBack) {
  for (const DType type : {DType::f32, DType::bf16, DType::u8}) {
    for (const std::int64_t h : {1, 16, 37}) {
      for (const std::int64_t experts_each : {1, 3}) {
        const std::int64_t n = 23, experts = experts_each * ranks();
        Program p;
        const std::vector<ValueId> x = testing::on_ranks(p, ranks(), type, {n, h});
        const std::vector<ValueId> sizes = testing::on_ranks(p, ranks(), DType::i32, {experts}, "sizes");
        const DispatchedTokens sent = dispatch_tokens(p, {ranks()}, "y", x, sizes);
        const std::vector<ValueId> back = return_tokens(p, {ranks()}, "back", sent.y, sizes);
        ProgramRun run(*ranks_, p);
        for (std::size_t rank = 0; rank < x.size(); ++rank) {
          run.set(x[rank], whole_numbers(n * h, rank));
          run.set(sizes[rank], uneven_sizes(experts, n, rank));
        }
        EXPECT_EQ(run_and_judge(run), "") << name(type) << " " << h << " " << experts;
        EXPECT_TRUE(run.canaries_intact());
        for (std::size_t rank = 0; rank < x.size(); ++rank) {
          std::vector<double> expected = run.get(x[rank]);
          double used = 0.0;
          for (const double size : uneven_sizes(experts, n, rank)) used += size;
          std::fill(expected.begin() + static_cast<std::ptrdiff_t>(used) * h, expected.end(), 0.0);
          EXPECT_EQ(run.get(back[rank]), expected) << name(type) << " " << rank;
        }
      }
    }
  }
}

// No size is believed: whatever they are, ranks stay within their tensors.
TEST_P(Collectives, WriteNowhereElseForSizesThatMakeNoSense) {
  for (const double size : {-5.0, 1000.0, 2147483647.0}) {
    Program p;
    const std::vector<ValueId> x = testing::on_ranks(p, ranks(), DType::f32, {5, 4});
    const std::vector<ValueId> sizes = testing::on_ranks(p, ranks(), DType::i32, {2 * ranks()}, "sizes");
    const DispatchedTokens sent = dispatch_tokens(p, {ranks()}, "y", x, sizes);
    (void)return_tokens(p, {ranks()}, "back", sent.y, sizes);
    ProgramRun run(*ranks_, p);
    for (std::size_t rank = 0; rank < x.size(); ++rank) {
      run.set(x[rank], whole_numbers(20, rank));
      std::vector<double> of_rank(static_cast<std::size_t>(2 * ranks()), 1.0);
      of_rank[rank] = size;
      run.set(sizes[rank], of_rank);
    }
    run.run();
    EXPECT_TRUE(run.canaries_intact()) << size;
  }
}

/// The last rank first; of more than two, every other one.
inline RankGroup backwards(int ranks) {
  std::vector<int> members;
  for (int rank = ranks - 1; rank >= 0; rank -= ranks > 2 ? 2 : 1) members.push_back(rank);
  return RankGroup(members);
}

TEST_P(Collectives, AreBetweenAnyRanksInAnyOrder) {
  const RankGroup group = backwards(ranks());
  const int n = group.size();
  for (const std::int64_t count : {std::int64_t{n}, std::int64_t{1100 * n}}) {
    const auto try_one = [&](const auto& build) {
      Program p;
      std::vector<ValueId> x;
      for (const int rank : group.members()) x.push_back(on_rank(p, "x", rank, ranks(), DType::f32, {count}));
      build(p, x);
      EXPECT_EQ(judged(*ranks_, p, x), "") << p.op(0).kind.name << " " << count;
    };
    try_one([&](Program& p, const auto& x) { (void)all_reduce(p, {n}, Math{}, "y", x, false, group); });
    try_one([&](Program& p, const auto& x) { (void)all_reduce(p, {n}, Math{}, "y", x, true, group); });
    try_one([&](Program& p, const auto& x) { (void)reduce_scatter(p, {n}, Math{}, "y", x, false, group); });
    try_one([&](Program& p, const auto& x) { (void)all_gather(p, {n}, "y", x, group); });
    try_one([&](Program& p, const auto& x) { (void)broadcast(p, {n, 1}, "y", x[1], group); });
    try_one([&](Program& p, const auto& x) { (void)send_recv(p, {n, 1}, "y", x, group); });
    try_one([&](Program& p, const auto& x) {
      const std::vector<std::int64_t> even(static_cast<std::size_t>(n * n), count / n);
      (void)all_to_all(p, {n, even}, "y", x, group);
    });
  }
}

// Each pair of neighbours adds up, from the first pair to the last, so that every rank but the ends is in two groups:
// the last rank ends up with the sum of all. Beside that, all ranks add up what they began with.
TEST_P(Collectives, OfGroupsThatShareRanksRunInTheOrderOfTheProgram) {
  for (const std::int64_t count : {std::int64_t{5}, std::int64_t{3000}}) {
    Program p;
    const std::vector<ValueId> x = on_ranks(p, DType::f32, each(count));
    ValueId passed = x[0];
    for (int rank = 0; rank + 1 < ranks(); ++rank) {
      const std::vector<ValueId> pair{passed, x[static_cast<std::size_t>(rank) + 1]};
      passed = all_reduce(p, {2}, Math{}, "pair" + std::to_string(rank), pair, false, RankGroup({rank, rank + 1}))[1];
    }
    const ValueId all = all_reduce(p, {ranks()}, Math{}, "all", x).back();
    ProgramRun run(*ranks_, p);
    for (std::size_t i = 0; i < x.size(); ++i) run.set(x[i], whole_numbers(count, i));
    run.run();
    const std::vector<std::byte> expected = run.bytes_of(all);
    EXPECT_EQ(run.bytes_of(passed), expected);

    std::vector<Launch> launches;
    for (int op = 0; op < static_cast<int>(p.ops().size()); ++op) launches.push_back(run.launch(op));
    const Launch whole = ranks_->sequence(launches, {p.dependencies(), LaunchMode::stream});
    for (int repeat = 0; repeat < 10; ++repeat) {
      for (const OpCall& op : p.ops()) {
        for (const ValueId y : op.outputs) run.set(y, std::vector<double>(static_cast<std::size_t>(count), 0.5));
      }
      ranks_->run(whole);
      EXPECT_EQ(run.bytes_of(passed), expected);
      EXPECT_EQ(run.bytes_of(all), expected);
    }
    EXPECT_TRUE(run.canaries_intact());
  }
}

}  // namespace gpubench::testing
