// Votes of devices that soak: which device is reported as wrong.
#include "harness/verify/soak.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpubench {
namespace soak_vote_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JudgedLaunch left(std::uint64_t up, std::uint64_t down, const std::string& by = "lib", std::int64_t epoch = 3) {
  return {epoch, "case", {{"block0.up", "gemm", by, "h", up}, {"block0.down", "gemm", by, "y", down}}};
}

DeviceInfo device(const std::string& name, const std::string& library = "1.0") {
  DeviceInfo info;
  info.name = name;
  info.units = 8;
  info.libraries = {{"lib", library}};
  return info;
}

SoakVote alike(std::size_t devices) {
  SoakVote vote(devices);
  for (std::size_t i = 0; i < devices; ++i) vote.opened(i, device("H"));
  return vote;
}

TEST(SoakVote, OneThatDiffersFromTheOthersIsNamedWithItsFirstOp) {
  SoakVote vote = alike(4);
  EXPECT_THAT(vote.judged(0, left(1, 2)), IsEmpty());
  EXPECT_THAT(vote.judged(2, left(1, 9)), IsEmpty());
  EXPECT_THAT(vote.judged(1, left(1, 2)), IsEmpty());
  EXPECT_THAT(vote.judged(3, left(1, 2)),
              ElementsAre("epoch 3, case: device 2 differs from the other 3 in op 'block0.down' (gemm, by lib), 'y'"));
  EXPECT_EQ(vote.voted(), 1);
  EXPECT_THAT(vote.not_compared(), IsEmpty());
}

TEST(SoakVote, OfSeveralThatDifferEachIsNamed) {
  SoakVote vote = alike(5);
  for (const std::size_t i : {0, 1, 2}) (void)vote.judged(i, left(1, 2));
  (void)vote.judged(3, left(7, 7));
  EXPECT_THAT(vote.judged(4, left(1, 8)),
              ElementsAre(HasSubstr("device 4 differs from 3 that agree in op 'block0.down'"),
                          HasSubstr("device 3 differs from 3 that agree in op 'block0.up'")));
}

TEST(SoakVote, ATieSaysSo) {
  SoakVote two = alike(2);
  (void)two.judged(0, left(1, 2));
  EXPECT_THAT(two.judged(1, left(1, 3)), ElementsAre("epoch 3, case: devices 0 and 1 differ in op 'block0.down' (gemm, "
                                                     "by lib), 'y': there is no majority to say which is right"));
  SoakVote four = alike(4);
  (void)four.judged(0, left(1, 2));
  (void)four.judged(1, left(1, 2));
  (void)four.judged(2, left(5, 2));
  EXPECT_THAT(four.judged(3, left(5, 2)), ElementsAre(HasSubstr("devices 0, 1, 2 and 3 differ in op 'block0.up'")));
}

TEST(SoakVote, OtherModelsLibrariesAndImplementationsAreNotComparedAndWhyIsSaid) {
  SoakVote vote(4);
  vote.opened(0, device("H"));
  vote.opened(1, device("H"));
  vote.opened(2, device("A"));
  vote.opened(3, device("H", "2.0"));
  (void)vote.judged(0, left(1, 2));
  (void)vote.judged(2, left(6, 6));
  (void)vote.judged(3, left(7, 7));
  EXPECT_THAT(vote.judged(1, left(1, 2)), IsEmpty());
  EXPECT_THAT(vote.not_compared(),
              ElementsAre("device 2 is another model than the others, or has other libraries: A, 8 units, lib 1.0",
                          "device 3 is another model than the others, or has other libraries: H, 8 units, lib 2.0"));
  SoakVote tuned = alike(3);
  (void)tuned.judged(0, left(1, 2));
  (void)tuned.judged(1, left(1, 2));
  EXPECT_THAT(tuned.judged(2, left(5, 5, "other")), IsEmpty());
  EXPECT_THAT(tuned.not_compared(), ElementsAre("case: device 2 has other implementations than the others"));
  EXPECT_EQ(tuned.voted(), 1);
}

TEST(SoakVote, WhoHasEndedIsNotWaitedFor) {
  SoakVote vote = alike(3);
  (void)vote.judged(0, left(1, 2));
  (void)vote.judged(1, left(1, 3));
  EXPECT_THAT(vote.ended(2), ElementsAre(HasSubstr("devices 0 and 1 differ")));
  (void)vote.judged(0, left(1, 2, "lib", 4));
  EXPECT_THAT(vote.judged(1, left(1, 2, "lib", 4)), IsEmpty());
  EXPECT_EQ(vote.voted(), 2);
}

// A launch differs from the judged one of its device; the other devices show which is wrong.
TEST(SoakVote, SaysWhereTheJudgedLaunchIsTheWrongOne) {
  SoakVote vote = alike(2);
  const Divergence right{1.0, 3, "case", "", {1, 2}};
  EXPECT_THAT(vote.diverged(0, right), IsEmpty()) << "nothing has been judged yet";
  (void)vote.judged(0, left(1, 7));
  EXPECT_THAT(vote.diverged(0, right), IsEmpty()) << "it waits for the other";
  EXPECT_THAT(
      vote.judged(1, left(1, 2)),
      ElementsAre(HasSubstr("devices 0 and 1 differ"),
                  "epoch 3, case: device 0 left in a later launch what the others have: its judged one is wrong"));
  EXPECT_THAT(vote.diverged(0, {1.0, 3, "case", "", {1, 8}}), IsEmpty()) << "nobody has that";
  EXPECT_THAT(vote.diverged(1, {1.0, 3, "case", "", {1, 7}}), ::testing::SizeIs(1)) << "two devices, each the other's";
  EXPECT_THAT(vote.diverged(0, {1.0, 99, "case", "", {1, 2}}), IsEmpty()) << "no such epoch";
}

TEST(SoakVote, OthersThatDisagreeCallNoJudgedLaunchWrong) {
  SoakVote vote = alike(3);
  (void)vote.judged(0, left(1, 7));
  (void)vote.judged(1, left(1, 2));
  (void)vote.judged(2, left(1, 3));
  EXPECT_THAT(vote.diverged(0, {1.0, 3, "case", "", {1, 2}}), IsEmpty());
  EXPECT_THAT(vote.diverged(0, {1.0, 3, "case", "", {1, 3}}), IsEmpty());
}

}  // namespace soak_vote_test
}  // namespace gpubench
