// gpubench soak: what it prints, keeps and exits with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/line_journal.h"
#include "tests/cli/captured.h"
#include "tests/cli/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SoakVerb : public ScratchFolder {
 protected:
  static std::vector<std::string> entries_of(const std::string& journal) {
    std::vector<std::string> kinds;
    (void)read_lines(journal, [&](const Node& entry, std::size_t) { kinds.push_back(entry.members().back().first); });
    return kinds;
  }
  Captured cli_;
};

TEST_F(SoakVerb, SaysWhatWasScreenedAndWhichRateOfFaultsIsExcluded) {
  EXPECT_EQ(cli_.run({"soak", "--minutes", "0.01", "--json", "soak.json"}), 0) << cli_.err.str();
  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr("ops an hour screened"), HasSubstr("faults in more than 1 of "),
                                    HasSubstr("soak passed\n")));
  const Json json = read_json_file("soak.json");
  EXPECT_EQ(json["schema"], "gpubench-soak");
  EXPECT_TRUE(json["passed"].get<bool>());
  EXPECT_GT(json["launches"].get<int>(), 0);
}

TEST_F(SoakVerb, ExitsWithOneAndNamesWhatTheTextbookRejects) {
  cli_.script = "nan@chain.down";
  EXPECT_EQ(cli_.run({"soak", "--minutes", "0.01", "--journal", "soak.jsonl"}), 1);
  EXPECT_THAT(cli_.out.str(),
              AllOf(HasSubstr("rejected by the textbook: "), HasSubstr("chain.down"), HasSubstr("soak FAILED\n")));
  const std::vector<std::string> entries = entries_of("soak.jsonl");
  EXPECT_EQ(entries.front(), "start");
  EXPECT_EQ(entries.at(1), "wrong");
  EXPECT_EQ(entries.back(), "end");
}

TEST_F(SoakVerb, ExitsWithOneForALaunchThatLeftOtherBits) {
  EXPECT_EQ(cli_.run({"soak", "--minutes", "0.05", "--inject-error", "gemm=rare", "--journal", "soak.jsonl"}), 1);
  EXPECT_THAT(cli_.err.str(), HasSubstr("WRONG ON PURPOSE"));
  EXPECT_THAT(cli_.out.str(), HasSubstr("launches left other bits than the one that was judged, the first of them:"));
  EXPECT_THAT(entries_of("soak.jsonl"), ::testing::Contains("divergence"));
}

TEST_F(SoakVerb, ReplacesNoJournalUnlessTold) {
  ASSERT_EQ(cli_.run({"soak", "--minutes", "0.01", "--journal", "soak.jsonl"}), 0);
  EXPECT_EQ(cli_.run({"soak", "--minutes", "0.01", "--journal", "soak.jsonl"}), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("--journal: soak.jsonl: is there already; --force replaces it"));
  EXPECT_EQ(cli_.run({"soak", "--minutes", "0.01", "--journal", "soak.jsonl", "--force"}), 0);
}

TEST_F(SoakVerb, RefusesWhatIsNoTime) {
  for (const std::string word : {"0", "-1", "nan", "inf", "five", "1e9"}) {
    EXPECT_EQ(cli_.run({"soak", "--minutes", word}), 2) << word;
    EXPECT_THAT(cli_.err.str(), HasSubstr("--minutes: '" + word + "' is no number of minutes such as 5 or 0.5"));
  }
}

}  // namespace
}  // namespace gpubench
