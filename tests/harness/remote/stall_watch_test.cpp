// The culprits among processes without progress.
#include "harness/remote/stall_watch.h"

#include <gtest/gtest.h>

#include "harness/core/communicator.h"
#include "harness/core/error.h"

namespace gpubench {
namespace {

using Clock = StallWatch::Clock;

std::string reason(StallWatch& watch, int rank, Clock::time_point now) {
  try {
    watch.look(rank, now);
  } catch (const DeviceLost& e) {
    return e.what();
  } catch (const RanksStopped&) {
    return "stopped";
  }
  return "";
}

const auto later = [](double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
};

TEST(StallWatch, WithoutALimitNoProcessIsLost) {
  StallWatch watch({"process 0", "process 1"}, 0.0);
  watch.begin(0);
  watch.begin(1);
  EXPECT_EQ(reason(watch, 1, later(1e6)), "");
}

TEST(StallWatch, TheCulpritIsTheStalledRankThatWaitsForNoPeer) {
  StallWatch watch({"process 0 (pid 5 on a)", "process 1 (pid 6 on b)"}, 0.05);
  watch.begin(0);
  watch.begin(1);
  const Clock::time_point begun = Clock::now();
  std::string told, other;
  while (told.empty() && Clock::now() - begun < std::chrono::seconds(60)) {
    watch.heard(0, {7, true, "sum"});
    watch.heard(1, {9, false, "mlp"});
    other = reason(watch, 0, Clock::now());
    if (other.empty()) told = reason(watch, 1, Clock::now());
  }
  EXPECT_EQ(told, "process 1 (pid 6 on b) has made no progress for 0.05 s, last in 'mlp'; rank 0 was waiting");
  EXPECT_EQ(reason(watch, 0, Clock::now()), "stopped");
  EXPECT_EQ(watch.lost(), told);
}

TEST(StallWatch, ASilentProcessIsNamedByAnyLook) {
  StallWatch watch({"process 0", "process 1"}, 15.0);
  watch.begin(1);
  watch.heard(1, {1, false, "y"});
  watch.begin(0);
  EXPECT_EQ(reason(watch, 0, later(14.0)), "");
  watch.end(0);
  watch.begin(0);
  EXPECT_NE(reason(watch, 0, later(15.5)).find(" has sent nothing for 15 s"), std::string::npos);
}

TEST(StallWatch, AnIdleProcessIsNeverLost) {
  StallWatch watch({"process 0", "process 1"}, 15.0);
  watch.begin(1);
  watch.end(1);
  EXPECT_EQ(reason(watch, 0, later(1000.0)), "");
}

}  // namespace
}  // namespace gpubench
