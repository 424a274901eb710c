// Fuzz target: --filter and --exclude are a regular expression or a usage error; every search terminates.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "harness/core/error.h"
#include "harness/plan/names.h"

using namespace gpubench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const Pattern pattern("filter", text);
    (void)pattern.found_in("attention/attention_forward/b=4,heads=12,sq=1024,sk=1024,d=64/bf16/causal/x1");
    (void)pattern.found_in("");
  } catch (const UsageError& e) {
    if (std::string(e.what()).size() > 1000) std::abort();  // errors quote a part of the pattern only
  }
  return 0;
}
