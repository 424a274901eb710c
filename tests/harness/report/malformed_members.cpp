// malformed_members(): every member of a report with wrong kinds and values.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/harness/report/malformed_reports.h"

namespace gpubench {
namespace {

// A member's place, as the library's pointer and as the path in messages.
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

// Elements of an array are alike: only the first with a member is changed.
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

// Numbers that may be negative; samples and a summary's drift are also checked for meaning.
bool may_be_negative(const std::string& path) {
  for (const char* end : {".got", ".want", ".remainder", ".temperature_c", ".exposed_communication"}) {
    if (path.ends_with(end)) return true;
  }
  return false;
}

std::string above(const std::string& path) { return path.substr(0, path.find_last_of(".[")); }

// The place in the error for a missing member: null numbers at the object with the notes, dimensions at the id.
std::string place_of_missing(const Place& place) {
  const bool of_list = !place.in_object;
  const bool of_free_names = place.parent.ends_with(".params") || place.parent.ends_with(".nonfinite");
  return of_list || of_free_names ? above(place.parent) : place.parent;
}

}  // namespace

const std::vector<std::string>& optional_members() {
  // Per kind of object; the last four have free names: of a build, an environment, a device.
  static const std::pair<const char*, const char*> members_of[] = {
      {"context.gpubench",
       "deterministic preset invocation injected locked_clock_mhz arithmetic shapes implementations"},
      {"gpubench.cases[0]", "calls def_hash memory choice workspace_bytes plan_s rewrites"},
      {"gpubench.cases[2]", "unfinished"},
      {"gpubench.cases[0].parity.ops[0]", "choice places projected projected_fault rejected"},
      {"gpubench.cases[0].parity", "arithmetic end_to_end implementations"},
      {"gpubench.cases[0].parity.arithmetic[0]",
       "unit inputs products bits rounding at_once fraction emptied partial store denormals specials order note "
       "reason"},
      {"gpubench.cases[0].rounds[0]", "ranks telemetry"},
      {"gpubench.cases[0].rounds[0].telemetry",
       "sm_mhz memory_mhz temperature_c power_w energy_j uncorrected_errors involuntary_switches errors cpu_pressure"},
      {"gpubench.cases[0].derived.breakdown[0]", "share"},
      {"gpubench.cases[0].derived", "energy_j energy_per_work_j collective ranks peak"},
      {"gpubench.cases[0].derived.ranks", "compute_only_ns exposed_communication efficiency partners"},
      {"gpubench.cases[0].derived.peak", "peak of_peak peak_at_clock of_peak_at_clock of_best"},
      {"context.gpubench.build", "compiler type"},
      {"context.gpubench.env", "OMP_NUM_THREADS"},
      {"context.gpubench.devices[0].properties", "isa"},
      {"context.gpubench.devices[0].libraries", "oneDNN"},
  };
  static const std::vector<std::string> members = [] {
    std::vector<std::string> all;
    for (const auto& [object, names] : members_of) {
      std::istringstream stream(names);
      for (std::string member; stream >> member;) all.push_back(std::string(object) + "." + member);
    }
    return all;
  }();
  return members;
}

std::vector<MalformedFile> malformed_members() {
  const Json report = report_json(holding_report());
  std::vector<MalformedFile> files;
  for (const Place& place : places_of(report)) {
    const Json& value = report.at(place.pointer);
    for (const Json& other : other_kinds(value)) {
      if (other.is_null() && place.path.ends_with(".worst")) continue;
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
