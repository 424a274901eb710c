#include "harness/report/pins.h"

#include "harness/report/report_reader.h"

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

}  // namespace gpubench
