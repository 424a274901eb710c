#include "harness/core/text/visible_text.h"

#include <gtest/gtest.h>

#include "harness/core/text/text_table.h"

namespace gpubench {
namespace {

TEST(Visible, LeavesTextAlone) {
  EXPECT_EQ(visible("NVIDIA H200 (sm_90) \"x\" 100%"), "NVIDIA H200 (sm_90) \"x\" 100%");
  EXPECT_EQ(visible("\xc2\xb5s \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\xc2\xb5s \xe2\x82\xac \xf0\x9f\x98\x80");  // U+B5, U+20AC, U+1F600
}

TEST(Visible, ShowsControlCharacters) {
  EXPECT_EQ(visible("a\x1b]0;t\x07z"), "a\\x1b]0;t\\x07z");
  EXPECT_EQ(visible("a\r\nb\tc"), "a\\x0d\\x0ab\\x09c");
  EXPECT_EQ(visible(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(visible("\xc2\x9b"
                    "2J"),
            "\\xc2\\x9b2J");  // U+9B: CSI in one code point
  EXPECT_EQ(visible("\xe2\x80\xae"
                    "x"),
            "\\xe2\\x80\\xaex");                          // U+202E: right-to-left override
  EXPECT_EQ(visible("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");  // U+2028: line separator
}

TEST(Visible, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(visible("\xff"), "\\xff");
  EXPECT_EQ(visible("\xc0\xaf"), "\\xc0\\xaf");                    // overlong "/"
  EXPECT_EQ(visible("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // overlong again
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(visible("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(visible("a\xe2\x82"), "a\\xe2\\x82");                  // cut short
}

TEST(TextTable, AlignsAndPadsWithoutTrailingBlanks) {
  TextTable table({{"name"}, {"n", Align::right}, {"note"}});
  table.add({"a", "1", ""});
  table.add({"long name", "1000", "x\ny"});
  EXPECT_EQ(table.text({}, 1),
            " name          n  note\n"
            " a             1\n"
            " long name  1000  x\\x0ay\n");
}

// The last column starts at 1 + 4 + 2 = 7; 31 leaves it its least width of 24, "b" repeated 12 times fills 23 of them.
TEST(TextTable, BreaksOnlyItsLastColumnAndOnlyWhereItIsTooLong) {
  TextTable table({{"name"}, {"note"}});
  table.add({"a", "short"});
  const auto at_width = [&table](int width) {
    ConsoleStyle style;
    style.width = width;
    return table.text(style, 1);
  };
  EXPECT_EQ(at_width(12), " name  note\n a     short\n");  // columns 8 to 12
  std::string words;
  for (int i = 0; i < 13; ++i) words += i == 0 ? "b" : " b";
  table.add({"c", words});
  EXPECT_EQ(at_width(31), " name  note\n a     short\n c     " + words.substr(0, 23) + "\n       b\n");
  EXPECT_EQ(at_width(12), " a\n   note\n   short\n c\n   note b b\n   b b b b b\n   b b b b b\n   b\n");
}

TEST(TextTable, IsAListWhereItIsTooNarrowForColumns) {
  TextTable table({{"verdict"}, {"time", Align::right}, {"rate"}, {""}, {"case"}});
  table.add({"SLOWER", "+25%", "1 GB/s", "", "memory/copy/n=1024/f32/x1"}, Tone::bad, "three runs say so, all of them");
  table.add({"SAME", "+0%", "", "noisy", "gemm/x1"});
  ConsoleStyle style;
  style.width = 30;
  EXPECT_EQ(table.text(style),
            "SLOWER\n"
            "  time +25%  rate 1 GB/s\n"
            "  case\n"
            "  memory/copy/n=1024/f32/x1\n"  // a word of 25 columns does not fit next to another
            "    three runs say so, all of\n"
            "    them\n"
            "SAME\n"
            "  time +0%  noisy\n"
            "  case gemm/x1\n");
  style.color = true;
  EXPECT_EQ(table.text(style).substr(0, 18), "\x1b[1;31mSLOWER\x1b[0m\n");
  style.width = 0;
  EXPECT_EQ(table.text(style),
            "verdict  time  rate           case\n"
            "\x1b[1;31mSLOWER\x1b[0m   +25%  1 GB/s         memory/copy/n=1024/f32/x1\n"
            "    \x1b[2mthree runs say so, all of them\x1b[0m\n"
            "SAME      +0%          noisy  gemm/x1\n");
}

TEST(Wrap, BreaksAtBlanksAndNeverWithinWords) {
  EXPECT_EQ(wrap("one two three", 10, 2), "one two\n  three");
  EXPECT_EQ(wrap("one two", 9, 2), "one two");  // columns 2 to 9
  EXPECT_EQ(wrap("a averylongword b", 8, 0), "a\naverylongword\nb");
  EXPECT_EQ(wrap("", 8, 0), "");
}

TEST(Visible, ShowsWhatTurnsOrHidesTextAndWhatXmlCannotHold) {
  EXPECT_EQ(visible("\u200e"), "\\xe2\\x80\\x8e");  // left-to-right mark
  EXPECT_EQ(visible("\u061c"), "\\xd8\\x9c");       // Arabic letter mark
  EXPECT_EQ(visible("\ufeff"), "\\xef\\xbb\\xbf");  // byte order mark
  EXPECT_EQ(visible("\uffff"), "\\xef\\xbf\\xbf");  // noncharacters
  EXPECT_EQ(visible("\U0001fffe"), "\\xf0\\x9f\\xbf\\xbe");
  EXPECT_EQ(visible("\U000e0041"), "\\xf3\\xa0\\x81\\x81");  // a tag: an invisible A
  EXPECT_EQ(visible("naïve 日本語 \U0001f600 \ufffd"), "naïve 日本語 \U0001f600 \ufffd");
}

TEST(Visible, HoldsNoCommandForTheRunnerOfACiServer) {
  EXPECT_EQ(visible("::error::x"), "\\x3a:error::x");
  EXPECT_EQ(visible("  ::set-env name=A::b"), "  \\x3a:set-env name=A::b");
  EXPECT_EQ(visible("\u3000::error::x"), "\u3000\\x3a:error::x");  // its blanks are Unicode's
  EXPECT_EQ(visible(":::x"), "\\x3a\\x3a:x");
  EXPECT_EQ(visible("say ##[error]x"), "say ##\\x5berror]x");
  EXPECT_EQ(visible("cutlass::gemm<T>::run f()::g a: b [x] #[x]"), "cutlass::gemm<T>::run f()::g a: b [x] #[x]");
  EXPECT_EQ(printable("::error::x ##[error]"), "::error::x ##[error]");
}

TEST(Shortened, EndsBetweenCharactersWithAnEllipsis) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened("longer", 5), "lo...");
  EXPECT_EQ(shortened("éé", 4), "éé");
  EXPECT_EQ(shortened("xééé", 6), "xé...");  // of the second é one byte would fit
  EXPECT_EQ(shortened("xxxx", 2), "..");
  EXPECT_EQ(shortened("", 0), "");
}

}  // namespace
}  // namespace gpubench
