// Fuzz target: whatever a report's bytes are, what a comparison skims of it is refused with a reason, or can be kept in
// a baseline and taken from there, the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "harness/compare/invocation.h"
#include "harness/report/json.h"

using namespace gpubench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Invocation taken = parse_invocation({reinterpret_cast<const char*>(data), size}, "fuzz");
    const Json kept = to_json(taken);
    if (dump(to_json(invocation_from_json(Node(kept, "fuzz"), "fuzz"))) != dump(kept)) std::abort();
  } catch (const ReadError&) {
    // Refused.
  }
  return 0;
}
