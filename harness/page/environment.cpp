#include "harness/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "harness/core/text/quantity.h"
#include "harness/core/text/text_table.h"
#include "harness/measure/statistics.h"
#include "harness/report/console.h"
#include "harness/report/record_text.h"

namespace gpubench::page {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

constexpr std::uint64_t default_seed = 42;
constexpr std::string_view default_check = "sample";

void add_if(Facts& facts, const std::string& key, const std::string& value) {
  if (!value.empty()) facts.emplace_back(key, value);
}

/// The command line, variables, and settings other than the defaults.
Facts settings_of(const Report& report) {
  const RunContext& run = report.run;
  Facts facts;
  add_if(facts, "command line", joined(run.argv, " "));
  for (const auto& [name, value] : run.env) facts.emplace_back("variable " + name, value.empty() ? "(empty)" : value);
  if (run.seed != default_seed) facts.emplace_back("seed", fmt::format("{}, not {}", run.seed, default_seed));
  if (run.check != default_check) facts.emplace_back("check", fmt::format("{}, not {}", run.check, default_check));
  if (run.deterministic.value_or(false))
    facts.emplace_back("deterministic", "only implementations that give the same bits each time");
  add_if(facts, "accepted arithmetic", joined(run.arithmetic));
  if (run.locked_clock_mhz > 0) facts.emplace_back("SM clock", fmt::format("locked at {} MHz", run.locked_clock_mhz));
  add_if(facts, "injected fault", run.injected);
  return facts;
}

Facts run_of(const Report& report) {
  const RunContext& run = report.run;
  Facts facts;
  add_if(facts, "suites", joined(run.suites));
  add_if(facts, "tier", run.tier);
  add_if(facts, "preset", run.preset);
  add_if(facts, "check", run.check);
  facts.emplace_back("seed", fmt::format("{}", run.seed));
  facts.emplace_back("started", day_and_minute(run.started_at));
  const double seconds = std::difftime(run.finished_at, run.started_at);  // both are whole seconds
  facts.emplace_back("took", seconds > 0.0 ? format_duration(seconds) : "under 1 s");
  facts.emplace_back("complete", run.complete ? "yes" : "no, interrupted");
  add_if(facts, "invocation", run.invocation);
  return facts;
}

std::string bytes_text(std::int64_t bytes) { return format_quantity(static_cast<double>(bytes), "B"); }

Facts device_of(const Report& report) {
  Facts facts;
  std::size_t number = 0;
  for (const DeviceInfo& device : report.run.devices) {
    const std::string before = report.run.devices.size() > 1 ? fmt::format("{}: ", number++) : "";
    facts.emplace_back(before + "name", device.name);
    facts.emplace_back(before + "kind", device.kind);
    facts.emplace_back(before + (device.kind == "cpu" ? "threads" : "units"), fmt::format("{}", device.units));
    if (device.memory_bytes > 0) facts.emplace_back(before + "memory", bytes_text(device.memory_bytes));
    if (device.available_bytes > 0)
      facts.emplace_back(before + "memory free at the start", bytes_text(device.available_bytes));
    if (device.cache_bytes > 0)
      facts.emplace_back(before + "cache, as counted for cold copies", bytes_text(device.cache_bytes));
    for (const auto& [key, value] : device.properties) facts.emplace_back(before + key, value);
  }
  return facts;
}

struct Quantity {
  const char* name;
  const char* unit;  ///< as written after a number
  std::optional<Spread> (*of)(const RoundTelemetry&);
};

std::optional<Spread> single(const std::optional<double>& value) {
  return value ? std::optional(Spread{*value, *value, *value}) : std::nullopt;
}

constexpr Quantity quantities[] = {
    {"SM clock", " MHz", [](const RoundTelemetry& t) { return t.sm_mhz; }},
    {"memory clock", " MHz", [](const RoundTelemetry& t) { return t.memory_mhz; }},
    {"power", " W", [](const RoundTelemetry& t) { return single(t.power_w); }},
    {"temperature", " °C", [](const RoundTelemetry& t) { return single(t.temperature_c); }},
    {"waiting for a processor", "%",
     [](const RoundTelemetry& t) {
       const std::optional<double>& share = t.cpu_pressure;
       return single(share ? std::optional(100.0 * *share) : share);
     }},
};

std::vector<const RoundTelemetry*> readings_of(const Report& report) {
  std::vector<const RoundTelemetry*> readings;
  for (const CaseRecord& record : report.cases) {
    if (record.verdict != Verdict::pass) continue;
    for (const RoundRecord& round : record.rounds) {
      if (round.telemetry) readings.push_back(&*round.telemetry);
    }
  }
  return readings;
}

// Sensor readings over the rounds: "1980 MHz, 1755 to 1980".
Facts rounds_of(const Report& report) {
  const std::vector<const RoundTelemetry*> readings = readings_of(report);
  Facts facts;
  for (const Quantity& quantity : quantities) {
    std::vector<double> middles;
    std::optional<Spread> all;
    for (const RoundTelemetry* t : readings) {
      const std::optional<Spread> one = quantity.of(*t);
      if (!one) continue;
      if (!all) all = *one;
      all->min = std::min(all->min, one->min);
      all->max = std::max(all->max, one->max);
      middles.push_back(one->median);
    }
    if (!all) continue;
    facts.emplace_back(quantity.name,
                       fmt::format("{:.4g}{}, {:.4g} to {:.4g}", median(middles), quantity.unit, all->min, all->max));
  }
  std::map<std::string, int> lowered;
  int rejected = 0;
  for (const RoundTelemetry* t : readings) {
    rejected += t->rejected;
    for (const std::string& reason : t->reasons) {
      if (reason != clock_reason::idle) ++lowered[reason];
    }
  }
  for (const auto& [reason, rounds] : lowered)
    facts.emplace_back("clocks lower: " + reason, fmt::format("in {} of {} rounds", rounds, readings.size()));
  if (rejected > 0) facts.emplace_back("rounds run again", fmt::format("{}", rejected));
  return facts;
}

Facts software_of(const Report& report) {
  Facts facts;
  add_if(facts, "gpubench", report.run.tool_version);
  for (const auto& [key, value] : report.run.build) add_if(facts, "build " + key, value);
  for (const DeviceInfo& device : report.run.devices) {
    if (!device.libraries.empty()) facts.emplace_back("libraries", libraries_text(device));
  }
  return facts;
}

Facts host_of(const Report& report) {
  const HostContext& host = report.host;
  Facts facts;
  add_if(facts, "name", host.host_name);
  facts.emplace_back("processors", fmt::format("{}", host.num_cpus));
  if (host.mhz_per_cpu > 0) facts.emplace_back("clock", fmt::format("{} MHz", host.mhz_per_cpu));
  facts.emplace_back("frequency scaling", host.cpu_scaling_enabled ? "on" : "off");
  for (const CacheContext& cache : host.caches)
    facts.emplace_back(fmt::format("cache level {} {}", cache.level, cache.type),
                       fmt::format("{}, shared by {}", bytes_text(cache.bytes), cache.sharing));
  std::string loads;
  for (const double load : host.load_avg) loads += fmt::format("{}{:.2f}", loads.empty() ? "" : ", ", load);
  add_if(facts, "load at the start", loads);
  return facts;
}

std::string value_of(const Facts& facts, const std::string& key) {
  const auto found = std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == key; });
  return found == facts.end() ? "-" : found->second;
}

