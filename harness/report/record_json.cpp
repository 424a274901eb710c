#include "harness/report/record_json.h"

#include <fmt/format.h>

#include "harness/core/error.h"
#include "harness/report/json.h"
#include "harness/report/record_reader.h"
#include "harness/report/record_writer.h"

namespace gpubench {

Json to_json(const CaseRecord& record) {
  CaseRecord copy = record;
  return record_members::Writer::written(copy);
}

namespace {

void require_own_id(const Node& node, const CaseRecord& record) {
  std::string id;
  try {
    id = record.c.id();
  } catch (const ProgramError& e) {
    node.refuse(e.what());
  }
  if (id != record.id) node.at("id").refuse(fmt::format("does not match its parts, which make {}", id));
}

}  // namespace

CaseRecord record_from_json(const Node& node) {
  CaseRecord record;
  record_members::Reader::read(node, record);
  require_own_id(node, record);
  return record;
}

CaseRecord record_from_json(const Node& node, Problems& problems) {
  CaseRecord record;
  const std::size_t before = problems.count();
  record_members::Reader::read(node, record, &problems);
  if (problems.count() == before) problems.attempt([&] { require_own_id(node, record); });
  return record;
}

Json to_json(const DeviceInfo& device) {
  DeviceInfo copy = device;
  return record_members::Writer::written(copy);
}

DeviceInfo device_from_json(const Node& node) {
  DeviceInfo device;
  record_members::Reader::read(node, device);
  return device;
}

DeviceInfo device_from_json(const Node& node, Problems& problems) {
  DeviceInfo device;
  record_members::Reader::read(node, device, &problems);
  return device;
}

}  // namespace gpubench
