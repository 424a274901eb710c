// Text that could do harm where a name is shown.
#pragma once

#include <string>
#include <vector>

namespace gpubench {

/// Formulas, quotes, separators, markup, terminal and label escapes, all valid UTF-8.
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
      "<img src=x onerror=alert(1)>",
      "\" onload=\"alert(1)",
      "' onmouseover='alert(1)",
      "<svg/onload=alert(1)>",
      "--><script>alert(1)</script>",
      "]]><x/>",
      "</textarea></title></style>",
      "&#60;script&#62;",
      "javascript:alert(1)",
      "{{7*7}} ${7*7}",
      "| a | b |",
      "a|b",
      "[x](javascript:alert(1))",
      "![x](https://example.invalid/x.png)",
      "https://example.invalid www.example.invalid",
      "@everyone me@example.invalid",
      "#1 owner/repo#2",
      "**bold** _it_ ~~no~~ ```",
      "# heading\n- item",
      "::stop-commands::x",
      "  ::add-mask::x",
      "\xe3\x80\x80::error::x",
      "##[error]x",
      "%0A::error::x%25",
      "a:b,c=d",
      "\xe2\x80\xa8::error::x",
      "\xe2\x80\x8f \xd8\x9c",     // right-to-left marks
      "\xef\xbf\xbf\xef\xbf\xbe",  // noncharacters, not allowed in XML
      "\xef\xbb\xbf=1",            // a byte order mark before a formula
      "\xf3\xa0\x81\x81",
      "\x1b]8;;https://example.invalid\x1b\\x",
      " ",
      " leading",
      "trailing ",
      std::string(5000, 'x'),
      "",
  };
  return texts;
}

/// Invalid UTF-8, as in names of devices and hosts.
inline const std::vector<std::string>& broken_texts() {
  static const std::vector<std::string> texts{
      "\xff\xfe",
      "\xc0\xbcscript\xc0\xbe",  // overlong < and >
      "\xed\xa0\x80",            // a surrogate
      "\xf4\x90\x80\x80",        // above U+10FFFF
      "cut \xe2\x82",
      "\x9b"
      "2J",
  };
  return texts;
}

}  // namespace gpubench
