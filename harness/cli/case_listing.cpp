#include "harness/cli/case_listing.h"

#include <fmt/format.h>

#include <optional>

#include "harness/core/text/quantity.h"
#include "harness/report/json.h"
#include "harness/run/case_record.h"

namespace gpubench {

std::string cases_table(std::span<const PlannedCase> cases, const ConsoleStyle& style) {
  TextTable table(
      {{"case"}, {"tier"}, {"work", Align::right}, {"moves", Align::right}, {"memory", Align::right}, {"label"}});
  for (const PlannedCase& planned : cases) {
    table.add({planned.id(), std::string(name(planned.c.tier)), format_quantity(planned.cost.flop, "FLOP"),
               format_quantity(planned.cost.bytes, "B"), format_quantity(static_cast<double>(planned.bytes), "B"),
               planned.c.label});
  }
  return table.text(style);
}

Json cases_json(std::span<const PlannedCase> cases) {
  Json list = Json::array();
  for (const PlannedCase& planned : cases) {
    list.push_back({{"id", planned.id()},
                    {"suite", planned.c.suite},
                    {"workload", planned.c.workload},
                    {"recipe", planned.c.recipe},
                    {"tier", name(planned.c.tier)},
                    {"label", planned.c.label},
                    {"def_hash", definition_hash(planned)},
                    {"flop", planned.cost.flop},
                    {"bytes", planned.cost.bytes},
                    {"memory_bytes", planned.bytes}});
    if (planned.c.calls) list.back()["calls"] = *planned.c.calls;
  }
  return {{"cases", std::move(list)}};
}

std::string plan_text(std::span<const PlannedCase> cases, const Effort& effort, int cores, const ConsoleStyle& style) {
  TextTable table({{"case"}, {"about", Align::right}, {"memory", Align::right}, {"work", Align::right}, {"label"}});
  for (const PlannedCase& planned : cases) {
    const Estimate e = estimate(planned, effort, cores);
    table.add({planned.id(), format_duration(e.seconds), format_quantity(static_cast<double>(e.bytes), "B"),
               format_quantity(planned.cost.flop, "FLOP"), planned.c.label});
  }
  const Estimate all = estimate(cases, effort, cores);
  const std::string sum =
      fmt::format("{} cases, about {}, largest {}; nothing was run (--dry-run)", cases.size(),
                  format_duration(all.seconds), format_quantity(static_cast<double>(all.bytes), "B"));
  return table.text(style) + "\n" + fitted(sum, style.width, 0) + "\n";
}

namespace {

template <class T>
std::string told(const std::optional<T>& value) {
  return value ? fmt::format("{:.0f}", static_cast<double>(*value)) : "-";
}

template <class T, class U>
std::string of(const std::optional<T>& now, const std::optional<U>& most) {
  return !now && !most ? "-" : told(now) + "/" + told(most);
}

std::string on_or_off(const std::optional<bool>& value) { return !value ? "-" : *value ? "on" : "off"; }

std::string link(const std::optional<int>& generation, const std::optional<int>& width) {
  return !generation && !width ? "-" : fmt::format("{} x{}", told(generation), told(width));
}

std::string pcie(const GpuFacts& gpu) {
  const std::string now = link(gpu.pcie_generation, gpu.pcie_width);
  const std::string most = link(gpu.pcie_generation_max, gpu.pcie_width_max);
  return now == most ? now : now + " of " + most;
}

std::string reasons(const GpuFacts& gpu) {
  if (!gpu.now.reasons) return "-";
  const std::vector<std::string> words = clock_reasons(*gpu.now.reasons);
  return words.empty() ? "nothing" : joined(words);
}

}  // namespace

std::string gpu_table(const GpuSurvey& survey, const ConsoleStyle& style) {
  if (survey.gpus.empty()) return "";
  TextTable table(columns_titled(
      {"gpu>", "name", "memory>", "SM MHz>", "mem MHz>", "W>", "C>", "ECC", "MIG", "NVLink>", "PCIe", "held back by"}));
  for (const GpuFacts& gpu : survey.gpus) {
    table.add({fmt::format("{}", gpu.index), gpu.name.empty() ? "-" : gpu.name,
               gpu.memory_bytes ? format_quantity(static_cast<double>(*gpu.memory_bytes), "B") : "-",
               of(gpu.now.sm_mhz, gpu.max_sm_mhz), of(gpu.now.memory_mhz, gpu.max_memory_mhz),
               of(gpu.now.power_w, gpu.power_limit_w), told(gpu.now.temperature_c), on_or_off(gpu.ecc),
               on_or_off(gpu.mig), of(gpu.nvlinks_up, gpu.nvlinks), pcie(gpu), reasons(gpu)});
  }
  return table.text(style);
}

}  // namespace gpubench
