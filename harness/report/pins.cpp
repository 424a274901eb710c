#include "harness/report/pins.h"

#include "harness/report/reader.h"
#include "harness/report/record_json.h"

namespace gpubench {

std::map<std::string, std::map<std::string, std::string>> read_pins(const std::string& path) {
  std::map<std::string, std::map<std::string, std::string>> pins;
  const Json json = read_json_file(path);
  const Node cases = Node(json, path).at("gpubench").at("cases");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const CaseRecord record = record_from_json(cases.at(i));
    if (record.verdict != Verdict::pass) continue;
    for (const OpParity& op : record.parity.ops) {
      if (!op.implementation.empty()) pins[record.id][op.label] = op.implementation;
    }
  }
  return pins;
}

}  // namespace gpubench
