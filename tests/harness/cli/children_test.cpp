// Questions to children: the shell stands in for a program that asks a driver.
#include "harness/cli/children.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "harness/cli/device.h"
#include "harness/cli/exit_code.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace question_test {

using ::testing::HasSubstr;

const StopFlag never{0};

// The shell gets the two words that ask() adds as $0 and $1.
Heard told_by(const std::string& script, double deadline_s = 60.0, const StopFlag& stop = never) {
  return ask({"/bin/sh", "-c", script}, deadline_s, stop);
}

TEST(Question, TheLastAnswerOfAChildThatEndsWellCounts) {
  const Heard heard = told_by("printf 'Cone\\nAfirst\\nCtwo\\nAsecond\\n' >&3");
  EXPECT_EQ(heard.answer, "second");
  EXPECT_EQ(heard.trouble, "");
}

TEST(Question, SilenceEndsTheChildAndNamesTheCall) {
  const Heard heard = told_by("printf 'CcuInit\\n' >&3; exec sleep 1000", 0.05);
  EXPECT_EQ(heard.answer, "");
  EXPECT_EQ(heard.trouble, "does not answer (cuInit, 0.05 s)");
}

TEST(Question, WhatWasAnsweredBeforeTheSilenceIsKept) {
  const Heard heard = told_by("printf 'Apart\\nCnvmlShutdown\\n' >&3; exec sleep 1000", 0.05);
  EXPECT_EQ(heard.answer, "part");
  EXPECT_THAT(heard.trouble, HasSubstr("nvmlShutdown"));
}

TEST(Question, ACrashIsToldWithItsCall) {
  EXPECT_EQ(told_by("printf 'CcuInit\\n' >&3; kill -SEGV $$").trouble,
            "ended by signal 11 (Segmentation fault) in cuInit");
  EXPECT_EQ(told_by("exit 3").trouble, "exited with status 3");
}

TEST(Question, NonsenseIsNoAnswer) {
  EXPECT_EQ(told_by("printf 'A half a line' >&3").answer, "");
  EXPECT_EQ(told_by("printf '\\n\\n' >&3").answer, "");
}

TEST(Question, AStopEndsItsChild) {
  const StopFlag stopped{15};
  EXPECT_THROW((void)told_by("exec sleep 1000", 0.0, stopped), CannotMeasure);
}

TEST(Question, AProgramThatIsNotThereIsSaid) {
  EXPECT_THAT(thrown_text<CannotMeasure>([&] { (void)ask({"/nonexistent/gpubench"}, 1.0, never); }),
              HasSubstr("could not start '/nonexistent/gpubench': No such file"));
}

// The stop flag is up before the run begins, so that the signal is the first thing that it meets.
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
    EXPECT_EQ(run_child_process({"/bin/sh", "-c", script}, never, err, 0.1), exit_codes::could_not_measure);
    EXPECT_THAT(err.str(), HasSubstr(said));
  }
}

}  // namespace question_test
}  // namespace gpubench
