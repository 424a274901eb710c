// Timing of a case: presets, batch size, cold copies, the stopping rule, and rounds to repeat. Pure functions,
// described in harness/measure/README.md.
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

/// The length of a measurement: tiers choose cases, presets choose rounds, and each tier has a preset. Names of presets
/// and tiers are disjoint.
enum class Preset {
  minimal,  ///< 3 to 10 rounds of 3 short samples, until the timing is reliable: a smoke test
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
  int samples = 5;               ///< per round, if the budget suffices
  int min_samples = 1;           ///< otherwise
  double half_width = 0.2;       ///< stop when the 95% half-width of the mean log median is below this; 0: never early
  double budget_s = 1.0;         ///< wall time per case
  double min_sample_s = 500e-6;  ///< T_min: a sample repeats the program until it is this long
  int first_warmup_calls = 2;
  double first_warmup_s = 0.020;
  int warmup_calls = 1;
  double warmup_s = 0.005;
  int locked_clock_mhz = 0;  ///< the user's locked SM clock; 0: not locked
};

[[nodiscard]] const Protocol& protocol_of(Preset preset);

/// Runs per sample: ceil(T_min / estimate) rounded up to a power of two, 1 to 4096; always 1 for CacheMode::step.
[[nodiscard]] std::int64_t batch_for(const Protocol& protocol, CacheMode cache, double estimate_s);

/// Samples per round: as many of `batch` runs as fit in half of the budget's share of a round, from min_samples to
/// samples.
[[nodiscard]] int samples_for(const Protocol& protocol, std::int64_t batch, double estimate_s);

/// Warm-up runs of a round: enough to fill warmup_s, at least warmup_calls. If that is one, a run of 20 times warmup_s
/// needs none.
[[nodiscard]] int warmup_calls_for(const Protocol& protocol, double estimate_s);

/// Samples of an op that is timed alone, after a first run of this length: min_samples, at most 3; none if the first
/// run was as long as ten.
[[nodiscard]] int samples_alone(const Protocol& protocol, double estimate_s);

/// Cold copies of a working set: 1 + floor(3 cache / bytes), at most 64 and at most a quarter of the free memory; 1 for
/// other cache modes, and for working sets of at least 3 caches.
[[nodiscard]] int copies_for(CacheMode cache, std::int64_t working_set_bytes, std::int64_t cache_bytes,
                             std::int64_t available_bytes);

/// Bytes of cases in memory together, whose rounds take turns: at most 2 GiB and half of the available memory. First
/// touch takes up to 2 s per GiB in a virtual machine, so cases with a small budget share less.
[[nodiscard]] std::int64_t group_bytes_for(const Protocol& protocol, std::int64_t available_bytes);

/// Whether a case with these rounds is done, given its wall time so far.
[[nodiscard]] bool settled(const Protocol& protocol, std::span<const RoundRecord> rounds, std::int64_t batch,
                           double spent_s);

/// Why a round must be repeated: hardware slowdown, thermal slowdown by hardware or software, power brake, a new
/// uncorrected memory error, an error of the driver, a median SM clock more than 1% off `locked_clock_mhz` (0: not
/// locked). Empty for a valid round, also with a software power cap, which is configuration.
[[nodiscard]] std::string round_fault(const RoundTelemetry& telemetry, int locked_clock_mhz = 0);

/// Pauses before an invalid round is repeated, in seconds. After the last one the round is kept and flagged: a device
/// that stays slow must not block the run.
inline constexpr std::array<double, 3> redo_pauses_s{0.5, 2.0, 5.0};

/// Flags of a summary from the kept rounds: "throttled", "memory errors", "device errors", "power capped", "clock off"
/// (a round at another clock than the locked one), "clock unknown" (locked but not reported), and "invalid rounds"
/// (some without times).
[[nodiscard]] std::vector<std::string> telemetry_flags(std::span<const RoundRecord> rounds, int locked_clock_mhz = 0);

/// Joules of one run of the program: mean power of the rounds with known energy, times the median time of a run. The
/// counter includes the warm-up, which does the same work. Empty if no window was long enough (2 s).
[[nodiscard]] std::optional<double> energy_per_run_j(std::span<const RoundRecord> rounds, double median_ns);

}  // namespace gpubench
