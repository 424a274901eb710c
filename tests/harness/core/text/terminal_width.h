// Whether text keeps to the width of a terminal.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "harness/core/text/visible_text.h"

namespace gpubench {

/// `text` with single blanks for its line ends and other blanks, as a reader takes it.
inline std::string unwrapped(const std::string& text) {
  std::string all;
  std::istringstream words(text);
  for (std::string word; words >> word;) all += (all.empty() ? "" : " ") + word;
  return all;
}

/// Lines of `text` that are wider than `width`. What is copied stays in one piece and may be: a case's id or a path
/// alone on its line, and the lines of "rerun" and "report".
inline std::vector<std::string> lines_too_wide(const std::string& text, int width) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string words = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    const bool one_piece =
        words.find(' ') == std::string::npos || words.starts_with("rerun ") || words.starts_with("report ");
    if (columns(line) > width && !one_piece) found.push_back(line);
  }
  return found;
}

}  // namespace gpubench
