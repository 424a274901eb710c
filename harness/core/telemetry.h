// Sensor readings of a device during each round: a device slowed down by heat or power gives numbers that look valid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// Why a device's clocks are reduced, in the words of reports.
namespace clock_reason {
inline constexpr std::string_view idle = "idle";
inline constexpr std::string_view application_clocks = "application_clocks";
inline constexpr std::string_view sw_power_cap = "sw_power_cap";
inline constexpr std::string_view hw_slowdown = "hw_slowdown";
inline constexpr std::string_view sync_boost = "sync_boost";
inline constexpr std::string_view sw_thermal_slowdown = "sw_thermal_slowdown";
inline constexpr std::string_view hw_thermal_slowdown = "hw_thermal_slowdown";
inline constexpr std::string_view hw_power_brake = "hw_power_brake";
inline constexpr std::string_view display_clocks = "display_clocks";
}  // namespace clock_reason

struct Spread {
  double min = 0.0;
  double median = 0.0;
  double max = 0.0;
};

/// Readings of one round. Empty if the device does not report a quantity.
struct RoundTelemetry {
  int readings = 0;
  double window_s = 0.0;  ///< from the first reading to the last
  std::optional<Spread> sm_mhz;
  std::optional<Spread> memory_mhz;
  std::optional<double> temperature_c;               ///< the highest
  std::optional<double> power_w;                     ///< mean of the readings of this round alone
  std::optional<double> energy_j;                    ///< by the device's counter, for windows of 2 s or more
  std::optional<std::int64_t> uncorrected_errors;    ///< of memory (ECC), new in this round
  std::optional<std::int64_t> involuntary_switches;  ///< of threads of this process, preempted by the kernel
  std::optional<double> cpu_pressure;  ///< share of the window in which some task of the machine waited for a processor
  std::vector<std::string> reasons;    ///< of clock_reason, of all readings
  int rejected = 0;                    ///< invalid rounds that this one replaces
  std::vector<std::string> errors{};   ///< Telemetry::take_errors() of this round
};

/// Memory errors (ECC) since the driver was loaded.
struct MemoryErrors {
  std::optional<std::int64_t> corrected, uncorrected;
};

/// Reads a device's sensors around a round. One round at a time.
class Telemetry {
 public:
  virtual ~Telemetry() = default;
  virtual void begin_round() = 0;
  /// Ends the round and returns its readings; nothing if the device has no sensors.
  [[nodiscard]] virtual std::optional<RoundTelemetry> end_round() = 0;
  /// Critical errors reported by the driver since the last call: "Xid 79 (GPU has fallen off the bus)".
  [[nodiscard]] virtual std::vector<std::string> take_errors() { return {}; }
  /// Empty if the device does not count them.
  [[nodiscard]] virtual MemoryErrors memory_errors() { return {}; }
  /// Whether longer windows may give energy if short ones do not.
  [[nodiscard]] virtual bool counts_energy() const { return false; }
  /// Leaves the device idle to cool down or to regain power.
  virtual void rest(double seconds) = 0;
};

class NoTelemetry final : public Telemetry {
 public:
  void begin_round() override {}
  [[nodiscard]] std::optional<RoundTelemetry> end_round() override { return std::nullopt; }
  void rest(double /*seconds*/) override {}
};

}  // namespace gpubench
