// Fuzz target: any command line and environment gives options in range or a usage error. Each line is a word, or, with
// the prefix GPUBENCH_, a variable NAME=VALUE.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/flags.h"
#include "harness/cli/options.h"
#include "harness/core/error.h"

using namespace gpubench;

namespace {

// Sizes, batches and ranks are at least 1.
void require_counts(const Selection& selection) {
  for (const auto& [name, values] : selection.axes) {
    if (name.empty() || values.empty()) std::abort();
    if (std::any_of(values.begin(), values.end(), [](std::int64_t value) { return value < 0; })) std::abort();
  }
  const auto none = [](auto count) { return count < 1; };
  if (std::any_of(selection.batches.begin(), selection.batches.end(), none)) std::abort();
  if (std::any_of(selection.ranks.begin(), selection.ranks.end(), none)) std::abort();
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words, names;
  std::map<std::string, std::string> variables;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with("GPUBENCH_")) {
      const std::size_t end = std::min(line.find('='), line.size());
      names.emplace_back(line.substr(0, end));
      variables[names.back()] = line.substr(std::min(end + 1, line.size()));
    } else {
      words.emplace_back(line);
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  const Variables set = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
  try {
    const Options options = parse_options(words, set);
    require_counts(options.selection);
    if (has_control(variables_text(options.from_environment))) std::abort();
  } catch (const UsageError&) {
    // A usage error is expected.
  }
  if (names.empty()) return 0;  // collects the flags of all verbs once
  for (const std::string& sentence : unknown_variables(names)) {
    if (has_control(sentence)) std::abort();
  }
  return 0;
}
