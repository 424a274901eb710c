#include "harness/cli/terminal.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>

namespace gpubench {
namespace {

class Terminal : public ::testing::Test {
 protected:
  std::map<std::string, std::string> variables_;
  StopFlag stop_{0};
  Environment environment_{{},    {},    std::cout, std::cerr,
                           false, false, 80,        [this](const char* name) { return variables_[name]; },
                           {},    "",    stop_};
};

TEST_F(Terminal, ColourFollowsTheFlagThenTheVariablesThenTheTerminal) {
  EXPECT_TRUE(use_color(ColorMode::automatic, true, environment_));
  EXPECT_FALSE(use_color(ColorMode::automatic, false, environment_));
  variables_["TERM"] = "dumb";
  EXPECT_FALSE(use_color(ColorMode::automatic, true, environment_));
  variables_["CLICOLOR_FORCE"] = "0";
  EXPECT_FALSE(use_color(ColorMode::automatic, false, environment_));
  variables_["CLICOLOR_FORCE"] = "1";
  EXPECT_TRUE(use_color(ColorMode::automatic, false, environment_));
  variables_["NO_COLOR"] = "0";  // any value that is not empty
  EXPECT_FALSE(use_color(ColorMode::automatic, true, environment_));
  EXPECT_TRUE(use_color(ColorMode::always, false, environment_));
  variables_.clear();
  EXPECT_FALSE(use_color(ColorMode::never, true, environment_));
  variables_["FORCE_COLOR"] = "1";
  EXPECT_TRUE(use_color(ColorMode::automatic, false, environment_));
}

TEST_F(Terminal, ColourIsOffOnADumbTerminalUnlessItIsForced) {
  variables_["TERM"] = "dumb";
  EXPECT_FALSE(use_color(ColorMode::automatic, true, environment_));
  variables_["FORCE_COLOR"] = "1";
  EXPECT_TRUE(use_color(ColorMode::automatic, true, environment_));
  variables_["FORCE_COLOR"] = "0";
  EXPECT_FALSE(use_color(ColorMode::automatic, true, environment_));
  variables_["TERM"] = "";  // not set: a terminal like any other
  EXPECT_TRUE(use_color(ColorMode::automatic, true, environment_));
}

TEST_F(Terminal, NoColorCountsOnlyWhereItIsNotEmpty) {
  variables_["NO_COLOR"] = "";
  EXPECT_TRUE(use_color(ColorMode::automatic, true, environment_));
  variables_["NO_COLOR"] = "1";
  variables_["FORCE_COLOR"] = "1";
  EXPECT_FALSE(use_color(ColorMode::automatic, true, environment_));
}

TEST_F(Terminal, AWidthIsThatOfTheTerminalUnlessColumnsSaysOtherwise) {
  EXPECT_EQ(columns_of(Stream::err, environment_), 100);  // no terminal
  environment_.err_is_terminal = true;
  EXPECT_EQ(columns_of(Stream::err, environment_), 80);
  environment_.out_is_terminal = true;
  environment_.out_columns = 132;
  EXPECT_EQ(columns_of(Stream::out, environment_), 132);
  variables_["COLUMNS"] = "60";
  EXPECT_EQ(columns_of(Stream::out, environment_), 60);
  for (const char* none : {"0", "-1", "60x", "x", "", "1e9", "99999999999999999999", "10001"}) {
    variables_["COLUMNS"] = none;
    EXPECT_EQ(columns_of(Stream::out, environment_), 132) << none;
  }
}

TEST_F(Terminal, LinesHaveAWidthOnlyOnATerminal) {
  EXPECT_EQ(console_style({}, Stream::out, environment_).width, 0);
  variables_["COLUMNS"] = "60";
  EXPECT_EQ(console_style({}, Stream::out, environment_).width, 0);
  environment_.out_is_terminal = true;
  EXPECT_EQ(console_style({}, Stream::out, environment_).width, 60);
}

TEST_F(Terminal, Utf8IsUsedWhereTheLocaleSaysSo) {
  EXPECT_FALSE(use_utf8(environment_));
  variables_["LANG"] = "en_US.UTF-8";
  EXPECT_TRUE(use_utf8(environment_));
  variables_["LC_ALL"] = "C";  // beats LANG
  EXPECT_FALSE(use_utf8(environment_));
  variables_["LC_ALL"] = "C.utf8";
  EXPECT_TRUE(use_utf8(environment_));
}

}  // namespace
}  // namespace gpubench
