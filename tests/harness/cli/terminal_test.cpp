#include "harness/cli/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <sstream>

#include "harness/core/text/visible_text.h"
#include "tests/harness/report/sample_records.h"

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
  variables_["NO_COLOR"] = "0";  // any non-empty value
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
  variables_["TERM"] = "";  // not set: a normal terminal
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
  EXPECT_EQ(columns_of(Stream::err, environment_), 100);
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

TEST_F(Terminal, ARunHasAHundredColumnsWithoutATerminal) {
  EXPECT_EQ(run_style({}, Stream::out, environment_).width, 100);
  variables_["COLUMNS"] = "60";
  EXPECT_EQ(run_style({}, Stream::out, environment_).width, 60);
  variables_["COLUMNS"] = "wide";
  EXPECT_EQ(run_style({}, Stream::out, environment_).width, 100);
  environment_.out_is_terminal = true;
  environment_.out_columns = 132;
  EXPECT_EQ(run_style({}, Stream::out, environment_).width, 132);
}

TEST_F(Terminal, Utf8IsUsedWhereTheLocaleSaysSo) {
  EXPECT_FALSE(use_utf8(environment_));
  variables_["LANG"] = "en_US.UTF-8";
  EXPECT_TRUE(use_utf8(environment_));
  variables_["LC_ALL"] = "C";  // precedes LANG
  EXPECT_FALSE(use_utf8(environment_));
  variables_["LC_ALL"] = "C.utf8";
  EXPECT_TRUE(use_utf8(environment_));
}

}  // namespace

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Rows on the stream of the other output.
ProgressOptions rows_on(std::ostream& out, ProgressStyle style, const ConsoleStyle& rows = {}) {
  ProgressOptions options{style, {}, 60, 2};
  options.rows = {&out, rows, {}, true};
  return options;
}

TEST(Progress, LinesTellEachFinishedCaseWithoutCarriageReturns) {
  std::ostringstream err;
  const auto progress = make_progress(err, rows_on(err, ProgressStyle::lines));
  progress->phase("gemm/x", "check");
  progress->tick();
  progress->finished(sample_record());
  progress->note("worker 1 died\x1b[2J");
  EXPECT_THAT(err.str(), ::testing::AllOf(HasSubstr("PASS "), HasSubstr("note: worker 1 died\\x1b[2J\n"),
                                          Not(HasSubstr("\r")), Not(HasSubstr("\x1b"))));
}

TEST(Progress, QuietLinesTellOnlyWhatWentWrong) {
  std::ostringstream err;
  const auto progress = make_progress(err, rows_on(err, ProgressStyle::lines, {.quiet = true}));
  progress->finished(sample_record());
  EXPECT_EQ(err.str(), "");
  progress->finished(sample_record(Verdict::fail));
  EXPECT_THAT(err.str(), HasSubstr("FAIL"));
}

struct Clock {
  std::chrono::steady_clock::time_point now{};
  void wait(int seconds) { now += std::chrono::seconds(seconds); }
  ProgressOptions options(ProgressStyle style) {
    return {style, {}, 60, 2, [this] { return now; }};
  }
};

// Two cases of 10 s; the first took 30 s: (30 + 1) / (10 + 1) of the other's 10 s.
TEST(Progress, WhatIsLeftFollowsWhatTheRunHasTaken) {
  const std::unordered_map<std::string, ExpectedCase> expected{{sample_record().id, {2.0, 8.0, 3}},
                                                               {"b", {2.0, 8.0, 3}}};
  for (const ProgressStyle style : {ProgressStyle::lines, ProgressStyle::bar}) {
    Clock clock;
    std::ostringstream err;
    ProgressOptions options = clock.options(style);
    options.columns = 200;
    options.remaining = Remaining(expected);
    const auto progress = make_progress(err, options);
    progress->finished(sample_record());
    clock.wait(30);
    progress->tick();
    EXPECT_THAT(err.str(), HasSubstr("about 28.2 s left"));
  }
}

