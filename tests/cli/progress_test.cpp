#include "harness/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Progress, LinesTellEachFinishedCaseWithoutCarriageReturns) {
  std::ostringstream err;
  const auto progress = make_progress(err, {ProgressStyle::lines, {}, 80, 2});
  progress->phase("gemm/x", "check");
  progress->tick();
  progress->finished(sample_record());
  progress->note("worker 1 died\x1b[2J");
  EXPECT_THAT(err.str(), HasSubstr("PASS "));
  EXPECT_THAT(err.str(), HasSubstr("note: worker 1 died\\x1b[2J\n"));
  EXPECT_THAT(err.str(), Not(HasSubstr("\r")));
  EXPECT_THAT(err.str(), Not(HasSubstr("\x1b")));
}

TEST(Progress, QuietLinesTellOnlyWhatWentWrong) {
  std::ostringstream err;
  const auto progress = make_progress(err, {ProgressStyle::lines, {.quiet = true}, 80, 2});
  progress->finished(sample_record());
  EXPECT_EQ(err.str(), "");
  progress->finished(sample_record(Verdict::fail));
  EXPECT_THAT(err.str(), HasSubstr("FAIL"));
}

TEST(Progress, TheBarStaysWithinTheTerminalAndErasesItself) {
  std::ostringstream err;
  {
    const auto progress = make_progress(err, {ProgressStyle::bar, {}, 60, 2});
    progress->phase("gemm/" + std::string(100, 'x'), "check");
    EXPECT_EQ(err.str().size(), std::string("\r\x1b[K").size() + 59);
    progress->finished(sample_record());
    EXPECT_THAT(err.str(), HasSubstr("1/2  1 pass 0 wrong"));
    EXPECT_THAT(err.str(), Not(HasSubstr("\n")));
    progress->finished(sample_record(Verdict::fail));
    EXPECT_THAT(err.str(), HasSubstr("FAIL"));
  }
  EXPECT_THAT(err.str(), ::testing::EndsWith("\r\x1b[K"));
}

TEST(Progress, NoneIsSilent) {
  std::ostringstream err;
  const auto progress = make_progress(err, {ProgressStyle::none, {}, 80, 2});
  progress->finished(sample_record(Verdict::fail));
  progress->note("x");
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace gpubench
