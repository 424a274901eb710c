// Timing of one prepared case: its first estimate, its rounds, and its ops one by one.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "harness/core/record.h"
#include "harness/core/telemetry.h"
#include "harness/measure/protocol.h"
#include "harness/run/prepared_case.h"

namespace gpubench {

/// The plan of the case's next round, once it has a batch. With state every warm-up has the same number of runs, so
/// that rounds can be compared with each other.
[[nodiscard]] RoundPlan plan_of_round(const PreparedCase& prepared, const Protocol& protocol, const CaseRecord& record);

/// Runs one round and appends it to the record. The `first` of this process warms up, and sets the samples of a round
/// and, unless it is set, the batch from an estimate. State is restored before each round, so that values updated
/// `batch` times stay finite however many rounds there are.
///
/// A round whose clocks failed, or that the telemetry finds invalid (round_fault()), is run again up to three times,
/// the latter after longer and longer rests; then it is kept with a note. Later rounds of such a case are kept at once,
/// as its device is permanently slow.
void time_round(PreparedCase& prepared, const Protocol& protocol, Telemetry& telemetry, CaseRecord& record, bool first);

/// Joules per run, from one window of at least 2 s in which the case runs without a pause, since rounds are often too
/// short for the device's counter. `record` has its rounds and their summary. Empty if the telemetry or the device
/// counts no energy.
[[nodiscard]] std::optional<double> energy_of_window(PreparedCase& prepared, Telemetry& telemetry,
                                                     const CaseRecord& record);

/// Times each op alone in a small round, within about one budget of the case. Empty for a program of one op.
[[nodiscard]] std::vector<OpShare> time_ops_alone(PreparedCase& prepared, const Protocol& protocol);

/// Nanoseconds of the step without its collectives, behind which communication can be hidden. Empty for programs
/// without collectives, or with nothing else.
[[nodiscard]] std::optional<double> time_compute_only(PreparedCase& prepared, const Protocol& protocol);

/// Seconds since its construction, by a steady clock.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace gpubench
