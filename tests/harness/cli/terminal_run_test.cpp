#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/core/text/visible_text.h"
#include "tests/harness/cli/captured.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TerminalRun : public ScratchFolder {
 protected:
  int run(Words more = {}) {
    cli_.out.str("");
    cli_.err.str("");
    cli_.out_is_terminal = true;
    cli_.err_is_terminal = true;
    return cli_.run("--isolate off --tier smoke --json r.json --force" + more);
  }
  static bool fits(std::string line, int width) {
    if (columns(line) <= width) return true;
    line.erase(0, line.find_first_not_of(' '));
    return line.find(' ') == std::string::npos || line.starts_with("rerun ") || line.starts_with("report ");
  }
  static bool is_ascii(const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 128; });
  }

  Captured cli_;
};

TEST_F(TerminalRun, StaysWithinAnyWidthFromFortyColumnsOn) {
  cli_.script = "wrong_element@first.gemm";
  for (const int width : {40, 47, 60, 80, 100, 132, 200}) {
    cli_.columns = width;
    EXPECT_EQ(run("--color never --progress lines"), 1);
    for (const std::string& text : {cli_.out.str(), cli_.err.str()}) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) EXPECT_TRUE(fits(line, width)) << width << ": " << line;
    }
    EXPECT_THAT(cli_.out.str(), HasSubstr("sim/first/n=8/f32/x1\n"));
  }
}

TEST_F(TerminalRun, ColumnsBeatsTheTerminal) {
  cli_.variables["COLUMNS"] = "40";
  EXPECT_EQ(run("--color never"), 0);
  EXPECT_THAT(cli_.out.str(), HasSubstr("\n  first f32  tiny\n"));
}

TEST_F(TerminalRun, APipeHasAHundredColumnsOrThoseOfColumns) {
  const Words words("--isolate off --tier smoke --json r.json --force -v");
  cli_.script = "wrong_element@first.gemm;unsupported@last.add;clock=100000;uneven=100";
  for (const char* columns : {"", "80", "120"}) {
    cli_.variables["COLUMNS"] = columns;
    cli_.out.str("");
    cli_.err.str("");
    EXPECT_EQ(cli_.run(words), 1);
    const int width = *columns == '\0' ? 100 : std::stoi(columns);
    for (const std::string& text : {cli_.out.str(), cli_.err.str()}) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) EXPECT_TRUE(fits(line, width)) << width << ": " << line;
    }
    EXPECT_THAT(cli_.out.str(), HasSubstr("\n    sim/first/n=8/f32/x1\n"));
    EXPECT_THAT(cli_.out.str(), HasSubstr("\n    sim/chain/n=8/f32/x1\n"));
  }
}

TEST_F(TerminalRun, InTheCLocaleNothingOfOursIsBeyondAscii) {
  cli_.script = "wrong_element@first.gemm";
  cli_.variables["LC_ALL"] = "C";
  EXPECT_EQ(run("-v"), 1);
  EXPECT_TRUE(is_ascii(cli_.out.str())) << cli_.out.str();
  EXPECT_TRUE(is_ascii(cli_.err.str())) << cli_.err.str();
  for (const Words& words : {Words("help"),
                             {"list"},
                             {"list", "suites"},
                             {"list", "sim/first/n=8/f32/x1"},
                             {"doctor"},
                             {"version"},
                             {"completion", "bash"},
                             {"compare", "r.json", "r.json"}}) {
    cli_.out.str("");
    (void)cli_.run(words);
    EXPECT_TRUE(is_ascii(cli_.out.str())) << words[0];
  }
}

TEST_F(TerminalRun, AUtf8LocaleHasThePlusMinusSign) {
  cli_.variables["LC_ALL"] = "C.UTF-8";
  EXPECT_EQ(run(), 0);
  EXPECT_THAT(cli_.out.str(), HasSubstr("±95%"));
}

TEST_F(TerminalRun, ADumbTerminalGetsNoColourAndNothingIsErasedOnIt) {
  cli_.variables["TERM"] = "dumb";
  EXPECT_EQ(run(), 0);
  for (const std::string& text : {cli_.out.str(), cli_.err.str()})
    EXPECT_THAT(text, ::testing::AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\r"))));
  cli_.variables["TERM"] = "xterm";
  EXPECT_EQ(run(), 0);
  EXPECT_THAT(cli_.err.str(), HasSubstr("\r\x1b[K"));
  EXPECT_THAT(cli_.out.str(), HasSubstr("\x1b[32mPASS"));
}

TEST_F(TerminalRun, NoColorLeavesTheBarButNoColour) {
  cli_.variables = {{"TERM", "xterm"}, {"NO_COLOR", "1"}};
  EXPECT_EQ(run(), 0);
  EXPECT_THAT(cli_.out.str(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(cli_.err.str(), HasSubstr("\r\x1b[K["));
}

}  // namespace
}  // namespace gpubench
