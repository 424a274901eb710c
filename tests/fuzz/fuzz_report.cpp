// Fuzz target: whatever a report's bytes are, they are refused with a reason or they hold; what holds can be written
// and read again, and told in every format.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "harness/report/export.h"
#include "harness/report/json.h"
#include "harness/report/report_reader.h"

using namespace gpubench;

namespace {

Problems problems_of(std::string_view text, Report& report) {
  Problems problems;
  problems.attempt([&] { report = report_from_json(parse_json(text, "fuzz"), "fuzz", problems); });
  return problems;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Report report;
  if (!problems_of({reinterpret_cast<const char*>(data), size}, report).none()) return 0;
  Report again;
  if (!problems_of(dump(report_json(report)), again).none()) std::abort();
  for (const ExportFormat format : export_formats()) {
    try {
      (void)exported(report, format);
    } catch (const ExportError&) {
      // A number that a format cannot tell is refused by name.
    }
  }
  return 0;
}
