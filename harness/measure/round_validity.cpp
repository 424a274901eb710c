#include "harness/measure/round_validity.h"

#include <algorithm>

namespace gpubench {
namespace {

constexpr std::array throttling{clock_reason::hw_slowdown, clock_reason::hw_thermal_slowdown,
                                clock_reason::sw_thermal_slowdown, clock_reason::hw_power_brake};

bool has(const RoundTelemetry& telemetry, std::string_view reason) {
  return std::find(telemetry.reasons.begin(), telemetry.reasons.end(), reason) != telemetry.reasons.end();
}

bool throttled(const RoundTelemetry& telemetry) {
  return std::any_of(throttling.begin(), throttling.end(), [&](auto reason) { return has(telemetry, reason); });
}

bool has_new_errors(const RoundTelemetry& telemetry) { return telemetry.uncorrected_errors.value_or(0) > 0; }

}  // namespace

std::string round_fault(const RoundTelemetry& telemetry) {
  std::string fault;
  for (const std::string_view reason : throttling) {
    if (has(telemetry, reason)) fault += (fault.empty() ? "" : ", ") + std::string(reason);
  }
  if (has_new_errors(telemetry)) {
    fault += (fault.empty() ? "" : ", ") + std::to_string(*telemetry.uncorrected_errors) + " uncorrected memory error" +
             (*telemetry.uncorrected_errors == 1 ? "" : "s");
  }
  return fault;
}

std::vector<std::string> telemetry_flags(std::span<const RoundRecord> rounds) {
  const auto any = [&](const auto& holds) {
    return std::any_of(rounds.begin(), rounds.end(), [&](const RoundRecord& round) {
      return round.valid && round.telemetry && holds(*round.telemetry);
    });
  };
  std::vector<std::string> flags;
  if (any(throttled)) flags.emplace_back("throttled");
  if (any(has_new_errors)) flags.emplace_back("memory errors");
  if (any([](const RoundTelemetry& t) { return has(t, clock_reason::sw_power_cap); }))
    flags.emplace_back("power capped");
  if (std::any_of(rounds.begin(), rounds.end(), [](const RoundRecord& round) { return !round.valid; }))
    flags.emplace_back("invalid rounds");
  return flags;
}

std::optional<double> energy_per_run_j(std::span<const RoundRecord> rounds, double median_ns) {
  double joules = 0.0;
  double seconds = 0.0;
  for (const RoundRecord& round : rounds) {
    if (!round.valid || !round.telemetry || !round.telemetry->energy_j) continue;
    joules += *round.telemetry->energy_j;
    seconds += round.telemetry->window_s;
  }
  if (!(seconds > 0.0)) return std::nullopt;
  return joules / seconds * median_ns * 1e-9;
}

}  // namespace gpubench
