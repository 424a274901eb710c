#include "harness/report/anonymize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <sstream>

#include "harness/core/backend.h"
#include "harness/report/identifying_text.h"

namespace gpubench {
namespace {

using Words = std::vector<std::string>;

// Properties of a device that are the same for all of its kind, or set by whoever runs it.
constexpr std::string_view kept_properties[] = {"threads",
                                                "instruction_sets",
                                                "own_kernels",
                                                "ordinal",
                                                "l2_bytes",
                                                "driver_cuda",
                                                "ranks",
                                                device_property::compute_capability,
                                                device_property::max_sm_mhz,
                                                device_property::max_memory_mhz,
                                                device_property::memory_bus_bits,
                                                device_property::power_limit_w,
                                                device_property::ecc,
                                                device_property::mig,
                                                device_property::driver,
                                                device_property::cpu_isa,
                                                device_property::cpu_isa_reason};

// Flags that choose and measure: with a value, without one, and with one that is a file or a folder.
constexpr std::string_view valued_flags[] = {
    "--suite",  "--tier",     "--filter", "--exclude",      "--precision",       "--batch",       "--launch",
    "--fuse",   "--ranks",    "--gpus",   "--axis",         "--preset",          "--seed",        "--isolate",
    "--device", "--deadline", "--check",  "--locked-clock", "--inject-slowdown", "--inject-error"};
constexpr std::string_view switches[] = {"--virtual-ranks", "--dry-run",         "--deterministic",
                                         "--energy",        "--trust-libraries", "--anonymize"};
constexpr std::string_view file_flags[] = {"--pin", "--like", "--tuning-cache"};

constexpr std::string_view flag_variable_prefix = "GPUBENCH_";

bool one_of(std::span<const std::string_view> known, std::string_view word) {
  return std::find(known.begin(), known.end(), word) != known.end();
}

std::string flag_of(std::string_view variable) {
  std::string flag = "--";
  for (const char c : variable.substr(flag_variable_prefix.size())) flag += c == '_' ? '-' : lower_case(c);
  return flag;
}

Words words_of(const std::string& line) {
  std::istringstream text(line);
  return {std::istream_iterator<std::string>(text), {}};
}

}  // namespace

Anonymizer::Anonymizer(const HashKey& key, const Report& report, Words users) : key_(key) {
  const std::string& host = report.host.host_name;
  know("host", host);
  if (const std::size_t dot = host.find('.'); dot > 0 && dot != std::string::npos)
    names_.emplace_back(host.substr(0, dot), alias("host", host));
  for (const DeviceInfo& device : report.run.devices) {
    know("gpu", gpubench::property(device, device_property::uuid));
    know("bus", gpubench::property(device, device_property::pci_bus_id));
  }
  know_users_in(report.host.executable);
  for (const std::string& word : report.run.argv) know_users_in(word);
  for (const auto* pairs : {&report.run.build, &report.run.env}) {
    for (const auto& [name, value] : *pairs) know_users_in(value);
  }
  for (const std::string& user : users) {
    if (user != "root") know("user", user);
  }
  std::stable_sort(names_.begin(), names_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

std::string Anonymizer::alias(std::string_view kind, std::string_view name) const {
  return fmt::format("{}-{:016x}", kind, keyed_hash(key_, fmt::format("{} {}", kind, name)));
}

void Anonymizer::know(std::string_view kind, const std::string& name) {
  if (!name.empty()) names_.emplace_back(name, alias(kind, name));
}

void Anonymizer::know_users_in(std::string_view text) {
  for (const std::string_view homes : {"/home/", "/Users/"}) {
    for (std::size_t at = text.find(homes); at != std::string_view::npos; at = text.find(homes, at)) {
      at += homes.size();
      const std::string_view rest = text.substr(at);
      know("user",
           std::string(rest.substr(0, length_of(rest, [](char c) { return in_word(c) || c == '-' || c == '.'; }))));
    }
  }
}

std::string Anonymizer::text(std::string_view text) const {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const bool begins = at == 0 || !in_word(text[at - 1]);
    const auto named = std::find_if(names_.begin(), names_.end(),
                                    [&](const auto& one) { return begins && starts_with_name(rest, one.first); });
    std::size_t size = 1;
    std::string instead(rest.substr(0, 1));
    if (named != names_.end()) {
      size = named->first.size();
      instead = named->second;
    } else if (const Identifying found = identifying_at(text, at); found.size > 0) {
      size = found.size;
      instead = alias(found.kind, rest.substr(0, size));
    }
    result += instead;
    at += size;
  }
  return result;
}

Words Anonymizer::command(const Words& words) const {
  Words kept;
  std::size_t at = 0;
  for (; at < words.size() && (words[at] == "gpubench" || words[at] == "run" || words[at] == "calibrate"); ++at)
    kept.push_back(words[at]);
  while (at < words.size()) {
    const std::string& word = words[at++];
    const std::size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    if (one_of(switches, word)) kept.push_back(word);
    const bool is_file = one_of(file_flags, flag);
    if (!is_file && !one_of(valued_flags, flag)) continue;
    const bool assigned = equals != std::string::npos;
    if (!assigned && at == words.size()) break;
    const std::string given = assigned ? word.substr(equals + 1) : words[at++];
    const std::string shown = is_file ? (given == "off" ? given : path(given)) : text(given);
    if (assigned) {
      kept.push_back(fmt::format("{}={}", flag, shown));
    } else {
      kept.insert(kept.end(), {flag, shown});
    }
  }
  return kept;
}

std::string Anonymizer::variable(const std::string& name, const std::string& value) const {
  if (name.starts_with(flag_variable_prefix)) {
    const std::string flag = flag_of(name);
    if (one_of(switches, flag)) return is_common_value(value) ? value : alias("value", value);
    const Words kept = command({flag, value});
    return kept.empty() ? alias("value", value) : kept.back();
  }
  if (is_common_value(value)) return value;
  if (name != "CUDA_VISIBLE_DEVICES") return alias("value", value);
  Words devices;
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t comma = std::min(value.find(',', at), value.size());
    const std::string device = value.substr(at, comma - at);
    devices.push_back(is_common_value(device) ? device : alias("gpu", device));
    at = comma + 1;
  }
  return fmt::format("{}", fmt::join(devices, ","));
}

std::string Anonymizer::property(const std::string& name, const std::string& value) const {
  if (name == device_property::uuid) return alias("gpu", value);
  if (name == device_property::pci_bus_id) return alias("bus", value);
  return one_of(kept_properties, name) ? text(value) : alias("value", value);
}

void Anonymizer::context(Report& report) const {
  report.host.host_name = alias("host", report.host.host_name);
  report.host.executable = "gpubench";
  RunContext& run = report.run;
  for (auto& [name, value] : run.build) value = text(value);
  run.argv = command(run.argv);
  for (auto& [name, value] : run.env) value = variable(name, value);
  for (DeviceInfo& device : run.devices) {
    device.name = text(device.name);
    for (auto& [name, value] : device.properties) value = property(name, value);
    for (auto& [name, value] : device.libraries) value = text(value);
  }
}

void Anonymizer::record(CaseRecord& record) const {
  record.reason = text(record.reason);
  for (OpParity& op : record.parity.ops) op.reason = text(op.reason);
  for (RoundRecord& round : record.rounds) round.note = text(round.note);
  record.rerun = fmt::format("{}", fmt::join(command(words_of(record.rerun)), " "));
}

Report anonymized(Report report, const HashKey& key, Words users) {
  const Anonymizer anonymizer(key, report, std::move(users));
  anonymizer.context(report);
  for (CaseRecord& record : report.cases) anonymizer.record(record);
  return report;
}

}  // namespace gpubench
