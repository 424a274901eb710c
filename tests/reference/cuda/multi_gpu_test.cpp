// Tests of NCCL that need several GPUs. With fewer than two they are skipped, or fail with GPUBENCH_REQUIRE_GPU=1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/run/rank_group.h"
#include "reference/cuda/cuda_backend.h"
#include "reference/cuda/runtime.h"
#include "suites/suites.h"
#include "tests/reference/cuda/suite_runs.h"
#include "tests/thrown_text.h"

namespace gpubench::testing {
namespace multi_gpu_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class MultiGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    GPUBENCH_NEEDS_GPUS(2);
    backend_ = cuda::open_cuda_backend({});
  }
  [[nodiscard]] std::vector<CaseRecord> run_suite(const std::string& suite, Tier tier, std::vector<int> ranks) {
    Selection selection;
    selection.suites = {suite};
    selection.tier = tier;
    selection.default_launch = LaunchMode::graph;
    selection.ranks = std::move(ranks);
    RunOptions options;
    options.tier = Tier::smoke;
    options.open_ranks = [](int count, const OwnImplementation*) {
      return open_rank_group(cuda::open_cuda_ranks({.ranks = count}));
    };
    return run_cases(*backend_, plan_cases(all_suites(), selection), options);
  }
  /// 2, 4, 8, up to the number of GPUs.
  [[nodiscard]] static std::vector<int> rank_counts() {
    std::vector<int> counts;
    for (int ranks = 2; ranks <= std::min(cuda::device_count(), 8); ranks *= 2) counts.push_back(ranks);
    return counts;
  }
  std::unique_ptr<Backend> backend_;
};

TEST_F(MultiGpu, EveryCollectiveIsExactOnEveryNumberOfGpus) {
  const std::vector<CaseRecord> records = run_suite("collectives", Tier::quick, rank_counts());
  EXPECT_GT(expect_passes(records), 0);
  for (const CaseRecord& record : records) {
    if (record.verdict != Verdict::pass) continue;
    EXPECT_THAT(record.implementation, StartsWith("nccl:2.")) << record.id;
  }
}

TEST_F(MultiGpu, ADataParallelStepKeepsEveryBound) {
  EXPECT_GT(expect_passes(run_suite("transformer", Tier::smoke, {2})), 0);
}

TEST_F(MultiGpu, MemoryOfEveryRankLiesOnItsOwnDevice) {
  RankSet set = cuda::open_cuda_ranks({.ranks = 2});
  EXPECT_EQ(set.device.units, set.backends[0]->device().units + set.backends[1]->device().units);
  EXPECT_THAT(set.flags, ::testing::IsEmpty());
  const std::unique_ptr<Backend> ranks = open_rank_group(std::move(set));
  for (int rank = 0; rank < 2; ++rank) {
    const Buffer buffer = ranks->allocate_on(rank, 4096);
    cudaPointerAttributes where{};
    ASSERT_EQ(cudaPointerGetAttributes(&where, buffer.data()), cudaSuccess);
    EXPECT_EQ(where.device, rank);
    const std::vector<std::byte> pattern(8, std::byte{0x5A});
    ranks->fill(buffer.data(), pattern, buffer.bytes());
    std::vector<std::byte> got(buffer.bytes());
    ranks->read(got, buffer.data());
    EXPECT_EQ(got, std::vector<std::byte>(buffer.bytes(), std::byte{0x5A}));
  }
}

TEST_F(MultiGpu, MoreRanksThanGpusAreUnsupportedWithTheNumbers) {
  EXPECT_THAT(thrown_text<Unsupported>([&] { (void)cuda::open_cuda_ranks({.ranks = cuda::device_count() + 1}); }),
              HasSubstr("the driver shows " + std::to_string(cuda::device_count())));
}

}  // namespace multi_gpu_test
}  // namespace gpubench::testing
