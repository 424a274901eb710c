// malformed_members(): every member of a report in turn, by what it is and by what it is not.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/report/json.h"
#include "tests/harness/report/holding_report.h"
#include "tests/harness/report/malformed_reports.h"

namespace gpubench {
namespace {

// A member's place, as a pointer for the library and as the path that messages have.
struct Place {
  Json::json_pointer pointer;
  std::string path;
  std::string parent;
  bool in_object;
};

void walk(const Json& node, const Place& here, std::vector<Place>& places) {
  const std::string dot = here.path.empty() ? "" : ".";
  if (node.is_object()) {
    for (const auto& [key, value] : node.items()) {
      const Place place{here.pointer / key, here.path + dot + key, here.path, true};
      places.push_back(place);
      walk(value, place, places);
    }
  } else if (node.is_array()) {
    for (std::size_t i = 0; i < node.size(); ++i) {
      const Place place{here.pointer / i, fmt::format("{}[{}]", here.path, i), here.path, false};
      places.push_back(place);
      walk(node[i], place, places);
    }
  }
}

// Elements of one array are alike: only the first that has a member speaks for it.
std::string pattern(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c < '0' || c > '9') text += c;
  }
  return text;
}

std::vector<Place> places_of(const Json& document) {
  std::vector<Place> all;
  walk(document, {Json::json_pointer(), "", "", true}, all);
  std::vector<Place> kept;
  std::set<std::string> seen;
  for (Place& place : all) {
    if (seen.insert(pattern(place.path)).second) kept.push_back(std::move(place));
  }
  return kept;
}

std::vector<Json> other_kinds(const Json& value) {
  if (value.is_object()) return {Json::array(), "x", 3, nullptr, true};
  if (value.is_array()) return {Json::object(), "x", 3, nullptr, true};
  if (value.is_string()) return {3, nullptr, Json::array(), true, Json::object()};
  if (value.is_boolean()) return {1, nullptr, "true"};
  return {"3", true, Json::array(), Json::object(), nullptr};
}

// Numbers that may be below 0; of a round's samples and a summary's drift the meaning is looked at as well.
bool may_be_negative(const std::string& path) {
  for (const char* end : {".got", ".want", ".remainder", ".temperature_c", ".exposed_communication"}) {
    if (path.ends_with(end)) return true;
  }
  return false;
}

std::string above(const std::string& path) { return path.substr(0, path.find_last_of(".[")); }

// Where a member that is not there is told: null numbers at the object with the notes, dimensions at the id.
std::string place_of_missing(const Place& place) {
  const bool of_list = !place.in_object;
  const bool of_free_names = place.parent.ends_with(".params") || place.parent.ends_with(".nonfinite");
  return of_list || of_free_names ? above(place.parent) : place.parent;
}

}  // namespace

