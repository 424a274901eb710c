#include "harness/report/record_json.h"

#include <fmt/format.h>

#include "harness/core/error.h"
#include "harness/report/json.h"
#include "harness/report/record_reader.h"
#include "harness/report/record_writer.h"

namespace gpubench {

using record_members::Reader;
using record_members::Writer;

Json to_json(const CaseRecord& record) { return Writer::written(record); }

namespace {

// It reaches files, terminals and other programs.
void require_identity(const Node& node, const CaseRecord& record) {
  std::string id;
  try {
    id = record.c.id();
  } catch (const ProgramError& e) {
    node.refuse(e.what());
  }
  if (id != record.id) node.at("id").refuse(fmt::format("does not match its parts, which make {}", id));
}

}  // namespace

CaseRecord record_from_json(const Node& node, LeftOut left_out) {
  CaseRecord record = Reader::read<CaseRecord>(node, nullptr, left_out);
  require_identity(node, record);
  return record;
}

CaseRecord record_from_json(const Node& node, Problems& problems) {
  const std::size_t before = problems.count();
  CaseRecord record = Reader::read<CaseRecord>(node, &problems);
  if (problems.count() == before) problems.attempt([&] { require_identity(node, record); });
  return record;
}

Json to_json(const DeviceInfo& device) { return Writer::written(device); }

DeviceInfo device_from_json(const Node& node) { return Reader::read<DeviceInfo>(node); }

DeviceInfo device_from_json(const Node& node, Problems& problems) { return Reader::read<DeviceInfo>(node, &problems); }

}  // namespace gpubench
