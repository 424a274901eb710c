// Whether a round's numbers say what the device can do, or only how it was held back.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/core/record.h"

namespace gpubench {

/// Why a round with these readings must be run again: hardware slowdown, thermal slowdown by hardware or software,
/// power brake, a new uncorrected memory error, an error that the driver reports, a median SM clock that is more than
/// 1% off `locked_clock_mhz` (0: it is not locked). Empty for a round that stands; a power cap in software stands, for
/// it is how the device is set up.
[[nodiscard]] std::string round_fault(const RoundTelemetry& telemetry, int locked_clock_mhz = 0);

/// Pauses before an invalid round is run again, in seconds. After the last one the round is kept and flagged: a device
/// that stays slow must not hold up the run for ever.
inline constexpr std::array<double, 3> redo_pauses_s{0.5, 2.0, 5.0};

/// Flags for a summary from the rounds that are kept: "throttled", "memory errors", "device errors", "power capped",
/// "clock off" where one ran at another clock than it was locked at, "clock unknown" where one did not tell its clock
/// although it should be locked, and "invalid rounds" where some have no times.
[[nodiscard]] std::vector<std::string> telemetry_flags(std::span<const RoundRecord> rounds, int locked_clock_mhz = 0);

/// Joules of one run of the program: the mean power of the rounds whose energy is known, times the median time of a
/// run. The counter also saw the warm-up; power does not mind, since the device did the same work then. Empty where no
/// window was long enough (2 s).
[[nodiscard]] std::optional<double> energy_per_run_j(std::span<const RoundRecord> rounds, double median_ns);

}  // namespace gpubench