TEST(Progress, LinesSayEveryThirtySecondsThatTheRunIsAlive) {
  Clock clock;
  std::ostringstream err;
  const auto progress = make_progress(err, clock.options(ProgressStyle::lines));
  clock.wait(29);
  progress->tick();
  EXPECT_EQ(err.str(), "");
  clock.wait(1);
  progress->tick();
  EXPECT_EQ(err.str(), "0 of 2 cases finished, now starting\n");
  progress->phase("gemm/x", "check");
  clock.wait(29);
  progress->tick();
  clock.wait(1);
  progress->tick();
  EXPECT_EQ(err.str(), "0 of 2 cases finished, now starting\n0 of 2 cases finished, now check of gemm/x\n");
  err.str("");
  clock.wait(20);
  progress->finished(sample_record());
  clock.wait(20);
  err.str("");
  progress->tick();
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, TheBarIsDrawnAnewTenTimesASecondAndTellsTheTime) {
  Clock clock;
  std::ostringstream err;
  const auto progress = make_progress(err, clock.options(ProgressStyle::bar));
  progress->phase("gemm/x", "time");
  err.str("");
  clock.now += std::chrono::milliseconds(99);
  progress->tick();
  EXPECT_EQ(err.str(), "");
  clock.now += std::chrono::milliseconds(1);
  progress->tick();
  EXPECT_EQ(err.str(), "\r\x1b[K[------------------------] 0/2  0 pass 0 wrong  100 ms  tim");
  clock.wait(10);
  progress->finished(sample_record());
  EXPECT_THAT(err.str(), HasSubstr("[############------------] 1/2  1 pass 0 wrong  10.1 s  tim"));
}

TEST(Progress, TheBarIsCutBetweenCharacters) {
  for (int width = 2; width < 90; ++width) {
    std::ostringstream err;
    const auto progress = make_progress(err, {ProgressStyle::bar, {}, width, 2});
    progress->phase("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "x");
    const std::string line = err.str().substr(std::string("\r\x1b[K").size());
    EXPECT_LE(columns(line), width - 1);
    EXPECT_EQ(printable(line), line) << width;
  }
}

TEST(Progress, TheBarStaysWithinTheTerminalAndErasesItself) {
  std::ostringstream err;
  {
    const auto progress = make_progress(err, {ProgressStyle::bar, {}, 60, 2});
    progress->phase("gemm/" + std::string(100, 'x'), "check");
    EXPECT_EQ(err.str().size(), std::string("\r\x1b[K").size() + 59);
    progress->finished(sample_record());
    EXPECT_THAT(err.str(), ::testing::AllOf(HasSubstr("1/2  1 pass 0 wrong"), Not(HasSubstr("\n"))));
    progress->finished(sample_record(Verdict::fail));
    EXPECT_THAT(err.str(), HasSubstr("FAIL"));
  }
  EXPECT_THAT(err.str(), ::testing::EndsWith("\r\x1b[K"));
}

// The row replaces the bar, which is redrawn below.
TEST(Progress, RowsStreamAboveTheBarUnderOneTitle) {
  std::ostringstream terminal;
  const auto progress = make_progress(terminal, rows_on(terminal, ProgressStyle::bar));
  progress->phase("gemm/x", "check");
  terminal.str("");
  progress->finished(sample_record());
  const std::string first = terminal.str();
  EXPECT_THAT(first, ::testing::AllOf(::testing::StartsWith("\r\x1b[Kverdict "), HasSubstr("\ngemm\nPASS "),
                                      HasSubstr("\n\r\x1b[K[############------------] 1/2")));
  terminal.str("");
  progress->finished(sample_record(Verdict::fail));
  EXPECT_THAT(terminal.str(), ::testing::StartsWith("\r\x1b[KFAIL "));
  EXPECT_EQ(terminal.str().find("FAIL "), terminal.str().rfind("FAIL "));
}

TEST(Progress, NoneIsSilentButForTheRows) {
  std::ostringstream err, out;
  const auto progress = make_progress(err, rows_on(out, ProgressStyle::none));
  progress->finished(sample_record(Verdict::fail));
  progress->note("x");
  EXPECT_EQ(err.str(), "");
  EXPECT_THAT(out.str(), HasSubstr("\nFAIL "));
}

}  // namespace

}  // namespace gpubench
