// Children that work and children that are asked: the shell stands in for this program.
#include "harness/verify/working_children.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "tests/thrown_text.h"

namespace gpubench {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const StopFlag never{0};

TEST(WorkPage, SaysTheSameOnBothSides) {
  WorkPage parent;
  EXPECT_EQ(parent.said(), "");
  WorkPage child(parent.fd());
  child.say("the check of X");
  EXPECT_EQ(parent.said(), "the check of X");
  const std::uint64_t beats = parent.beats();
  child.beat();
  EXPECT_NE(parent.beats(), beats);
  child.say(std::string(10'000, 'x'));
  EXPECT_EQ(parent.said(), std::string(500, 'x'));
}

// The shell gets the words that start() and ask() add as $0, $1, ...
std::vector<std::string> troubles_of(const std::vector<std::string>& scripts, std::vector<std::string>& found,
                                     double silence_s = 60.0, const StopFlag& stop = never) {
  WorkingChildren children(silence_s);
  for (const std::string& script : scripts) children.start({"/bin/sh", "-c", script});
  const auto take = [&](std::size_t child, const std::string& line) {
    found.push_back(std::to_string(child) + ":" + line);
  };
  std::vector<std::string> troubles;
  for (const ChildTrouble& trouble : children.listen(stop, {take, {}, {}})) troubles.push_back(trouble.text());
  return troubles;
}

TEST(WorkingChildren, AreHeardEachForItself) {
  std::vector<std::string> found;
  EXPECT_THAT(
      troubles_of({"printf 'Aone\\nAtwo\\nAhalf a line' >&3", "exit 4", "printf 'Athree\\n' >&3; kill -ABRT $$"},
                  found),
      ElementsAre("", "exited with status 4", "ended by signal 6 (Aborted)"));
  EXPECT_THAT(found, UnorderedElementsAre("0:one", "0:two", "2:three"));
}

TEST(WorkingChildren, OneThatSaysNothingIsEndedAndTheOthersGoOn) {
  std::vector<std::string> found;
  EXPECT_THAT(troubles_of({"printf 'Athere\\n' >&3; exec sleep 1000", "printf 'Ahere\\n' >&3"}, found, 0.05),
              ElementsAre("said nothing for 0.05 s", ""));
  EXPECT_THAT(found, UnorderedElementsAre("0:there", "1:here"));
}

TEST(WorkingChildren, AStopIsPassedOnAndWhatTheyTellThenIsHeard) {
  std::vector<std::string> found;
  EXPECT_THAT(troubles_of({"trap 'printf \"Alast\\n\" >&3; exit 0' TERM; while :; do sleep 0.01; done"}, found, 60.0,
                          StopFlag{15})
                  .size(),
              1U);  // a shell that had not set its trap yet is ended by the signal
  EXPECT_THAT(found, ::testing::AnyOf(::testing::IsEmpty(), ElementsAre("0:last")));
}

ChildReply told_by(const std::string& script, double deadline_s = 60.0, const StopFlag& stop = never) {
  return ask({"/bin/sh", "-c", script}, deadline_s, stop);
}

TEST(Question, TheLastAnswerOfAChildThatEndsWellCounts) {
  const ChildReply heard = told_by("printf 'Cone\\nAfirst\\nCtwo\\nAsecond\\n' >&3");
  EXPECT_EQ(heard.answer, "second");
  EXPECT_EQ(heard.trouble, "");
}

TEST(Question, SilenceEndsTheChildAndNamesTheCall) {
  const ChildReply heard = told_by("printf 'CcuInit\\n' >&3; exec sleep 1000", 0.05);
  EXPECT_EQ(heard.answer, "");
  EXPECT_EQ(heard.trouble, "does not answer (cuInit, 0.05 s)");
}

TEST(Question, WhatWasAnsweredBeforeTheSilenceIsKept) {
  const ChildReply heard = told_by("printf 'Apart\\nCnvmlShutdown\\n' >&3; exec sleep 1000", 0.05);
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

TEST(Question, AStopEndsItsChild) { EXPECT_THROW((void)told_by("exec sleep 1000", 0.0, StopFlag{15}), CannotMeasure); }

TEST(Question, AProgramThatIsNotThereIsSaid) {
  EXPECT_THAT(thrown_text<CannotMeasure>([&] { (void)ask({"/nonexistent/gpubench"}, 1.0, never); }),
              HasSubstr("could not start '/nonexistent/gpubench': No such file"));
}

}  // namespace gpubench
