#include "harness/measure/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace gpubench {
namespace {

constexpr std::array<Protocol, enum_values<Preset>.size()> protocols{
    {{3, 10, 3, 1, 0.2, 0.12, 200e-6, 1, 0.002, 1, 0.001},
     {3, 10, 5, 1, 0.2, 1.0, 500e-6, 1, 0.020, 1, 0.005},
     {10, 20, 10, 10, 0.005, 10.0, 500e-6, 5, 0.200, 3, 0.050},
     {5, 10, 10, 10, 0.005, 5.0, 500e-6, 5, 0.200, 3, 0.050},
     {20, 40, 20, 20, 0.0025, 60.0, 500e-6, 5, 0.200, 3, 0.050}}};

constexpr std::int64_t largest_batch = 4096;
constexpr std::int64_t max_copies = 64;
constexpr std::int64_t largest_group_bytes = std::int64_t{2} << 30U;
constexpr double group_bytes_per_budget_s = 4.0 * (std::int64_t{1} << 30U);

}  // namespace

Preset preset_of(Tier tier) {
  switch (tier) {
    case Tier::smoke: return Preset::minimal;
    case Tier::quick: return Preset::brief;
    case Tier::standard:
    case Tier::large: return Preset::normal;
  }
  return Preset::normal;
}

const Protocol& protocol_of(Preset preset) { return protocols.at(static_cast<std::size_t>(preset)); }

std::int64_t batch_for(const Protocol& protocol, CacheMode cache, double estimate_s) {
  if (cache == CacheMode::step) return 1;
  const double runs = std::ceil(protocol.min_sample_s / estimate_s);
  if (!(runs < static_cast<double>(largest_batch))) return largest_batch;  // also for an estimate of 0
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(runs, 1.0))));
}

int samples_for(const Protocol& protocol, std::int64_t batch, double estimate_s) {
  const double sample_s = static_cast<double>(batch) * estimate_s;
  const double affordable = 0.5 * protocol.budget_s / protocol.min_rounds / sample_s;
  if (!(affordable < protocol.samples)) return protocol.samples;  // also for an estimate of 0
  return std::max(static_cast<int>(affordable), protocol.min_samples);
}

int warmup_calls_for(const Protocol& protocol, double estimate_s) {
  constexpr double long_run = 20.0;  // in warm-ups
  constexpr double most = 1e6;
  if (protocol.warmup_calls <= 1 && estimate_s >= long_run * protocol.warmup_s) return 0;
  const double calls = estimate_s > 0.0 ? std::ceil(protocol.warmup_s / estimate_s) : 0.0;
  return static_cast<int>(std::clamp(calls, static_cast<double>(protocol.warmup_calls), most));
}

int samples_alone(const Protocol& protocol, double estimate_s) {
  constexpr double long_run = 10.0;  // in samples
  constexpr int most = 3;
  return estimate_s >= long_run * protocol.min_sample_s ? 0 : std::min(most, protocol.min_samples);
}

int copies_for(CacheMode cache, std::int64_t working_set_bytes, std::int64_t cache_bytes,
               std::int64_t available_bytes) {
  if (cache != CacheMode::cold || working_set_bytes <= 0 || working_set_bytes >= 3 * cache_bytes) return 1;
  const std::int64_t wanted = std::min(1 + 3 * cache_bytes / working_set_bytes, max_copies);
  const std::int64_t affordable = available_bytes / 4 / working_set_bytes;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(wanted, affordable)));
}

std::int64_t group_bytes_for(const Protocol& protocol, std::int64_t available_bytes) {
  const auto affordable_bytes = static_cast<std::int64_t>(protocol.budget_s * group_bytes_per_budget_s);
  return std::min({available_bytes / 2, largest_group_bytes, affordable_bytes});
}

bool settled(const Protocol& protocol, std::span<const RoundRecord> rounds, std::int64_t batch, double spent_s) {
  const std::vector<double> log_medians = log_round_medians(rounds, batch);
  const auto valid = static_cast<int>(log_medians.size());
  // A machine that invalidates every round must not keep a case running forever.
  const int spoiled = static_cast<int>(rounds.size()) - valid;
  if (valid >= protocol.max_rounds || spoiled >= 2 * protocol.min_rounds) return true;
  if (valid < protocol.min_rounds) return false;
  return spent_s >= protocol.budget_s ||
         (protocol.half_width > 0.0 && mean_half_width(log_medians) <= protocol.half_width);
}

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

// By more than 1%, in any reading of a round; also for NaN.
bool clock_is_off(const RoundTelemetry& telemetry, int locked_mhz) {
  constexpr double allowed = 0.01;
  return locked_mhz > 0 && telemetry.sm_mhz &&
         !(std::fabs(telemetry.sm_mhz->median - locked_mhz) <= allowed * locked_mhz);
}

}  // namespace

std::string round_fault(const RoundTelemetry& telemetry, int locked_clock_mhz) {
  std::vector<std::string> faults;
  for (const std::string_view reason : throttling) {
    if (has(telemetry, reason)) faults.emplace_back(reason);
  }
  if (has_new_errors(telemetry)) {
    const std::int64_t errors = *telemetry.uncorrected_errors;
    faults.push_back(fmt::format("{} uncorrected memory error{}", errors, errors == 1 ? "" : "s"));
  }
  faults.insert(faults.end(), telemetry.errors.begin(), telemetry.errors.end());
  if (clock_is_off(telemetry, locked_clock_mhz))
    faults.push_back(fmt::format("SM clock at {:.0f} MHz, locked at {}", telemetry.sm_mhz->median, locked_clock_mhz));
  return fmt::format("{}", fmt::join(faults, ", "));
}

std::vector<std::string> telemetry_flags(std::span<const RoundRecord> rounds, int locked_clock_mhz) {
  const auto any = [&](const auto& holds) {
    return std::any_of(rounds.begin(), rounds.end(), [&](const RoundRecord& round) {
      return round.valid && round.telemetry && holds(*round.telemetry);
    });
  };
  const auto lacks_clock = [](const RoundRecord& round) {
    return round.valid && !(round.telemetry && round.telemetry->sm_mhz);
  };
  std::vector<std::string> flags;
  if (any(throttled)) flags.emplace_back("throttled");
  if (any(has_new_errors)) flags.emplace_back("memory errors");
  if (any([](const RoundTelemetry& t) { return !t.errors.empty(); })) flags.emplace_back("device errors");
  if (any([](const RoundTelemetry& t) { return has(t, clock_reason::sw_power_cap); }))
    flags.emplace_back("power capped");
  if (any([=](const RoundTelemetry& t) { return clock_is_off(t, locked_clock_mhz); })) flags.emplace_back("clock off");
  if (locked_clock_mhz > 0 && std::any_of(rounds.begin(), rounds.end(), lacks_clock))
    flags.emplace_back("clock unknown");
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
