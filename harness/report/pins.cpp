#include "harness/report/pins.h"

#include <fmt/format.h>

#include "harness/report/report_reader.h"
#include "harness/report/visible_text.h"

namespace gpubench {

std::map<std::string, std::map<std::string, std::string>> read_pins(const std::string& path) {
  std::map<std::string, std::map<std::string, std::string>> pins;
  for (const CaseRecord& record : read_report(path).cases) {
    if (record.verdict != Verdict::pass) continue;
    for (const OpParity& op : record.parity.ops) {
      if (!op.implementation.empty()) pins[record.id][op.label] = op.implementation;
    }
  }
  return pins;
}

std::map<std::string, std::int64_t> read_batches(const std::string& path) {
  constexpr std::int64_t most = 4096;  // batch_for() gives no more
  std::map<std::string, std::int64_t> batches;
  for (const CaseRecord& record : read_report(path).cases) {
    if (record.verdict != Verdict::pass) continue;
    if (record.batch < 1 || record.batch > most)
      throw ReadError(fmt::format("{}: {} has {} runs a sample, expected 1 to {}", visible(path), visible(record.id),
                                  record.batch, most));
    batches[record.id] = record.batch;
  }
  return batches;
}

}  // namespace gpubench
