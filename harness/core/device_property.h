// Names of the properties of a device (DeviceInfo::properties) that others than printers read. A backend fills in what
// it knows; who reads one must do without it.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "harness/core/backend.h"

namespace gpubench {

namespace device_property {
inline constexpr std::string_view compute_capability = "compute_capability";  ///< "9.0"
inline constexpr std::string_view pci_bus_id = "pci_bus_id";                  ///< "0000:18:00.0"
inline constexpr std::string_view uuid = "uuid";                              ///< "GPU-...", as NVML writes it
inline constexpr std::string_view max_sm_mhz = "max_sm_mhz";
inline constexpr std::string_view max_memory_mhz = "max_memory_mhz";
inline constexpr std::string_view memory_bus_bits = "memory_bus_bits";
inline constexpr std::string_view power_limit_w = "power_limit_w";
inline constexpr std::string_view ecc = "ecc";        ///< "on", "off"
inline constexpr std::string_view mig = "mig";        ///< likewise
inline constexpr std::string_view driver = "driver";  ///< "580.65.06"
/// What of a CPU's instruction sets is passed over, "limited to avx512_core_bf16", and why; missing where nothing is.
inline constexpr std::string_view cpu_isa = "cpu_isa";
inline constexpr std::string_view cpu_isa_reason = "cpu_isa_reason";
}  // namespace device_property

/// The property's text; empty where the device has none of that name.
[[nodiscard]] inline std::string property(const DeviceInfo& device, std::string_view name) {
  for (const auto& [key, value] : device.properties) {
    if (key == name) return value;
  }
  return "";
}

/// "cpu isa limited to avx512_core_bf16: amx is announced, but CPUID leaf 0x1D is empty"; empty where nothing is
/// limited.
[[nodiscard]] inline std::string cpu_isa_text(const DeviceInfo& device) {
  const std::string isa = property(device, device_property::cpu_isa);
  return isa.empty() ? "" : "cpu isa " + isa + ": " + property(device, device_property::cpu_isa_reason);
}

/// The property as a positive number; empty where it is missing or is not one.
[[nodiscard]] inline std::optional<double> property_number(const DeviceInfo& device, std::string_view name) {
  const std::string text = property(device, name);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value > 0.0 && value < 1e300 ? std::optional(value) : std::nullopt;
}

}  // namespace gpubench
