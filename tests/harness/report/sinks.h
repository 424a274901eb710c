// Everything that a report is told to, with what its output must keep to and how the output is read back.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/report/report_json.h"

namespace gpubench {

struct Sink {
  std::string name;
  std::function<std::string(const Report&)> written;
  /// What is wrong with an output, "" for nothing; `harmless` is the output of the same report with a word in place of
  /// the hostile text: lines, elements, rows and cells must be as many.
  std::function<std::string(const std::string& output, const std::string& harmless)> problem;
  /// All text that the format's reader finds.
  std::function<std::string(const std::string& output)> read;
  /// The text as the reader should find it, in one way or the other.
  std::function<std::vector<std::string>(const std::string& text)> expected;
};

[[nodiscard]] const std::vector<Sink>& sinks();

}  // namespace gpubench
