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
