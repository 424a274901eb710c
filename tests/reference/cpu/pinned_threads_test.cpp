// Threads keep to their processors while something is timed, and to none afterwards.
#include "reference/cpu/pinned_threads.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <set>
#include <thread>
#include <vector>

#include "reference/cpu/host.h"

namespace gpubench::cpu {
namespace {

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

// Where each thread of a team may run.
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

TEST_F(Pinned, EachThreadButTheCallersHasAProcessorOfItsOwn) {
  const PinnedThreads pinned(processors_);
  EXPECT_TRUE(pinned.pinned());
  const std::vector<cpu_set_t> sets = processors_of_team(processors_);
  std::set<int> taken;
  for (std::size_t thread = 1; thread < sets.size(); ++thread) {
    EXPECT_GE(only_one(sets[thread]), 0) << thread;
    EXPECT_TRUE(taken.insert(only_one(sets[thread])).second) << thread;
  }
  EXPECT_EQ(CPU_COUNT(sets.data()), processors_);
}

// The textbook's threads are started by this thread too: they must not all end on one processor.
TEST_F(Pinned, ThreadsThatAreStartedMeanwhileMayRunAnywhere) {
  const PinnedThreads pinned(processors_);
  int processors = 0;
  std::thread([&] { processors = processors_here(); }).join();
  EXPECT_EQ(processors, processors_);
}

TEST_F(Pinned, AfterwardsAllMayRunAnywhere) {
  { const PinnedThreads pinned(processors_); }
  for (const cpu_set_t& set : processors_of_team(processors_)) EXPECT_EQ(CPU_COUNT(&set), processors_);
}

TEST_F(Pinned, FewerThreadsThanProcessorsAreLeftAlone) {
  const PinnedThreads pinned(processors_ - 1);
  EXPECT_FALSE(pinned.pinned());
  for (const cpu_set_t& set : processors_of_team(processors_)) EXPECT_EQ(CPU_COUNT(&set), processors_);
}

}  // namespace
}  // namespace gpubench::cpu
