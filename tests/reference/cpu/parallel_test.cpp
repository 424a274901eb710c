// Splitting over threads covers everything once, cuts at the grain, and is deterministic.
#include "reference/cpu/parallel.h"

#include <gtest/gtest.h>

#include <limits>
#include <mutex>
#include <vector>

#include "harness/core/dtype.h"
#include "reference/cpu/block_io.h"

namespace gpubench::cpu {
namespace parallel_test {

TEST(ParallelChunks, CoverEveryIndexOnceCutAtTheGrain) {
  for (const int threads : {1, 2, 3, 7}) {
    for (const std::int64_t total : {0, 1, 2, 15, 16, 17, 100, 1000}) {
      for (const std::int64_t grain : {1, 16, 64}) {
        std::vector<int> times(static_cast<std::size_t>(total), 0);
        std::mutex mutex;
        int pieces = 0;
        parallel_chunks(threads, total, grain, [&](std::int64_t begin, std::int64_t end) {
          const std::lock_guard<std::mutex> lock(mutex);
          ++pieces;
          EXPECT_EQ(begin % grain, 0);
          EXPECT_TRUE(end % grain == 0 || end == total) << end;
          for (std::int64_t i = begin; i < end; ++i) ++times[static_cast<std::size_t>(i)];
        });
        EXPECT_EQ(times, std::vector<int>(static_cast<std::size_t>(total), 1))
            << threads << " " << total << " " << grain;
        EXPECT_LE(pieces, threads);
        EXPECT_LE(pieces, chunk_count(threads, total, grain));
      }
    }
  }
}

TEST(ParallelChunks, AreNearlyEqual) {
  for (int index = 0; index < 3; ++index) {
    const Chunk chunk = chunk_of(100, 10, 3, index);  // 10 grains over 3: 3, 3, 4
    EXPECT_GE(chunk.end - chunk.begin, 30);
    EXPECT_LE(chunk.end - chunk.begin, 40);
  }
}

// harness/core rounds by separate integer arithmetic: every upper half with every kind of lower half.
TEST(Bf16, NarrowsAsTheHarnessRounds) {
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper) {
    for (const std::uint32_t lower : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const float value = std::bit_cast<float>(upper << 16U | lower);
      const bf16 got = narrow<bf16>(value);
      if (value != value) {
        EXPECT_NE(widen(got), widen(got)) << upper << " " << lower;
      } else {
        EXPECT_EQ(static_cast<double>(widen(got)), round_to(DType::bf16, static_cast<double>(value))) << value;
      }
    }
  }
}

}  // namespace parallel_test
}  // namespace gpubench::cpu
