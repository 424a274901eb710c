// Console output on terminals from 40 to 200 columns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/core/text/visible_text.h"
#include "harness/report/console.h"
#include "tests/harness/core/text/terminal_width.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One of each kind, with realistic lengths.
std::vector<CaseRecord> records() {
  std::vector<CaseRecord> all{sample_record(), sample_record(Verdict::fail),
                              sample_without_run(Verdict::unsupported,
                                                 "the device has no arithmetic for f8_hybrid, which needs compute "
                                                 "capability 8.9 or newer, and this one has 8.0"),
                              sample_without_run(Verdict::error, "worker ended by signal 11 (segmentation fault)")};
  all[0].c.suite = "transformer";
  all[0].c.workload = "gpt2_train_step";
  all[0].c.dims = {{"b", 2}, {"s", 64}, {"layers", 2}, {"h", 128}, {"heads", 4}, {"vocab", 512}};
  all[0].id = all[0].c.id();
  all[0].derived.ranks = RankSpread{2, 0.03, 1, 0.5, {}, 0.04, 0.93};
  all[0].derived.collective.reset();
  all[1].parity.ops[1].mutations_rejected = 3;
  return all;
}

std::string everything(int width, bool color = false) {
  ConsoleStyle style{color, true, false, 0, width};
  const std::vector<CaseRecord> all = records();
  return result_rows(all, style, {ShareColumn::of_peak, "cpu"}) + failures_text(all, style) + scaling_text(all, style) +
         summary_text(all, style) +
         verdict_text(all,
                      {1, "a verdict failed: fail, downgraded or not_proven", "gpubench-out/x/report.json", true, 1.0},
                      style);
}

TEST(Width, NothingOfOursIsLongerThanTheTerminalIsWide) {
  for (int width = 40; width <= 200; ++width) EXPECT_THAT(lines_too_wide(everything(width), width), IsEmpty()) << width;
}

TEST(Width, NoNumberAndNoWordIsLost) {
  for (int width = 40; width <= 200; ++width) {
    const std::string text = everything(width);
    for (const char* id : {"gemm/square/m=64,n=32,k=16/bf16/warm/x1", "conv/forward/n=1/f32/x1"})
      EXPECT_THAT(text, HasSubstr(std::string("\n    ") + id + "\n")) << width;
    for (const char* part : {"gpt2_train_step bf16/warm", "PASS", "21.8 GFLOP/s", "3.00 us", "3.3%", "0.25", "54.6%",
                             "a label", "[noisy, drift]", "UNSUPPORTED", "8.0", "f2  ERROR",
                             "rerun   gpubench run --filter '^gemm/square/m=64,n=32,k=16/bf16/warm/x1$'", "c[0, 17]",
                             "VERDICT", "1 pass, 1 fail, 1 error, 1 unsupported", "exit 1"})
      EXPECT_THAT(unwrapped(text), HasSubstr(unwrapped(part))) << width;
  }
}

TEST(Width, WithoutALimitEachCaseKeepsToOneLine) {
  EXPECT_THAT(everything(0), HasSubstr("0.25  gpt2_train_step bf16/warm  a label  [noisy, drift]\n"));
}

TEST(Width, LongNamesLabelsAndReasonsKeepToTheWidth) {
  CaseRecord hostile = sample_record(Verdict::fail);
  hostile.c.workload = std::string(150, 'w');
  hostile.c.label = std::string(40, 'l') + " " + std::string(400, 'm');
  hostile.c.modes = {std::string(60, 'n'), "recompute"};
  hostile.id = hostile.c.suite + "/" + hostile.c.workload + "/f32/x1";
  hostile.summary.flags.assign(12, "rank 1234 straggles");
  CaseRecord passed = sample_record();
  passed.c.label = hostile.c.label;
  passed.summary.flags = {"severe", "noisy"};
  const std::vector<CaseRecord> all{hostile, passed,
                                    sample_without_run(Verdict::skipped, std::string(200, 'a') + " b")};
  for (const int width : {80, 100, 120}) {
    ConsoleStyle style;
    style.width = width;
    std::vector<Case> cases;
    for (const CaseRecord& record : all) cases.push_back(record.c);
    cases.front().workload = "w";  // ids have at most 200 characters
    const RowLayout layout = row_layout("cuda", cases, style);
    const std::string text = result_rows(all, style, layout) + failures_text(all, style) + summary_text(all, style) +
                             legend_text(all, style) + verdict_text(all, {}, style);
    EXPECT_THAT(lines_too_wide(text, width), IsEmpty()) << width;
    EXPECT_THAT(text, HasSubstr("\n    " + hostile.id + "\n")) << width;
    EXPECT_THAT(text, HasSubstr("...")) << width;
  }
}

TEST(Width, AWideTerminalReadsAsALog) { EXPECT_EQ(everything(200), everything(0)); }

TEST(Width, AtFortyColumnsACaseIsItsNumbersAndThenItsId) {
  ConsoleStyle style;
  style.width = 40;
  EXPECT_EQ(result_line(sample_record(), style, {ShareColumn::of_peak}),
            "PASS  21.8 GFLOP/s  3.00 us\n"
            "  +-95% 3.3%  err/bound 0.25\n"
            "  54.6% of peak\n"
            "  square bf16/warm  a label\n"
            "    [noisy, drift]\n");
  EXPECT_EQ(result_line(sample_without_run(Verdict::skipped, "needs 34 GB of memory, 20 GB are free"), style),
            "SKIPPED\n"
            "  forward f32\n"
            "    conv/forward/n=1/f32/x1\n"
            "    needs 34 GB of memory, 20 GB are\n"
            "    free\n");
  EXPECT_EQ(result_header(style), "");
}

TEST(Width, ColourTakesNoRoom) {
  std::string text = everything(60, true);
  for (const char* color : {"\x1b[32m", "\x1b[1;31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"}) {
    for (std::size_t at = text.find(color); at != std::string::npos; at = text.find(color))
      text.erase(at, std::string(color).size());
  }
  EXPECT_EQ(text, everything(60));
}

TEST(Width, WithoutUtf8AllIsAscii) {
  for (const int width : {0, 40, 100}) {
    const std::vector<CaseRecord> all = records();
    ConsoleStyle style;
    style.width = width;
    style.verbosity = 1;
    const std::string text = result_rows(all, style) + failures_text(all, style) + scaling_text(all, style) +
                             summary_text(all, style) + verdict_text(all, {}, style);
    EXPECT_TRUE(std::none_of(text.begin(), text.end(), [](unsigned char c) { return c > 127; }));
  }
}

}  // namespace
}  // namespace gpubench
