// Fuzz target: the own parser and the JSON library accept the same documents with the same values, except for the own
// parser's limits.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "harness/report/json.h"
#include "harness/report/json_parser.h"

using namespace gpubench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find('\0') != text.npos) return 0;  // the library stops at NUL
  const bool takes = Json::accept(text);
  try {
    const Json ours = parse_json(text, "fuzz");
    if (!takes || dump(ours) != dump(Json::parse(text))) std::abort();
    constexpr std::string_view left_out[] = {"a", "rounds"};
    (void)parse_json(text, "fuzz", {left_out, {}});
  } catch (const ReadError& e) {
    const std::string_view why = e.what();
    const auto says = [why](std::string_view words) { return why.find(words) != why.npos; };
    if (takes && !says("appears twice") && !says("nested deeper") && !says("more than")) std::abort();
  }
  return 0;
}
