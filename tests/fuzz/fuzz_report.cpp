// Fuzz target: any bytes of a report are rejected with a reason or are a valid report. A valid report survives a round
// trip, can be shown in every format and used by --pin; its summary survives a round trip through a baseline.
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
    // Rejection is allowed.
  }
}

void hold_to(std::string_view text) {
  static const MemoryFolder folder;
  const std::string path = folder.put("report.json", text);
  try {
    (void)read_pins(path);
    (void)read_batches(path);
  } catch (const ReadError&) {
    // Invalid digest, or a number of runs out of range.
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
  // One output per input: a page takes longer than everything else.
  const Sink& sink = sinks()[size % sinks().size()];
  try {
    const std::string output = sink.written(report);
    if (const std::string problem = sink.problem(output, output); !problem.empty()) {
      std::fprintf(stderr, "%s: %s\n", sink.name.c_str(), problem.c_str());
      std::abort();
    }
  } catch (const ExportError&) {
    // Formats reject numbers that they cannot represent.
  }
  return 0;
}
