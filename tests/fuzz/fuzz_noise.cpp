// Fuzz target: any noise file or baseline is rejected with a reason, or survives a round trip unchanged.
#include <cstdint>
#include <cstdlib>

#include "harness/compare/baseline.h"
#include "harness/report/json.h"

using namespace gpubench;

namespace {

template <class Read>
void survives(const Json& json, const Read& read) {
  const Json written = to_json(read(Node(json, "fuzz")));
  if (dump(to_json(read(Node(written, "fuzz")))) != dump(written)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Json json = parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
    const Node root(json, "fuzz");
    if (root.has("cases")) {
      survives(json, [](const Node& node) { return noise_from_json(node, "fuzz"); });
    } else {
      survives(json, [](const Node& node) { return baseline_from_json(node, "fuzz"); });
    }
  } catch (const ReadError&) {
    // Rejection is allowed.
  }
  return 0;
}
