#include "reference/ops/collective.h"

#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "tests/reference/ops/rank_tensors.h"

namespace gpubench {
namespace shared_memory_collective_test {

using testing::on_ranks;

/// Tensors of `call` at invalid addresses, one MiB apart.
std::vector<Tensor> placed(const Program& program, const OpCall& call) {
  std::vector<ValueId> ids = call.inputs;
  ids.insert(ids.end(), call.outputs.begin(), call.outputs.end());
  std::vector<Tensor> tensors;
  for (const ValueId id : ids)
    tensors.push_back({program.spec(id), reinterpret_cast<std::byte*>((tensors.size() + 1) << 20U)});
  return tensors;
}

TEST(SharedMemoryCollective, EveryElementIsReducedByExactlyOneRankForAllOfThem) {
  for (const int ranks : {2, 3, 8}) {
    for (const std::int64_t count : {1, 5, 31, 1000, 4099}) {
      Program p;
      (void)all_reduce(p, {ranks}, Math{}, "y", on_ranks(p, ranks, DType::bf16, {count}));
      const std::vector<Tensor> tensors = placed(p, p.op(0));
      std::vector<int> reduced(static_cast<std::size_t>(count));
      for (const RankTasks& tasks : tasks_of(p.op(0), tensors)) {
        for (const ReduceTask& task : tasks.reductions) {
          ASSERT_EQ(task.from.size(), static_cast<std::size_t>(ranks));
          ASSERT_EQ(task.to.size(), static_cast<std::size_t>(ranks));
          const std::ptrdiff_t first = (task.from[0] - tensors[0].data) / 2;
          for (std::size_t rank = 0; rank < task.from.size(); ++rank) {  // the same part of every rank's tensors
            EXPECT_EQ(task.from[rank] - tensors[rank].data, 2 * first);
            EXPECT_EQ(task.to[rank] - tensors[task.from.size() + rank].data, 2 * first);
          }
          EXPECT_EQ(first % 32, 0);  // a cache line: no two ranks write into one
          for (std::int64_t i = first; i < first + task.count; ++i) ++reduced.at(static_cast<std::size_t>(i));
        }
      }
      EXPECT_EQ(reduced, std::vector<int>(static_cast<std::size_t>(count), 1)) << ranks << " ranks, " << count;
    }
  }
}

TEST(SharedMemoryCollective, WhatIsInPlaceAlreadyIsNotCopied) {
  Program p;
  (void)all_gather_in_place(p, {2}, "y", on_ranks(p, 2, DType::f32, {8}));
  std::vector<Tensor> tensors = placed(p, p.op(0));
  tensors[0].data = tensors[2].data;  // rank 0's part of its whole
  tensors[1].data = tensors[3].data + 16;
  const std::vector<RankTasks> tasks = tasks_of(p.op(0), tensors);
  ASSERT_EQ(tasks[0].copies.size(), 1U);
  EXPECT_EQ(tasks[0].copies[0].from, tensors[1].data);
  EXPECT_EQ(tasks[0].copies[0].to, tensors[2].data + 16);
  EXPECT_EQ(tasks[0].copies[0].bytes, 16);
}

TEST(SharedMemoryCollective, AnotherOpIsRefused) {
  OpCall call;
  call.kind = OpKind{"gemm"};
  EXPECT_THROW((void)tasks_of(call, {}), ProgramError);
}

}  // namespace shared_memory_collective_test
}  // namespace gpubench
