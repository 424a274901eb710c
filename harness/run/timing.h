// Timing of one prepared case: its first estimate, its rounds, and its ops one by one.
#pragma once

#include <vector>

#include "harness/core/record.h"
#include "harness/measure/protocol.h"
#include "harness/run/prepared_case.h"

namespace gpubench {

/// One round, appended to the record; the first round sets the batch from an estimate. State is restored before it, so
/// that values updated `batch` times stay finite however many rounds there are.
void time_round(PreparedCase& prepared, const Protocol& protocol, CaseRecord& record);

/// Each timed op alone, one small round each, within about one budget of the case. Empty for a program of one op.
[[nodiscard]] std::vector<OpShare> time_ops_alone(PreparedCase& prepared, const Protocol& protocol);

/// Seconds of a steady clock since it was made.
class Stopwatch {
 public:
  Stopwatch();
  [[nodiscard]] double seconds() const;

 private:
  double start_;
};

}  // namespace gpubench
