// Every collective on CPU ranks, against the textbook and bit by bit.
#include "reference/cpu/cpu_ranks.h"

#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/run/rank_group.h"
#include "reference/ops/collective.h"
#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace {

using testing::ProgramRun;
using testing::run_and_judge;

std::vector<ValueId> on_ranks(Program& program, DType type, const std::vector<std::int64_t>& counts) {
  std::vector<ValueId> ids;
  const auto ranks = static_cast<int>(counts.size());
  for (int rank = 0; rank < ranks; ++rank) {
    TensorSpec spec =
        tensor(name_on_rank("x", rank, ranks), type, {counts[static_cast<std::size_t>(rank)]}, Role::gradient);
    spec.placement = {0, Memory::device, rank, ranks};
    ids.push_back(program.add(std::move(spec)));
  }
  return ids;
}

/// Whole numbers from -4 to 4, others on each rank: sums of 8 are exact in bf16.
std::vector<double> whole_numbers(std::int64_t count, std::size_t rank) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(hash_at(rank + 1, i) % 9) - 4.0;
  return values;
}

/// Judges the program's one op, twice over, on whole numbers; the textbook's bound is 0 for them.
std::string judged(Backend& ranks, const Program& program, const std::vector<ValueId>& x) {
  ProgramRun run(ranks, program);
  for (std::size_t i = 0; i < x.size(); ++i) run.set(x[i], whole_numbers(program.spec(x[i]).shape.elements(), i));
  if (std::string fault = run_and_judge(run); !fault.empty()) return fault;
  return run.canaries_intact() ? "" : "canaries";
}

class CpuRanks : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] std::vector<std::int64_t> each(std::int64_t count) const {
    return std::vector<std::int64_t>(static_cast<std::size_t>(GetParam()), count);
  }
  std::unique_ptr<Backend> ranks_ = open_rank_group(open_cpu_ranks(GetParam()));
};

// One element, fewer than ranks, not divisible by them, small enough for one meeting and not.
constexpr std::int64_t counts[] = {1, 3, 7, 1000, 1024, 4099, 100003};

TEST_P(CpuRanks, ReduceAllCountsBitForBitInAndOutOfPlace) {
  for (const std::int64_t count : counts) {
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const Reduction reduction : {Reduction::sum, Reduction::average, Reduction::maximum}) {
        for (const bool in_place : {false, true}) {
          Program p;
          const std::vector<ValueId> x = on_ranks(p, type, each(count));
          (void)all_reduce(p, {GetParam(), reduction}, Math{}, "y", x, in_place);
          EXPECT_EQ(judged(*ranks_, p, x), "") << count << " " << name(type) << " " << name(reduction) << in_place;
        }
      }
    }
  }
}

TEST_P(CpuRanks, ComeToTheSameBitsWhereSumsRound) {
  for (const DType type : {DType::f32, DType::bf16}) {
    Program p;
    const std::vector<ValueId> x = on_ranks(p, type, each(5003));
    const std::vector<ValueId> y = all_reduce(p, {GetParam()}, Math{}, "y", x);
    ProgramRun run(*ranks_, p);
    for (std::size_t i = 0; i < x.size(); ++i) run.set_random(x[i], i + 1);
    EXPECT_EQ(run_and_judge(run), "");
    for (const ValueId other : y) EXPECT_EQ(run.bytes_of(other), run.bytes_of(y[0]));
  }
}

TEST_P(CpuRanks, ReduceSeveralTensorsOfOneBucket) {
  Program p;
  std::vector<ValueId> x;
  for (int rank = 0; rank < GetParam(); ++rank) {
    for (const auto& [name, type, n] :
         {std::tuple{"a", DType::f32, 770}, {"b", DType::bf16, 3}, {"c", DType::f32, 1}}) {
      TensorSpec spec = tensor(name_on_rank(name, rank, GetParam()), type, {n}, Role::gradient);
      spec.placement = {0, Memory::device, rank, GetParam()};
      x.push_back(p.add(std::move(spec)));
    }
  }
  (void)all_reduce(p, {GetParam()}, Math{}, "y", x, true);
  EXPECT_EQ(judged(*ranks_, p, x), "");
}

TEST_P(CpuRanks, MoveEveryTypeBitForBit) {
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{77}, std::int64_t{1103}}) {
    for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f8_e4m3, DType::u8}) {
      const auto try_one = [&](const auto& build) {
        Program p;
        const std::vector<ValueId> x = on_ranks(p, type, each(count * GetParam()));
        build(p, x);
        EXPECT_EQ(judged(*ranks_, p, x), "") << p.op(0).kind.name << " " << count << " " << name(type);
      };
      try_one([&](Program& p, const auto& x) { (void)all_gather(p, {GetParam()}, "y", x); });
      try_one([&](Program& p, const auto& x) { (void)all_gather_in_place(p, {GetParam()}, "y", x); });
      try_one([&](Program& p, const auto& x) { (void)broadcast(p, {GetParam(), GetParam() - 1}, "y", x.back()); });
      try_one([&](Program& p, const auto& x) { (void)send_recv(p, {GetParam(), 1}, "y", x); });
      try_one([&](Program& p, const auto& x) { (void)send_recv(p, {GetParam(), -2}, "y", x); });
      try_one([&](Program& p, const auto& x) {
        const auto pairs = static_cast<std::size_t>(GetParam() * GetParam());
        (void)all_to_all(p, {GetParam(), std::vector<std::int64_t>(pairs, count)}, "y", x);
      });
    }
  }
}

TEST_P(CpuRanks, ScatterSumsInAndOutOfPlace) {
  for (const std::int64_t part : {1, 5, 2000}) {
    for (const bool in_place : {false, true}) {
      Program p;
      const std::vector<ValueId> x = on_ranks(p, DType::bf16, each(part * GetParam()));
      (void)reduce_scatter(p, {GetParam()}, Math{}, "y", x, in_place);
      EXPECT_EQ(judged(*ranks_, p, x), "") << part << in_place;
    }
  }
}

TEST_P(CpuRanks, ExchangeBlocksOfDifferentSizesSomeOfThemEmpty) {
  const int n = GetParam();
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

INSTANTIATE_TEST_SUITE_P(Counts, CpuRanks, ::testing::Values(2, 3, 4, 8));

TEST(CpuRankSet, MoreRanksThanProcessorsAreFlagged) {
  EXPECT_EQ(open_cpu_ranks(64).flags, std::vector<std::string>{"oversubscribed"});
  EXPECT_TRUE(open_cpu_ranks(1).flags.empty());
}

TEST(CpuRankSet, NoRanksAndTooManyAreRefusedWithTheNumber) {
  EXPECT_THROW((void)open_cpu_ranks(0), BackendError);
  try {
    (void)open_cpu_ranks(65);
    FAIL();
  } catch (const BackendError& e) {
    EXPECT_STREQ(e.what(), "cpu: 65 ranks; expected 1 to 64");
  }
}

TEST(CpuRankSet, ReductionsOfATypeThatItLacksAreUnsupportedByName) {
  const std::unique_ptr<Backend> ranks = open_rank_group(open_cpu_ranks(2));
  Program p;
  (void)all_reduce(p, {2}, Math{}, "y", on_ranks(p, DType::f16, {4, 4}));
  ProgramRun run(*ranks, p);
  try {
    run.run();
    FAIL();
  } catch (const Unsupported& e) {
    EXPECT_NE(std::string(e.what()).find("reductions of f16"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace gpubench
