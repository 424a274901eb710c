#include "harness/core/communicator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace gpubench {
namespace {

TEST(RankBarrier, NoRankLeavesBeforeAllHaveArrived) {
  constexpr int ranks = 4;
  constexpr int meetings = 500;
  for (const int spins : {0, 1000}) {
    RankBarrier barrier(ranks, spins);
    std::atomic<int> arrivals{0};
    std::atomic<int> early{0};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        for (int meeting = 1; meeting <= meetings; ++meeting) {
          ++arrivals;
          barrier.arrive(rank);
          if (arrivals < ranks * meeting) ++early;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();

    EXPECT_EQ(early, 0);
    EXPECT_EQ(barrier.meetings(), static_cast<std::uint64_t>(meetings));
    EXPECT_TRUE(barrier.waiting().empty());
  }
}

TEST(RankBarrier, ReportsWaitingRanksAndStopEndsTheWait) {
  RankBarrier barrier(3, 10);
  std::atomic<int> stopped{0};
  std::vector<std::thread> threads;
  for (const int rank : {0, 2}) {
    threads.emplace_back([&, rank] {
      try {
        barrier.arrive(rank);
      } catch (const RanksStopped&) {
        ++stopped;
      }
    });
  }
  while (barrier.waiting().size() < 2) std::this_thread::yield();
  EXPECT_EQ(barrier.waiting(), (std::vector<int>{0, 2}));

  barrier.stop();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stopped, 2);
  EXPECT_THROW(barrier.arrive(1), RanksStopped);  // later arrivals don't wait either

  barrier.reset();
  std::thread other([&] { barrier.arrive(0); });
  std::thread another([&] { barrier.arrive(1); });
  barrier.arrive(2);
  other.join();
  another.join();
  EXPECT_EQ(barrier.meetings(), 1U);
}

TEST(Progress, AWaiterGoesOnAtItsGoalAndNotBefore) {
  Progress progress;
  std::atomic<bool> reached{false};
  std::thread waiter([&] {
    progress.wait_for(3, 0);
    reached = true;
  });
  progress.advance();
  progress.advance();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(reached);
  progress.advance();
  waiter.join();
  EXPECT_TRUE(reached);
  progress.wait_for(2, 0);  // already reached

  progress.stop();
  EXPECT_THROW(progress.wait_for(1, 0), RanksStopped);
  progress.reset();
  EXPECT_EQ(progress.value(), 0U);
}

}  // namespace
}  // namespace gpubench
