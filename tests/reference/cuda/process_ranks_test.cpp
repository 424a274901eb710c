// Ranks in processes with one GPU each, by NCCL on emulated devices. ranks_test.cpp has the contract of their
// collectives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "harness/run/rank_group.h"
#include "reference/ops/collective.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/cuda/fake_nccl.h"
#include "tests/reference/ops/rank_tensors.h"

namespace gpubench::process_ranks_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::nccl_processes;
using testing::NcclTrouble;

/// Uses numbers with exact sums on all ranks.
std::string judged(Backend& ranks, const Program& program, const std::vector<ValueId>& x) {
  testing::ProgramRun run(ranks, program);
  for (std::size_t i = 0; i < x.size(); ++i)
    run.set(x[i], std::vector<double>(static_cast<std::size_t>(program.spec(x[i]).shape.elements()),
                                      1.0 + static_cast<double>(i)));
  return testing::run_and_judge(run);
}

/// The error of an all_reduce of two ranks.
std::string failure_of(Backend& ranks) {
  Program p;
  const std::vector<ValueId> x = testing::on_ranks(p, 2, DType::f32, {64});
  (void)all_reduce(p, {2}, Math{}, "bucket", x);
  try {
    return judged(ranks, p, x);
  } catch (const DeviceLost& e) {
    return std::string("lost: ") + e.what();
  }
}

TEST(NcclProcesses, HaveACommunicatorOfAllAndOneOfEachGroupThatItsMembersAloneSetUp) {
  const int before = testing::fake_nccl_alive();
  {
    const auto processes = nccl_processes(3);
    const std::unique_ptr<Backend> ranks = open_rank_group(processes->ranks().open(3));
    EXPECT_EQ(testing::fake_nccl_alive(), before + 3);
    Program p;
    const std::vector<ValueId> x = testing::on_ranks(p, 3, DType::f32, {4});
    for (const char* label : {"first", "second"})
      (void)all_reduce(p, {2}, Math{}, label, std::vector{x[2], x[0]}, false, RankGroup({2, 0}));
    EXPECT_EQ(judged(*ranks, p, x), "");
    EXPECT_EQ(testing::fake_nccl_alive(), before + 3 + 2);
  }
  EXPECT_EQ(testing::fake_nccl_alive(), before);
}

TEST(NcclProcesses, SomeOfThemAreASetWithoutTheOthers) {
  const auto processes = nccl_processes(3);
  EXPECT_EQ(failure_of(*open_rank_group(processes->ranks().open(2))), "");
}

TEST(NcclProcesses, AnAsynchronousErrorNamesTheProcessAndGivesNcclsWords) {
  const auto processes = nccl_processes(2, {1, 0, NcclTrouble::Kind::async_error});
  EXPECT_THAT(failure_of(*open_rank_group(processes->ranks().open(2))),
              AllOf(HasSubstr("lost: "), HasSubstr("process 1 (pid 101 on host1)"),
                    HasSubstr("remote error (6): told by the fake")));
}

// Devices measure the time: all begin together, and messages are not included.
TEST(NcclProcesses, TakeTheTimeOnTheirDevices) {
  const auto processes = nccl_processes(2);
  const std::unique_ptr<Backend> ranks = open_rank_group(processes->ranks().open(2));
  Program p;
  const std::vector<ValueId> x = testing::on_ranks(p, 2, DType::f32, {64});
  (void)all_reduce(p, {2}, Math{}, "bucket", x);
  testing::ProgramRun run(*ranks, p);
  for (std::size_t i = 0; i < x.size(); ++i) run.set_random(x[i], i + 1);
  run.run();  // group 0
  const Launch whole = ranks->sequence(std::vector{run.launch(0)}, {p.dependencies(), LaunchMode::stream});
  constexpr int runs = 6;
  const RoundTimes times = ranks->time(std::vector{whole}, {2, runs, 0, 0.0, Cadence::streaming});
  EXPECT_EQ(times.device_ns, times.wall_ns);
  EXPECT_EQ(times.device_ns.size(), 2U);
}

}  // namespace gpubench::process_ranks_test
