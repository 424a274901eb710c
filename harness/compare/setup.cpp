#include "harness/compare/invocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/compare/effect.h"
#include "harness/core/backend.h"
#include "harness/core/hash.h"
#include "harness/core/text/text_table.h"
#include "harness/report/json.h"
#include "harness/report/report_json.h"

namespace gpubench {
namespace {

constexpr std::string_view absent = "(none)";
constexpr const char* locked_clock_key = "locked_clock";

std::string major_of(const std::string& version) { return version.substr(0, version.find('.')); }

// Kind, name, properties and libraries of a device.
void add_device(const DeviceInfo& device, const std::string& prefix, Setup& setup) {
  const auto key = [&](std::string_view name) { return prefix + std::string(name); };
  setup.decisive.emplace_back(key("kind"), device.kind);
  setup.decisive.emplace_back(key("name"), device.name);
  setup.decisive.emplace_back(key("units"), fmt::format("{}", device.units));
  // Do not affect results: the slot of a card, hosts of ranks, a container's memory limit, and why an instruction set
  // is not used (that it is not used does).
  setup.telling.emplace_back(key("memory_bytes"), fmt::format("{}", device.memory_bytes));
  for (const auto& [name, value] : device.properties) {
    const bool tells = name == device_property::pci_bus_id || name == device_property::cpu_isa_reason ||
                       name == device_property::rank_places;
    Facts& facts = tells ? setup.telling : setup.decisive;
    facts.emplace_back(key(name), value);
  }
  for (const auto& [name, value] : device.libraries) setup.decisive.emplace_back(key(name), value);
}

// Maps names of presets before schema 1.5, which were those of tiers, to the current ones.
std::string_view current_name(std::string_view key, std::string_view value) {
  if (key != "preset") return value;
  return value == "smoke" ? "minimal" : value == "quick" ? "brief" : value == "standard" ? "normal" : value;
}

std::string value_of(const Facts& facts, const std::string& key) {
  const auto found = std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == key; });
  return found == facts.end() ? std::string(absent) : found->second;
}

}  // namespace

Setup setup_of(const Report& report) {
  Setup setup;
  const RunContext& run = report.run;
  const auto decisive = [&setup](const char* key, std::string value) {
    setup.decisive.emplace_back(key, std::move(value));
  };
  for (std::size_t i = 0; i < run.devices.size(); ++i)
    add_device(run.devices[i], i == 0 ? "device." : fmt::format("device{}.", i), setup);
  if (!run.devices.empty()) setup.device_kind = run.devices.front().kind;
  decisive("devices", fmt::format("{}", run.devices.size()));
  for (const auto& [variable, value] : run.env) {
    if (!variable.starts_with("GPUBENCH_")) setup.decisive.emplace_back("env." + variable, value);
  }
  decisive("version", major_of(run.tool_version));
  decisive("tier", run.tier);
  if (!run.preset.empty()) decisive("preset", run.preset);
  if (run.locked_clock_mhz > 0) decisive(locked_clock_key, fmt::format("{} MHz", run.locked_clock_mhz));
  if (run.deterministic) decisive("deterministic", *run.deterministic ? "on" : "off");
  if (!run.arithmetic.empty()) decisive("arithmetic", joined(run.arithmetic));
  const auto of_build = [&run](std::string_view key, const char* fact, Facts& facts) {
    for (const auto& [name, value] : run.build) {
      if (name == key) facts.emplace_back(fact, value);
    }
  };
  of_build("type", "build_type", setup.decisive);
  setup.telling.emplace_back("host", report.host.host_name);
  setup.telling.emplace_back("gpubench", run.tool_version);
  for (const char* fact : {"revision", "compiler", "flags"}) of_build(fact, fact, setup.telling);
  std::vector<std::string> implementations;
  for (const ImplementationFile& one : run.implementations.value_or(std::vector<ImplementationFile>{}))
    implementations.push_back(
        fmt::format("{} {}{}{}", one.name, one.digest, one.version.empty() ? "" : " ", one.version));
  if (!implementations.empty()) setup.telling.emplace_back("implementations", joined(implementations));
  setup.telling.emplace_back("seed", fmt::format("{}", run.seed));
  return setup;
}

double assumed_spread(const Setup& a, const Setup& b) {
  const auto of = [](const Setup& setup) {
    return assumed_spread(setup.device_kind, value_of(setup.decisive, locked_clock_key) != absent);
  };
  return std::max(of(a), of(b));
}

std::string fingerprint(const Setup& setup) {
  Facts sorted = setup.decisive;
  std::sort(sorted.begin(), sorted.end());
  std::uint64_t digest = 0;
  for (const auto& [key, value] : sorted) digest = hash(value, hash(key, digest));
  return fmt::format("{:016x}", digest);
}

std::vector<Difference> differences(const Facts& baseline, const Facts& candidate) {
  std::vector<Difference> all;
  std::set<std::string> seen;
  for (const Facts* facts : {&baseline, &candidate}) {
    for (const auto& fact : *facts) {
      if (!seen.insert(fact.first).second) continue;
      Difference one{fact.first, value_of(baseline, fact.first), value_of(candidate, fact.first)};
      if (current_name(one.key, one.baseline) != current_name(one.key, one.candidate)) all.push_back(std::move(one));
    }
  }
  return all;
}

std::string difference_text(const Difference& difference) {
  return fmt::format("{} {} -> {}", difference.key, difference.baseline, difference.candidate);
}

std::string differences_text(const std::vector<Difference>& all) {
  std::vector<std::string> texts;
  for (const Difference& one : all) texts.push_back(difference_text(one));
  return joined(texts, "; ");
}

Json to_json(const Facts& facts) {
  Json object = Json::object();
  for (const auto& [key, value] : facts) object[key] = value;
  return object;
}

Facts facts_from_json(const Node& node) {
  Facts facts;
  for (const auto& [key, value] : node.members()) facts.emplace_back(key, value.text());
  return facts;
}

}  // namespace gpubench
