// Telemetry of rounds. A GPU's sensors are read before and after each round, and every 50 ms during it. On a CPU the
// scheduler's counters are read before and after: they reveal other work on the processors.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/core/backend.h"
#include "harness/core/telemetry.h"
#include "harness/hardware/nvml.h"

namespace gpubench {

/// Energy counters move about every 100 ms, so shorter windows would be noise.
inline constexpr double min_energy_window_s = 2.0;

/// Between two readings of a round.
inline constexpr double sensor_period_s = 0.050;

/// Summarizes the readings of a window. Clocks are those of readings with a busy device, if any.
[[nodiscard]] RoundTelemetry summarize_readings(std::span<const GpuReading> readings, double window_s);

/// Polls `read` on a separate thread during a round. `read` is called from that thread and the caller's, never
/// concurrently. `xids`: Nvml::watch_xids(), may be empty, as may `memory_errors`.
[[nodiscard]] std::unique_ptr<Telemetry> poll_sensors(std::function<GpuReading()> read, Nvml::XidEvents xids = {},
                                                      double period_s = sensor_period_s,
                                                      std::function<MemoryErrors()> memory_errors = {});

/// The telemetry of a backend's device. A CUDA device is found by its property "pci_bus_id" or "uuid"; else
/// NoTelemetry. On a CPU the scheduler is watched; other devices have none. Never throws for a missing or broken NVML
/// (doctor reports it). `library`: NVML's, for tests.
[[nodiscard]] std::unique_ptr<Telemetry> open_telemetry(const DeviceInfo& device,
                                                        const std::string& library = "libnvidia-ml.so.1");

/// The kernel's counters.
struct SchedulerReading {
  double time_s = 0.0;  ///< of a steady clock
  std::optional<std::int64_t> involuntary_switches;
  std::optional<double> waiting_s;  ///< in which some task of the machine waited for a processor
};

/// Seconds from /proc/pressure/cpu's "some ... total=" (microseconds; Linux, Documentation/accounting/psi). Empty if
/// the text has none.
[[nodiscard]] std::optional<double> waiting_seconds(std::string_view pressure);

/// getrusage() of this process with all threads, and `pressure_file`.
[[nodiscard]] SchedulerReading read_scheduler(const std::string& pressure_file = "/proc/pressure/cpu");

/// Reads before and after each round.
[[nodiscard]] std::unique_ptr<Telemetry> watch_processors(std::function<SchedulerReading()> read = [] {
  return read_scheduler();
});

}  // namespace gpubench
