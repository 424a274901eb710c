// How a case is timed: presets, batch size, cold copies, the stopping rule, and which rounds must be run again. Pure
// functions; harness/measure/README.md says how they work together.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/backend.h"
#include "harness/core/case.h"
#include "harness/core/record.h"
#include "harness/measure/statistics.h"

namespace gpubench {

/// How long a case is measured. Tiers choose cases and presets rounds; each tier has a preset of its own. No preset
/// shares its name with a tier: "--tier quick --preset quick" would say little.
enum class Preset {
  minimal,  ///< 3 to 10 rounds of 3 short samples, until the timing is reliable: whether it runs at all
  brief,    ///< 3 to 10 rounds of 5, until the timing is reliable
  normal,   ///< 10 to 20 rounds of 10, until the interval is half a percent
  gate,     ///< 5 to 10 rounds of 10: one of several runs, for a regression gate
  thorough  ///< 20 to 40 rounds of 20, until the interval is a quarter of a percent: for publishing
};
template <>
inline constexpr auto enum_names<Preset> = std::to_array<std::string_view>({"minimal", "brief", "normal", "gate",
                                                                            "thorough"});
[[nodiscard]] Preset preset_of(Tier tier);

/// Rounds of a preset. Times in seconds.
struct Protocol {
  int min_rounds = 3;
  int max_rounds = 10;
  int samples = 5;               ///< per round, of a case for which the budget suffices
  int min_samples = 1;           ///< of any other
  double half_width = 0.2;       ///< stop once the 95% half-width of the mean log median is below; 0: never early
  double budget_s = 1.0;         ///< wall time per case
  double min_sample_s = 500e-6;  ///< T_min: a sample repeats the program until it is this long
  int first_warmup_calls = 2;
  double first_warmup_s = 0.020;
  int warmup_calls = 1;
  double warmup_s = 0.005;
  int locked_clock_mhz = 0;  ///< what the user locked the SM clock at; 0: it is free
};

[[nodiscard]] const Protocol& protocol_of(Preset preset);

/// Runs per sample: ceil(T_min / estimate) rounded up to a power of two, 1 to 4096; always 1 for CacheMode::step.
[[nodiscard]] std::int64_t batch_for(const Protocol& protocol, CacheMode cache, double estimate_s);

/// Samples per round: as many of `batch` runs as fit in half of the budget's share of a round, from min_samples to
/// samples.
[[nodiscard]] int samples_for(const Protocol& protocol, std::int64_t batch, double estimate_s);

/// Runs before the samples of a round: those that fill warmup_s, and warmup_calls at least. Where that is one, a run
/// of 20 times warmup_s needs none.
[[nodiscard]] int warmup_calls_for(const Protocol& protocol, double estimate_s);

/// Samples of an op that is timed alone, after a first run of this length: as many as a round has at least, at most 3;
/// none of an op whose first run was as long as ten.
[[nodiscard]] int samples_alone(const Protocol& protocol, double estimate_s);

/// Cold copies of a working set: 1 + floor(3 cache / bytes), at most 64 and at most a quarter of the free memory; 1 for
/// other cache modes, and where the working set is at least 3 caches.
[[nodiscard]] int copies_for(CacheMode cache, std::int64_t working_set_bytes, std::int64_t cache_bytes,
                             std::int64_t available_bytes);

/// Bytes of cases that are in memory together, so that their rounds take turns: at most 2 GiB and half of what is
/// available. Touching memory for the first time takes up to 2 s per GiB where a virtual machine gets it from its host,
/// so cases with a small budget share less.
[[nodiscard]] std::int64_t group_bytes_for(const Protocol& protocol, std::int64_t available_bytes);

/// Whether a case with these rounds is done, given the wall time it has used.
[[nodiscard]] bool settled(const Protocol& protocol, std::span<const RoundRecord> rounds, std::int64_t batch,
                           double spent_s);

/// Why a round with these readings must be run again: hardware slowdown, thermal slowdown by hardware or software,
/// power brake, a new uncorrected memory error, an error that the driver reports, a median SM clock that is more than
/// 1% off `locked_clock_mhz` (0: it is not locked). Empty for a round that stands; so does one with a power cap in
/// software, which is how the device is set up.
[[nodiscard]] std::string round_fault(const RoundTelemetry& telemetry, int locked_clock_mhz = 0);

/// Pauses before an invalid round is run again, in seconds. After the last one the round is kept and flagged: a device
/// that stays slow must not hold up the run forever.
inline constexpr std::array<double, 3> redo_pauses_s{0.5, 2.0, 5.0};

/// Flags for a summary from the rounds that are kept: "throttled", "memory errors", "device errors", "power capped",
/// "clock off" where one ran at another clock than the locked one, "clock unknown" where the clock should be locked and
/// was not reported, and "invalid rounds" where some have no times.
[[nodiscard]] std::vector<std::string> telemetry_flags(std::span<const RoundRecord> rounds, int locked_clock_mhz = 0);

/// Joules of one run of the program: the mean power of the rounds whose energy is known, times the median time of a
/// run. The counter also covers the warm-up; that does not matter for power, since the device does the same work there.
/// Empty where no window was long enough (2 s).
[[nodiscard]] std::optional<double> energy_per_run_j(std::span<const RoundRecord> rounds, double median_ns);

}  // namespace gpubench
