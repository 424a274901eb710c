// Timing of one prepared case: its first estimate, its rounds, and its ops one by one.
#pragma once

#include <optional>
#include <vector>

#include "harness/core/record.h"
#include "harness/core/telemetry.h"
#include "harness/measure/protocol.h"
#include "harness/run/prepared_case.h"

namespace gpubench {

/// What the next round of the case is, once it has a batch. Where there is state the warm-up is of as many runs each
/// time, so that rounds can be compared with each other.
[[nodiscard]] RoundPlan plan_of_round(const PreparedCase& prepared, const Protocol& protocol, const CaseRecord& record);

/// One round, appended to the record; the `first` of this process warms up, and sets the batch from an estimate, unless
/// it is set. State is
/// restored before it, so that values updated `batch` times stay finite however many rounds there are.
///
/// A round whose clocks failed, or that the telemetry finds invalid (round_fault()), is run again, up to three times,
/// of the latter with longer and longer rests; then it is kept with a note. Later rounds of such a case are kept at
/// once: its device is slow for good.
void time_round(PreparedCase& prepared, const Protocol& protocol, Telemetry& telemetry, CaseRecord& record, bool first);

/// Joules per run, from one window of at least 2 s in which the case runs without a pause, for its rounds are often too
/// short for the device's counter. `record` has its rounds and their summary. Nothing where the
/// telemetry counts no energy, or the device does not after all.
[[nodiscard]] std::optional<double> energy_of_window(PreparedCase& prepared, Telemetry& telemetry,
                                                     const CaseRecord& record);

/// Each timed op alone, one small round each, within about one budget of the case. Empty for a program of one op.
[[nodiscard]] std::vector<OpShare> time_ops_alone(PreparedCase& prepared, const Protocol& protocol);

/// Nanoseconds of the step without its collectives: what communication can be hidden behind. Empty for programs without
/// collectives, or without anything else.
[[nodiscard]] std::optional<double> time_compute_only(PreparedCase& prepared, const Protocol& protocol);

/// Seconds of a steady clock since it was made.
class Stopwatch {
 public:
  Stopwatch();
  [[nodiscard]] double seconds() const;

 private:
  double start_;
};

}  // namespace gpubench
