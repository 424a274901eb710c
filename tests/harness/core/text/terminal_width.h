#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "harness/core/text/visible_text.h"

namespace gpubench {

/// Replaces line ends and repeated blanks by single blanks.
inline std::string unwrapped(const std::string& text) {
  std::string all;
  std::istringstream words(text);
  for (std::string word; words >> word;) all += (all.empty() ? "" : " ") + word;
  return all;
}

/// Lines wider than `width`, except text for copying: a case's id or a path alone on its line, and the lines of "rerun"
/// and "report".
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
