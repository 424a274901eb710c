// selftest, determinism and soak in child processes that crash or hang, and votes of several devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "harness/report/line_journal.h"
#include "harness/report/reader.h"
#include "tests/harness/cli/child.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace verb_work_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class VerbWork : public ScratchFolder {
 protected:
  static ChildResult run(const Words& words, const std::string& script) {
    return run_child(Words{paths::sim_program} + words, {{"GPUBENCH_SIM_SCRIPT", script}});
  }
  static std::vector<std::string> kinds_of(const std::string& journal) {
    std::vector<std::string> kinds;
    (void)read_lines(journal, [&](const Node& entry, std::size_t) { kinds.push_back(entry.members().back().first); });
    return kinds;
  }
  static int processors() {
    cpu_set_t all;
    return ::sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 1;
  }
};

const std::string chain = "sim/chain/n=8/f32/x1";

TEST_F(VerbWork, ACrashEndsDeterminismWithTheCaseAndWhatWasFoundBefore) {
  EXPECT_THAT(exits(3, run("determinism --json d.json", "segv@chain.down")).out,
              AllOf(HasSubstr("same   same      -                 -                   sim/first/n=8/f32/x1"),
                    HasSubstr("after these cases its process ended by signal 11 (Segmentation fault) in " + chain +
                              ": first run\n"),
                    Not(HasSubstr("sim/last"))));
  EXPECT_FALSE(read_json_file("d.json")["passed"].get<bool>());
  EXPECT_THAT(read_json_file("d.json")["trouble"].get<std::string>(), HasSubstr("signal 11"));
}

TEST_F(VerbWork, ACrashEndsTheSelfTestWithTheCaseAndWhatWasFoundBefore) {
  EXPECT_THAT(exits(3, run("selftest --json s.json", "abort@last.add")).out,
              AllOf(HasSubstr("until its process ended by signal 6 (Aborted) in "),
                    HasSubstr(" of 6 cases: sim/last/n=8/f32/x1\n"), HasSubstr("selftest not completed\n")));
  EXPECT_FALSE(read_json_file("s.json")["passed"].get<bool>());
}

TEST_F(VerbWork, ACrashEndsASoakWithTheCaseAndItsJournal) {
  const ChildResult result = exits(3, run("soak --minutes 0.05 --journal j.jsonl", "kill@chain.down"));
  const std::string said = "the soak's process ended by signal 9 (Killed) in the check of " + chain;
  EXPECT_THAT(result.err, HasSubstr(said));
  EXPECT_THAT(result.out, HasSubstr("soak not completed\n"));
  EXPECT_THAT(kinds_of("j.jsonl"), Contains("lost"));
  EXPECT_EQ(run("soak --read j.jsonl", "").exit_code, 3);
}

TEST_F(VerbWork, AHangIsEndedAndNamed) {
  EXPECT_THAT(exits(3, run("determinism --deadline 3", "hang@chain.down")).out,
              HasSubstr("its process said nothing for 3 s in " + chain + ": first run\n"));
}

TEST_F(VerbWork, WhatABackendThrowsIsSaidWithTheCase) {
  EXPECT_THAT(
      exits(3, run("determinism", "out_of_memory@chain.down")).out,
      HasSubstr("its process stopped in " + chain + ": first run: out of memory: could not allocate 123456789 bytes"));
  EXPECT_EQ(run("selftest", "lost@chain.down").exit_code, 3);
}

TEST_F(VerbWork, HashesOfAnotherDeviceAreComparedAndBothAreNamed) {
  ASSERT_EQ(run("determinism --save a.json", "name=device A").exit_code, 0);
  const ChildResult same = exits(0, run("determinism --against a.json", "name=device B"));
  EXPECT_THAT(same.out, AllOf(HasSubstr("as before            the same bits in 6 of 6 cases, promised"),
                              HasSubstr("as before: saved on 'device A' (), here 'device B' ()")));
  EXPECT_THAT(exits(1, run("determinism --against a.json", "name=device B;last_bit@chain.up")).out,
              AllOf(HasSubstr("as before: elements "), HasSubstr("of op 'chain.up' (gemm)"),
                    HasSubstr("promised: as before; BROKEN: as before")));
}

TEST_F(VerbWork, DeterministicSaysWhatIsPromisedAndWhatWasShown) {
  EXPECT_THAT(exits(0, run("determinism --deterministic --runs 3", "")).out,
              AllOf(HasSubstr("again                the same bits in 6 of 6 cases, promised\n"),
                    HasSubstr("promised with --deterministic: again, op by op; shown in 3 runs each\n")));
  EXPECT_THAT(exits(1, run("determinism --deterministic", "last_bit/sequence@chain.up")).out,
              HasSubstr("promised with --deterministic: again, op by op; BROKEN: op by op\n"));
  EXPECT_EQ(run("determinism", "last_bit/sequence@chain.up").exit_code, 0) << "a property, without the flag";
}

// The flipped bit is within the textbook's bounds; only the other device reveals it.
TEST_F(VerbWork, TwoDevicesVoteAndATieSaysSo) {
  if (processors() < 2) GTEST_SKIP() << "there is one processor to share";
  const Words two("soak --minutes 0.03 --devices 2 --json s.json --force");
  const ChildResult right = exits(0, run(two, ""));
  EXPECT_THAT(right.out, AllOf(HasSubstr("on 2 devices"), HasSubstr("device 1: sim share 1"),
                               HasSubstr(" judged launches of several devices, which left the same bits\n"),
                               HasSubstr("soak passed\n")));
  EXPECT_GT(read_json_file("s.json")["voted"].get<int>(), 0);
  EXPECT_THAT(exits(1, run(two, "|last_bit@chain.up")).out,
              AllOf(HasSubstr("epoch 0, " + chain + ": devices 0 and 1 differ in op 'chain.up' (gemm, by "),
                    HasSubstr("there is no majority to say which is right"), HasSubstr("soak FAILED\n")));
  EXPECT_THAT(exits(0, run(two, "name=A|name=B;last_bit@chain.up")).out,
              AllOf(HasSubstr("not compared:\n"), HasSubstr("device 1 is another model than the others")));
}

// The fastest implementation may differ between devices; all run the first one's choice, so bits can be compared.
TEST_F(VerbWork, DevicesRunTheImplementationsThatTheFirstHasChosen) {
  if (processors() < 2) GTEST_SKIP() << "there is one processor to share";
  EXPECT_THAT(exits(0, run("soak --minutes 0.03 --devices 2", "fastest=a|fastest=b")).out,
              AllOf(HasSubstr(" judged launches of several devices, which left the same bits\n"),
                    Not(HasSubstr("not compared"))));
}

TEST_F(VerbWork, ADeviceThatCrashesIsNamedAndTheOtherGoesOn) {
  if (processors() < 2) GTEST_SKIP() << "there is one processor to share";
  const ChildResult result = exits(3, run("soak --minutes 0.03 --devices 2 --journal j.jsonl", "|segv@chain.down"));
  EXPECT_THAT(result.err, HasSubstr("gpubench: the process of device 1 (sim share 1, "));
  EXPECT_THAT(result.err,
              HasSubstr(") ended by signal 11 (Segmentation fault) in the check of " + chain + "; the others go on\n"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("faults in more than 1 of "), HasSubstr("soak not completed\n")));
  EXPECT_THAT(kinds_of("j.jsonl"), AllOf(Contains("lost"), Contains("interval")));
}

}  // namespace verb_work_test
}  // namespace gpubench
