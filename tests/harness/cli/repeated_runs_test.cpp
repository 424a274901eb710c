// The shell replaces the runs of this program.
#include "harness/cli/repeated_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "harness/cli/exit_code.h"

namespace gpubench {

TEST(ChildRun, IsPassedTheSignalAndEnds) {
  const StopFlag stopped{15};
  std::ostringstream err;
  EXPECT_EQ(run_child_process({"/bin/sh", "-c", "exec sleep 1000"}, stopped, err), 128 + 15);
}

TEST(ChildRun, OneThatAnotherSignalEndsOrStopsCouldNotMeasure) {
  for (const auto& [script, said] : {std::pair{"kill -KILL $$", "a run ended by signal 9 (Killed)"},
                                     {"exit 143", "a run was interrupted by signal 15"},
                                     {"kill -STOP $$", "a run was stopped by a signal for 0.1 s"}}) {
    std::ostringstream err;
    EXPECT_EQ(run_child_process({"/bin/sh", "-c", script}, StopFlag{0}, err, 0.1), exit_codes::could_not_measure);
    EXPECT_THAT(err.str(), ::testing::HasSubstr(said));
  }
}

}  // namespace gpubench
