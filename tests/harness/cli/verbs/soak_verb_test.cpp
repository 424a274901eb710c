#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/line_journal.h"
#include "tests/harness/cli/captured.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SoakVerb : public ScratchFolder {
 protected:
  int soak(const Words& words) { return cli_.run("soak --isolate off" + words); }
  static std::vector<std::string> entries_of(const std::string& journal) {
    std::vector<std::string> kinds;
    (void)read_lines(journal, [&](const Node& entry, std::size_t) { kinds.push_back(entry.members().back().first); });
    return kinds;
  }
  Captured cli_;
};

TEST_F(SoakVerb, SaysWhatWasScreenedAndWhichRateOfFaultsIsExcluded) {
  EXPECT_EQ(soak("--minutes 0.01 --json soak.json"), 0) << cli_.err.str();
  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr("ops an hour screened"), HasSubstr("time between judgements: launches"),
                                    HasSubstr("the textbook judged everything "),
                                    HasSubstr("faults in more than 1 of "), HasSubstr("soak passed\n")));
  const Json json = read_json_file("soak.json");
  EXPECT_EQ(json["schema"], "gpubench-soak");
  EXPECT_TRUE(json["passed"].get<bool>());
  EXPECT_GT(json["launches"].get<int>(), 0);
}

TEST_F(SoakVerb, ExitsWithOneAndNamesWhatTheTextbookRejects) {
  cli_.script = "nan@chain.down";
  EXPECT_EQ(soak("--minutes 0.01 --journal soak.jsonl"), 1);
  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr(" rejected by the textbook, the first:\n"), HasSubstr("chain.down"),
                                    HasSubstr("soak FAILED\n")));
  const std::vector<std::string> entries = entries_of("soak.jsonl");
  EXPECT_EQ(entries.front(), "start");
  EXPECT_THAT(entries, ::testing::IsSupersetOf({"opened", "cases", "wrong", "recheck", "interval"}));
  EXPECT_EQ(entries.back(), "end");
}

TEST_F(SoakVerb, ExitsWithOneForALaunchThatLeftOtherBits) {
  EXPECT_EQ(soak("--minutes 0.05 --inject-error gemm=rare --journal soak.jsonl"), 1);
  EXPECT_THAT(cli_.err.str(), HasSubstr("INJECTED ERROR"));
  EXPECT_THAT(cli_.out.str(), HasSubstr("launches left other bits than the one that was judged, the first:"));
  EXPECT_THAT(entries_of("soak.jsonl"), ::testing::Contains("divergence"));
}

TEST_F(SoakVerb, ReplacesNoJournalUnlessTold) {
  ASSERT_EQ(soak("--minutes 0.01 --journal soak.jsonl"), 0);
  EXPECT_EQ(soak("--minutes 0.01 --journal soak.jsonl"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("--journal: soak.jsonl: is there already; --force replaces it"));
  EXPECT_EQ(soak("--minutes 0.01 --journal soak.jsonl --force"), 0);
}

// Reading a journal gives the soak's summary, also if it was killed.
TEST_F(SoakVerb, AJournalIsReadAsTheSoakItWasOf) {
  ASSERT_EQ(soak("--minutes 0.05 --inject-error gemm=rare --journal soak.jsonl --json soak.json"), 1);
  const std::string said = cli_.out.str();
  cli_.out.str("");
  EXPECT_EQ(cli_.run("soak --read soak.jsonl --json read.json --svg read.svg"), 1);
  EXPECT_EQ(cli_.out.str(), said);
  EXPECT_EQ(read_json_file("read.json")["devices"], read_json_file("soak.json")["devices"]);
  EXPECT_THAT(content_of("read.svg"), AllOf(HasSubstr("<svg"), HasSubstr("other bits"), HasSubstr("speed")));

  const std::string journal = content_of("soak.jsonl");
  const std::size_t last = journal.rfind('\n', journal.size() - 2);
  write("killed.jsonl", journal.substr(0, last + 20));  // the last line is torn
  cli_.out.str("");
  EXPECT_EQ(cli_.run("soak --read killed.jsonl"), 1);
  EXPECT_EQ(cli_.out.str(), said);
  EXPECT_THAT(cli_.err.str(), HasSubstr("killed.jsonl: the soak did not end: of 3 s planned"));
}

TEST_F(SoakVerb, RefusesWhatIsNoJournalOfASoak) {
  write("other.jsonl", "{}\n");
  EXPECT_EQ(cli_.run("soak --read other.jsonl"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("--read: other.jsonl:line 1: is damaged"));
  { LineJournal("run.jsonl", {}, "").append("start", {{"schema", "another"}}); }
  EXPECT_EQ(cli_.run("soak --read run.jsonl"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("is not a journal of a soak"));
}

TEST_F(SoakVerb, ShowsSpeedOverTimeAsBarsWhereTheTerminalTakesThem) {
  cli_.variables["LC_ALL"] = "C.UTF-8";
  ASSERT_EQ(soak("--minutes 0.02"), 0);
  EXPECT_THAT(cli_.out.str(), ::testing::ContainsRegex("speed (▁|▂|▃|▄|▅|▆|▇|█)+: in the second half of the time "));
  cli_.variables["LC_ALL"] = "C";
  cli_.out.str("");
  ASSERT_EQ(soak("--minutes 0.02"), 0);
  EXPECT_THAT(cli_.out.str(), HasSubstr("speed: in the second half of the time "));
}

TEST_F(SoakVerb, RefusesMoreDevicesThanThereAre) {
  for (const std::string word : {"0", "-1", "100000"}) {
    EXPECT_EQ(cli_.run({"soak", "--devices=" + word}), 2) << word;
    EXPECT_THAT(cli_.err.str(), HasSubstr("--devices: '" + word + "'; expected a number from 1 to "));
  }
  EXPECT_EQ(cli_.run("soak --devices sim,sim"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("--devices: 'sim' is not a GPU"));
  EXPECT_EQ(soak("--devices 1"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("--devices: each device needs a separate process"));
}

TEST_F(SoakVerb, RefusesWhatIsNoTime) {
  for (const std::string word : {"0", "-1", "nan", "inf", "five", "1e9"}) {
    EXPECT_EQ(soak({"--minutes", word}), 2) << word;
    EXPECT_THAT(cli_.err.str(), HasSubstr("--minutes: '" + word + "' is no number of minutes such as 5 or 0.5"));
  }
}

}  // namespace
}  // namespace gpubench
