// Threads are pinned while something is timed, and not afterwards.
#include "reference/cpu/host.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <set>
#include <thread>
#include <vector>

namespace gpubench::cpu {
namespace pinned_threads_test {

cpu_set_t own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

int processors_here() {
  const cpu_set_t set = own_processors();
  return CPU_COUNT(&set);
}

// Affinity of each thread of a team.
std::vector<cpu_set_t> processors_of_team(int threads) {
  std::vector<cpu_set_t> sets(static_cast<std::size_t>(threads));
#pragma omp parallel num_threads(threads)
  sets[static_cast<std::size_t>(omp_get_thread_num())] = own_processors();
  return sets;
}

int only_one(const cpu_set_t& set) {
  for (int processor = 0; CPU_COUNT(&set) == 1 && processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &set)) return processor;
  }
  return -1;
}

class Pinned : public ::testing::Test {
 protected:
  void SetUp() override {
    omp_set_dynamic(0);
    if (omp_get_proc_bind() != omp_proc_bind_false) GTEST_SKIP() << "OMP_PROC_BIND places the threads";
    if (processors_ < 2) GTEST_SKIP() << "one processor only: there is nowhere to move to";
  }
  int processors_ = processors_here();
};

TEST_F(Pinned, EachThreadHasAProcessorOfItsOwnTheCallersToo) {
  const PinnedThreads pinned(processors_);
  EXPECT_TRUE(pinned.pinned());
  std::set<int> taken;
  for (const cpu_set_t& set : processors_of_team(processors_)) {
    EXPECT_GE(only_one(set), 0);
    EXPECT_TRUE(taken.insert(only_one(set)).second);
  }
}

TEST_F(Pinned, ThreadsThatStayKeepTheirProcessors) {
  PinnedThreads pinned(processors_);
  (void)processors_of_team(processors_);
  (void)processors_of_team(1);  // a single thread is no new team
  pinned.release_if_threads_changed();
  EXPECT_TRUE(pinned.pinned());
}

// New threads inherit the caller's processor: they must be unpinned.
TEST_F(Pinned, WhereTheWorkStartsThreadsAnewNoneIsBound) {
  PinnedThreads pinned(processors_);
  ASSERT_TRUE(pinned.pinned());
  omp_pause_resource(omp_pause_soft, omp_get_initial_device());  // ends the team's threads
  (void)processors_of_team(processors_);
  pinned.release_if_threads_changed();
  EXPECT_FALSE(pinned.pinned());
  for (const cpu_set_t& set : processors_of_team(processors_)) EXPECT_EQ(CPU_COUNT(&set), processors_);
}

TEST_F(Pinned, AfterwardsAllMayRunAnywhere) {
  { const PinnedThreads pinned(processors_); }
  for (const cpu_set_t& set : processors_of_team(processors_)) EXPECT_EQ(CPU_COUNT(&set), processors_);
}

// As `taskset -a` does: one processor for all.
TEST_F(Pinned, WhereAnotherProcessHasBoundThreadsMeanwhileTheyStayBound) {
  const cpu_set_t before = own_processors();
  cpu_set_t one;
  {
    const PinnedThreads pinned(processors_);
    one = own_processors();
#pragma omp parallel num_threads(processors_)
    (void)sched_setaffinity(0, sizeof one, &one);
  }
  for (const cpu_set_t& set : processors_of_team(processors_)) EXPECT_NE(CPU_EQUAL(&set, &one), 0);
#pragma omp parallel num_threads(processors_)
  (void)sched_setaffinity(0, sizeof before, &before);
}

TEST_F(Pinned, FewerThreadsThanProcessorsAreLeftAlone) {
  const PinnedThreads pinned(processors_ - 1);
  EXPECT_FALSE(pinned.pinned());
  for (const cpu_set_t& set : processors_of_team(processors_)) EXPECT_EQ(CPU_COUNT(&set), processors_);
}

}  // namespace pinned_threads_test
}  // namespace gpubench::cpu