void add_group(Html& html, std::span<const Side> sides, std::string_view title, Facts (*facts_of)(const Report&)) {
  std::vector<Facts> columns;
  std::vector<std::string> keys;
  for (const Side& side : sides) {
    columns.push_back(facts_of(*side.report));
    for (const auto& [key, value] : columns.back()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  if (keys.empty()) return;
  html.raw("<div class=\"facts-group\">").element("h3", title);
  html.raw("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"")
      .text(title)
      .raw("\"><table class=\"facts-table\">");
  if (sides.size() > 1) {
    html.raw("<thead><tr><td></td>");
    for (const Side& side : sides) html.element("th", side.letter, "scope=\"col\"");
    html.raw("<td></td></tr></thead>");
  }
  html.raw("<tbody>\n");
  for (const std::string& key : keys) {
    html.raw("<tr>").element("th", key, "scope=\"row\"");
    bool same = true;
    for (const Facts& facts : columns) {
      html.element("td", value_of(facts, key));
      same = same && value_of(facts, key) == value_of(columns.front(), key);
    }
    if (sides.size() > 1) html.element("td", same ? "" : "differs", same ? "" : "class=\"differs\"");
    html.raw("</tr>\n");
  }
  html.raw("</tbody></table></div></div>\n");
}

// "132 SMs, 141 GB of memory, driver 580.65.06, cublaslt 13.1"; after the device's name if `named`.
std::string device_line(const DeviceInfo& device, bool named) {
  std::vector<std::string> parts;
  if (named) parts.push_back(device.name);
  parts.push_back(units_text(device));
  if (device.memory_bytes > 0) parts.push_back(bytes_text(device.memory_bytes) + " of memory");
  const std::string driver = property(device, device_property::driver);
  if (!driver.empty()) parts.push_back("driver " + driver);
  if (!device.libraries.empty()) parts.push_back(libraries_text(device));
  return joined(parts);
}

std::vector<std::string> machine_lines(const Report& report) {
  const RunContext& run = report.run;
  const HostContext& host = report.host;
  const bool named = run.devices.size() > 1;
  std::vector<std::string> lines;
  for (const auto& same : grouped(run.devices, [&](const DeviceInfo& device) { return device_line(device, named); }))
    lines.push_back(same.items.size() > 1 ? fmt::format("{} x {}", same.items.size(), same.key) : same.key);
  lines.push_back(fmt::format("host {}{}{}", host.host_name, host.host_name.empty() ? "of " : ", ",
                              counted(static_cast<std::size_t>(host.num_cpus), "processor")));
  lines.push_back(fmt::format("{}, tier {}, gpubench {}", day_and_minute(run.started_at), run.tier, run.tool_version));
  return lines;
}

}  // namespace

void add_machine(Html& html, std::span<const Side> sides) {
  html.raw("<h2>Machine</h2>\n<ul>\n");
  for (const Side& side : sides) {
    std::string called = side.letter.empty() ? "" : side.called();
    for (const std::string& line : machine_lines(*side.report)) {
      html.raw("<li>");
      if (!called.empty()) html.element("b", std::exchange(called, "")).raw(" ");
      html.text(line).raw("</li>\n");
    }
  }
  html.raw("</ul>\n");
}

void add_environment(Html& html, const Material& material) {
  html.raw("<div class=\"environment\">\n");
  add_group(html, material.sides, "Set for this run", settings_of);
  add_group(html, material.sides, "Run", run_of);
  add_group(html, material.sides, "Device", device_of);
  add_group(html, material.sides, "While it measured", rounds_of);
  add_group(html, material.sides, "Software", software_of);
  add_group(html, material.sides, "Host", host_of);
  html.raw("</div>\n");
}

}  // namespace gpubench::page
