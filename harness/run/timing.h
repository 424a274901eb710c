#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "harness/core/record.h"
#include "harness/core/telemetry.h"
#include "harness/measure/protocol.h"
#include "harness/run/prepared_case.h"

namespace gpubench {

/// The plan of the case's next round; the record must have a batch. With state every warm-up has the same number of
/// runs, so that results of rounds can be compared.
[[nodiscard]] RoundPlan plan_of_round(const PreparedCase& prepared, const Protocol& protocol, const CaseRecord& record);

/// Runs one round and appends it to the record. The `first` in this process warms up, estimates the time of a run, and
/// sets the samples of a round and, if unset, the batch. State is restored before each round, so that updated values
/// stay finite.
///
/// A round whose clocks failed, or that the telemetry finds invalid (round_fault()), is repeated up to three times, the
/// latter after increasing rests; then it is kept with a note. Later rounds of such a case are kept at once, since its
/// device is permanently slow.
void time_round(PreparedCase& prepared, const Protocol& protocol, Telemetry& telemetry, CaseRecord& record, bool first);

/// Joules per run, from a window of at least 2 s without pauses, since rounds are often too short for the device's
/// counter. `record` must have its rounds and summary. Empty without an energy counter.
[[nodiscard]] std::optional<double> energy_of_window(PreparedCase& prepared, Telemetry& telemetry,
                                                     const CaseRecord& record);

/// Times each op alone in a small round; takes about one budget of the case. Empty for a program of one op.
[[nodiscard]] std::vector<OpShare> time_ops_alone(PreparedCase& prepared, const Protocol& protocol);

/// Nanoseconds of the step without its collectives. Empty for programs without collectives or with only collectives.
[[nodiscard]] std::optional<double> time_compute_only(PreparedCase& prepared, const Protocol& protocol);

/// Seconds since construction, by a steady clock.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace gpubench
