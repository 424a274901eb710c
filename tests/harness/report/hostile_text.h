// Text that somebody might put into a name to do harm where the name is shown.
#pragma once

#include <string>
#include <vector>

namespace gpubench {

/// Formulas, quotes, separators, markup, terminal and label escapes; all of it UTF-8, as a reader of JSON gives it.
inline const std::vector<std::string>& hostile_texts() {
  static const std::vector<std::string> texts{
      "=1+1",
      "=cmd|' /C calc'!A0",
      "+SUM(1)",
      "-2+3",
      "@SUM(1)",
      "\t=1",
      "\r=1",
      "'=1",
      "=HYPERLINK(\"http://example.invalid\",\"x\")",
      "a,b",
      "a;b",
      "\"",
      "\"\"",
      "a\"b,c\"",
      "'",
      "`id`",
      "$(id)",
      "%s%n",
      "a\nb",
      "a\r\nb",
      "\n",
      "\n# TYPE gpubench_cases counter\ngpubench_cases 999",
      "\"} 999\ngpubench_cases{verdict=\"pass",
      "\\",
      "\\\\",
      "\\n",
      "\\\"",
      "ends in \\",
      "{}",
      "}",
      "a=\"b\"",
      "<script>alert(1)</script>",
      "</script>",
      "<!--",
      "]]>",
      "&amp;",
      "::error::x",
      "\x1b[2J",
      "\x1b]0;owned\x07",
      "\xc2\x9b"
      "2J",
      "\xe2\x80\xae"
      "txt",
      "\x7f",
      std::string("a\0b", 3),
      "\xf0\x9f\x98\x80",
      " ",
      " leading",
      "trailing ",
      std::string(5000, 'x'),
      "",
  };
  return texts;
}

}  // namespace gpubench
