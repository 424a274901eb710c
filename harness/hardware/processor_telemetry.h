// Telemetry of the CPU: what its scheduler did to us while a round ran. A round in which others wanted the processors
// is told from a quiet one by these two numbers, where its times alone only look noisy.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "harness/core/telemetry.h"

namespace gpubench {

/// What the kernel has counted so far.
struct SchedulerReading {
  double time_s = 0.0;  ///< of a steady clock
  std::optional<std::int64_t> involuntary_switches;
  std::optional<double> waiting_s;  ///< in which some task of the machine waited for a processor
};

/// Seconds from /proc/pressure/cpu's "some ... total=" (microseconds; Linux, Documentation/accounting/psi). Nothing
/// where the text has none.
[[nodiscard]] std::optional<double> waiting_seconds(std::string_view pressure);

/// Now: getrusage() of this process with all its threads, and `pressure_file`.
[[nodiscard]] SchedulerReading read_scheduler(const std::string& pressure_file = "/proc/pressure/cpu");

/// Reads before and after each round, nothing in between.
[[nodiscard]] std::unique_ptr<Telemetry> watch_processors(std::function<SchedulerReading()> read = [] {
  return read_scheduler();
});

}  // namespace gpubench
