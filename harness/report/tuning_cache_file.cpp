#include "harness/report/tuning_cache_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "harness/core/backend.h"
#include "harness/core/file/atomic_file.h"
#include "harness/core/hash.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/json.h"
#include "harness/report/reader.h"

namespace gpubench {
namespace {

using Setting = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view schema = "gpubench-tuning";
constexpr std::int64_t schema_version = 1;
constexpr std::size_t max_choices = 20000;
constexpr ReadLimits limits{
    .bytes = std::size_t{16} << 20U, .depth = 2, .values = max_choices + 1000, .members = max_choices};

Setting facts_of(const TuningSetting& setting) {
  const DeviceInfo& device = setting.device;
  Setting facts{{"device", visible(device.name)},
                {"units", std::to_string(device.units)},
                {"compute_capability", property(device, device_property::compute_capability)}};
  for (const auto& [library, release] : device.libraries)
    facts.emplace_back("library " + visible(library), visible(release));
  facts.emplace_back("deterministic", setting.deterministic ? "yes" : "no");
  facts.emplace_back("gpubench", setting.tool_version);
  return facts;
}

// The device's name reduced to safe characters, and a hash of all facts.
std::string file_name(const DeviceInfo& device, const Setting& facts) {
  constexpr std::size_t longest = 40;
  std::string name;
  for (const char c : device.name.substr(0, longest)) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (upper || plain) {
      name += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  std::uint64_t number = hash(schema, schema_version);
  for (const auto& [fact, value] : facts) number = hash(value, hash(fact, number));
  return fmt::format("{}{}{:016x}.json", name, name.empty() || name.back() == '-' ? "" : "-", number);
}

void require_setting(const Node& node, const Setting& expected) {
  if (node.size() != expected.size()) node.refuse("is of another device or other libraries");
  for (const auto& [fact, value] : expected) {
    if (node.at(fact).text() != value) node.at(fact).refuse("differs from the value here");
  }
}

// For folders, pipes and devices: opening could block forever, and writing would not replace them.
bool is_no_file(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

// Empty without a file. Throws ReadError.
Choices read(const std::string& path, const Setting& setting) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const Json json = read_json_file(path, limits);
  const Node root(json, path);
  if (root.at("schema").text() != schema) root.at("schema").refuse(fmt::format("is not {}", schema));
  (void)root.at("schema_version").integer(schema_version, schema_version);
  require_setting(root.at("setting"), setting);
  const Node list = root.at("choices");
  Choices choices;
  for (const auto& [key, implementation] : list.members()) choices[key] = implementation.text();
  return choices;
}

std::string text_of(const Setting& setting, const Choices& choices) {
  Json facts = Json::object();
  for (const auto& [fact, value] : setting) facts[fact] = value;
  Json list = Json::object();
  for (const auto& [key, implementation] : choices) list[key] = implementation;
  return dump({{"schema", schema}, {"schema_version", schema_version}, {"setting", facts}, {"choices", list}}, 1) +
         "\n";
}

}  // namespace

TuningCacheFile::TuningCacheFile(const std::string& folder, const TuningSetting& setting)
    : folder_(folder),
      setting_(facts_of(setting)),
      path_((std::filesystem::path(folder) / file_name(setting.device, setting_)).string()) {
  if (is_no_file(path_)) {
    writable_ = false;
    complaint_ = fmt::format("choices are not stored: {} is not a regular file", visible(path_));
    return;
  }
  try {
    choices_ = read(path_, setting_);
  } catch (const ReadError& e) {
    complaint_ = fmt::format("choices of earlier runs are ignored: {}", e.what());
  }
}

std::string TuningCacheFile::recall(const std::string& key) const {
  const auto found = choices_.find(key);
  return found == choices_.end() ? std::string() : found->second;
}

void TuningCacheFile::keep(const Choices& choices) {
  bool news = false;
  for (const auto& [key, implementation] : choices) {
    news = news || recall(key) != implementation;
    choices_[key] = own_[key] = implementation;
  }
  if (news && writable_) save();
}

void TuningCacheFile::save() {
  try {
    make_folder(folder_);
    Choices all;
    try {
      all = read(path_, setting_);
    } catch (const ReadError&) {
      // An invalid file was reported on reading and is replaced now.
    }
    for (const auto& [key, implementation] : own_) all[key] = implementation;
    choices_ = all.size() <= max_choices ? std::move(all) : own_;
    if (choices_.size() <= max_choices) write_atomically(path_, text_of(setting_, choices_), {.replace = true});
  } catch (const std::exception& e) {
    writable_ = false;
    complaint_ = fmt::format("choices are not stored: {}", e.what());
  }
}

std::string TuningCacheFile::take_complaint() { return std::exchange(complaint_, std::string()); }

std::string default_tuning_folder(std::string_view xdg_cache_home, std::string_view home) {
  if (xdg_cache_home.starts_with("/")) return (std::filesystem::path(xdg_cache_home) / "gpubench").string();
  if (home.starts_with("/")) return (std::filesystem::path(home) / ".cache" / "gpubench").string();
  return {};
}

}  // namespace gpubench
