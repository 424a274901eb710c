// Fuzz target: any command line, its words one to a line, is options or a usage error.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/options.h"
#include "harness/core/error.h"

using namespace gpubench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find('\n'));
    words.emplace_back(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  try {
    (void)parse_options(words);
  } catch (const UsageError&) {
    // Said what is wrong.
  }
  return 0;
}
