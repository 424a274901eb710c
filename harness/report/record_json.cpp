#include "harness/report/record_json.h"

#include <fmt/format.h>

#include "harness/report/record_reader.h"
#include "harness/report/record_writer.h"

namespace gpubench {

Json to_json(const CaseRecord& record) {
  CaseRecord copy = record;
  return record_members::Writer::written(copy);
}

CaseRecord record_from_json(const Node& node) {
  CaseRecord record;
  record_members::Reader::read(node, record);
  std::string id;
  try {
    id = record.c.id();
  } catch (const std::exception& e) {
    node.refuse(e.what());
  }
  if (id != record.id) node.at("id").refuse(fmt::format("does not match its parts, which make {}", id));
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

}  // namespace gpubench
