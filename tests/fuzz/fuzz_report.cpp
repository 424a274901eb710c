// Fuzz target: whatever a report's bytes are, they are refused with a reason or they hold. What holds can be written
// and read again, told in every way, and held to by another run (--pin); what a comparison skims of it can be kept in a
// baseline and taken from there, the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "harness/compare/invocation.h"
#include "harness/report/export.h"
#include "harness/report/json.h"
#include "harness/report/report_json.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/harness/report/sinks.h"

using namespace gpubench;

namespace {

Problems problems_of(std::string_view text, Report& report) {
  Problems problems;
  problems.attempt([&] { report = report_from_json(parse_json(text, "fuzz"), "fuzz", problems); });
  return problems;
}

void skim(std::string_view text) {
  try {
    const Invocation taken = parse_invocation(text, "fuzz");
    const Json kept = to_json(taken);
    if (dump(to_json(invocation_from_json(Node(kept, "fuzz"), "fuzz"))) != dump(kept)) std::abort();
  } catch (const ReadError&) {
    // Refused.
  }
}

void hold_to(std::string_view text) {
  static const MemoryFolder folder;
  const std::string path = folder.put("report.json", text);
  try {
    (void)read_pins(path);
    (void)read_batches(path);
  } catch (const ReadError&) {
    // Its digest does not hold, or a number of runs is out of range.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  skim(text);
  Report report;
  if (!problems_of(text, report).none()) return 0;
  Report again;
  if (!problems_of(dump(report_json(report)), again).none()) std::abort();
  hold_to(text);
  // One sink an input: a page takes longer than all the rest.
  const Sink& sink = sinks()[size % sinks().size()];
  try {
    const std::string output = sink.written(report);
    if (const std::string problem = sink.problem(output, output); !problem.empty()) {
      std::fprintf(stderr, "%s: %s\n", sink.name.c_str(), problem.c_str());
      std::abort();
    }
  } catch (const ExportError&) {
    // A number that a format cannot tell is refused by name.
  }
  return 0;
}
