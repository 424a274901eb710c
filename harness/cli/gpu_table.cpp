#include <fmt/format.h>

#include <optional>

#include "harness/cli/device.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/text_table.h"

namespace gpubench {
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
