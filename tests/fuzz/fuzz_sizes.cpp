// Fuzz target: the lists of sizes on a command line (--axis, --batch, --ranks) are whole numbers in range or a usage
// error.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "harness/cli/options.h"
#include "harness/core/error.h"

using namespace gpubench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string word(reinterpret_cast<const char*>(data), size);
  for (const char* flag : {"--axis", "--batch", "--ranks"}) {
    try {
      const Options options = parse_options(std::vector<std::string>{"run", std::string(flag) + "=" + word});
      for (const auto& [name, values] : options.selection.axes) {
        if (name.empty()) std::abort();
        for (const std::int64_t value : values) {
          if (value < 0) std::abort();
        }
      }
      for (const std::int64_t batch : options.selection.batches) {
        if (batch < 1) std::abort();
      }
      for (const int ranks : options.selection.ranks) {
        if (ranks < 1) std::abort();
      }
    } catch (const UsageError&) {
      // Said what is wrong.
    }
  }
  return 0;
}