const std::vector<std::string>& optional_members() {
  static const std::vector<std::string> members{
      "context.gpubench.deterministic",
      "context.gpubench.preset",
      "context.gpubench.invocation",
      "context.gpubench.injected",
      "context.gpubench.locked_clock_mhz",
      "context.gpubench.arithmetic",
      "context.gpubench.shapes",
      "context.gpubench.implementations",
      "gpubench.cases[0].calls",
      "gpubench.cases[0].def_hash",
      "gpubench.cases[0].memory",
      "gpubench.cases[0].choice",
      "gpubench.cases[0].workspace_bytes",
      "gpubench.cases[0].plan_s",
      "gpubench.cases[2].unfinished",
      "gpubench.cases[0].rewrites",
      "gpubench.cases[0].parity.ops[0].choice",
      "gpubench.cases[0].parity.ops[0].places",
      "gpubench.cases[0].parity.ops[0].projected",
      "gpubench.cases[0].parity.ops[0].projected_fault",
      "gpubench.cases[0].parity.ops[0].rejected",
      "gpubench.cases[0].parity.arithmetic",
      "gpubench.cases[0].parity.arithmetic[0].unit",
      "gpubench.cases[0].parity.arithmetic[0].inputs",
      "gpubench.cases[0].parity.arithmetic[0].products",
      "gpubench.cases[0].parity.arithmetic[0].bits",
      "gpubench.cases[0].parity.arithmetic[0].rounding",
      "gpubench.cases[0].parity.arithmetic[0].at_once",
      "gpubench.cases[0].parity.arithmetic[0].fraction",
      "gpubench.cases[0].parity.arithmetic[0].emptied",
      "gpubench.cases[0].parity.arithmetic[0].partial",
      "gpubench.cases[0].parity.arithmetic[0].store",
      "gpubench.cases[0].parity.arithmetic[0].denormals",
      "gpubench.cases[0].parity.arithmetic[0].specials",
      "gpubench.cases[0].parity.arithmetic[0].order",
      "gpubench.cases[0].parity.arithmetic[0].note",
      "gpubench.cases[0].parity.arithmetic[0].reason",
      "gpubench.cases[0].parity.end_to_end",
      "gpubench.cases[0].parity.implementations",
      "gpubench.cases[0].rounds[0].ranks",
      "gpubench.cases[0].rounds[0].telemetry",
      "gpubench.cases[0].rounds[0].telemetry.sm_mhz",
      "gpubench.cases[0].rounds[0].telemetry.memory_mhz",
      "gpubench.cases[0].rounds[0].telemetry.temperature_c",
      "gpubench.cases[0].rounds[0].telemetry.power_w",
      "gpubench.cases[0].rounds[0].telemetry.energy_j",
      "gpubench.cases[0].rounds[0].telemetry.uncorrected_errors",
      "gpubench.cases[0].rounds[0].telemetry.involuntary_switches",
      "gpubench.cases[0].rounds[0].telemetry.errors",
      "gpubench.cases[0].rounds[0].telemetry.cpu_pressure",
      "gpubench.cases[0].derived.breakdown[0].share",
      "gpubench.cases[0].derived.energy_j",
      "gpubench.cases[0].derived.energy_per_work_j",
      "gpubench.cases[0].derived.collective",
      "gpubench.cases[0].derived.ranks",
      "gpubench.cases[0].derived.ranks.compute_only_ns",
      "gpubench.cases[0].derived.ranks.exposed_communication",
      "gpubench.cases[0].derived.ranks.efficiency",
      "gpubench.cases[0].derived.ranks.partners",
      "gpubench.cases[0].derived.peak",
      "gpubench.cases[0].derived.peak.peak",
      "gpubench.cases[0].derived.peak.of_peak",
      "gpubench.cases[0].derived.peak.peak_at_clock",
      "gpubench.cases[0].derived.peak.of_peak_at_clock",
      "gpubench.cases[0].derived.peak.of_best",
      // Free names: what a build, an environment, a device tells.
      "context.gpubench.build.compiler",
      "context.gpubench.build.type",
      "context.gpubench.env.OMP_NUM_THREADS",
      "context.gpubench.devices[0].properties.isa",
      "context.gpubench.devices[0].libraries.oneDNN",
  };
  return members;
}

std::vector<MalformedFile> malformed_members() {
  const Json report = report_json(holding_report());
  std::vector<MalformedFile> files;
  for (const Place& place : places_of(report)) {
    const Json& value = report.at(place.pointer);
    for (const Json& other : other_kinds(value)) {
      if (other.is_null() && place.path.ends_with(".worst")) continue;  // nothing was worst
      Json changed = report;
      changed[place.pointer] = other;
      files.push_back({fmt::format("{} is {}", place.path, other.dump()), changed.dump(),
                       other.is_null() ? place_of_missing(place) : place.parent, ""});
    }
    if (value.is_number() && !may_be_negative(place.path)) {
      Json changed = report;
      changed[place.pointer] = -1;
      files.push_back({place.path + " is -1", changed.dump(), place.parent, ""});
    }
    if (value.is_number_integer()) {
      Json changed = report;
      changed[place.pointer] = 1.5;
      files.push_back({place.path + " is 1.5", changed.dump(), place.parent, ""});
      changed[place.pointer] = 1e30;
      files.push_back({place.path + " is 1e30", changed.dump(), place.parent, ""});
    }
    const bool optional =
        std::find(optional_members().begin(), optional_members().end(), place.path) != optional_members().end();
    if (place.in_object && !optional) {
      Json changed = report;
      changed.at(place.pointer.parent_pointer()).erase(place.pointer.back());
      files.push_back({"no " + place.path, changed.dump(), place_of_missing(place), ""});
    }
  }
  return files;
}

}  // namespace gpubench
