#include "harness/cli/finding_records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cli/flags.h"
#include "harness/cli/run_context.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/reader.h"

namespace gpubench {
namespace {

constexpr std::string_view bits_schema = "gpubench-bits";
constexpr int bits_schema_version = 2;

std::uint64_t hexadecimal(const Node& node) {
  const std::string text = node.text();
  const std::optional<std::uint64_t> value = number<std::uint64_t>(text, 16);
  if (!value || text.size() != 16) node.refuse("expected 16 hexadecimal digits");
  return *value;
}

}  // namespace

Json bits_json(std::span<const DeterminismRecord> records, const DeviceInfo& device) {
  Json cases = Json::array();
  for (const DeterminismRecord& record : records) {
    if (!record.unsupported.empty()) continue;
    Json values = Json::array();
    for (const ValueBits& value : record.bits.values) {
      Json parts = Json::array();
      for (const std::uint64_t part : value.parts) parts.push_back(fmt::format("{:016x}", part));
      values.push_back({{"tensor", value.tensor},
                        {"op", value.op},
                        {"kind", value.kind},
                        {"implementation", value.implementation},
                        {"elements", value.elements},
                        {"part_elements", value.part_elements},
                        {"parts", std::move(parts)}});
    }
    cases.push_back({{"id", record.id}, {"seed", record.bits.seed}, {"values", std::move(values)}});
  }
  Json libraries = Json::object();
  for (const auto& [name, version] : device.libraries) libraries[name] = version;
  return {{"schema", bits_schema}, {"schema_version", bits_schema_version}, {"version", version()},
          {"device", device.name}, {"libraries", std::move(libraries)},     {"cases", std::move(cases)}};
}

SavedBits read_bits(const std::string& path) {
  const Json json = read_json_file(path, {});
  const Node document(json, path);
  if (!document.has("schema") || document.at("schema").text() != bits_schema)
    document.refuse("is not a file of gpubench determinism --save");
  static_cast<void>(document.at("schema_version").integer(bits_schema_version, bits_schema_version));
  SavedBits saved{{}, document.at("device").text(), {}};
  for (const auto& [name, version] : document.at("libraries").members())
    saved.libraries.emplace_back(name, version.text());
  const Node cases = document.at("cases");
  for (std::size_t i = 0; i < cases.length(); ++i) {
    const Node one = cases.at(i);
    CaseBits bits{one.at("id").text(), one.at("seed").natural(), {}};
    const Node values = one.at("values");
    for (std::size_t v = 0; v < values.length(); ++v) {
      const Node value = values.at(v);
      ValueBits& read = bits.values.emplace_back();
      read.tensor = value.at("tensor").text();
      read.op = value.at("op").text();
      read.kind = value.at("kind").text();
      read.implementation = value.at("implementation").text();
      read.elements = value.at("elements").integer();
      read.part_elements = value.at("part_elements").integer(1);
      const Node parts = value.at("parts");
      for (std::size_t p = 0; p < parts.length(); ++p) read.parts.push_back(hexadecimal(parts.at(p)));
    }
    saved.cases.emplace(bits.id, std::move(bits));
  }
  return saved;
}

std::string against_text(const SavedBits& saved, const DeviceInfo& here) {
  const auto text = [](const std::string& device, const auto& libraries) {
    std::vector<std::string> words;
    for (const auto& [name, version] : libraries) words.push_back(fmt::format("{} {}", name, version));
    return visible(fmt::format("'{}' ({})", device, fmt::join(words, ", ")));
  };
  const std::string there = text(saved.device, saved.libraries), now = text(here.name, here.libraries);
  return there == now ? fmt::format("as before: saved on a device of this model with these libraries, {}", now)
                      : fmt::format("as before: saved on {}, here {}", there, now);
}

Repetition against(const std::map<std::string, CaseBits>& others, const CaseBits& now, std::string_view way) {
  Repetition repetition{std::string(way), Sameness::untested, ""};
  const auto found = others.find(now.id);
  if (found == others.end()) {
    repetition.text = "the case is not in it";
  } else if (found->second.seed != now.seed) {
    repetition.text = fmt::format("other data: seed {} there", found->second.seed);
  } else {
    repetition.text = visible(first_difference(found->second, now));
    repetition.outcome = repetition.text.empty() ? Sameness::same : Sameness::differs;
  }
  return repetition;
}

}  // namespace gpubench
