// What two sides say about one case: the numbers that a comparison is made of.
//
// The unit of evidence is the invocation (one process, one report), not the sample: samples of one process share its
// memory layout, its clocks and its neighbours, so that a thousand of them say no more about the next process than one
// does. Each invocation of a case counts as one value, the log of its median.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpubench {

/// A case as one invocation measured it.
struct CaseRun {
  double log_median = 0.0;   ///< natural log of the median over all valid rounds, in nanoseconds per run of the program
  double round_error = 0.0;  ///< standard error of the mean log round median: what this invocation itself knows
  int rounds = 0;            ///< valid ones
  int samples = 0;           ///< in the valid round that has the fewest
  std::int64_t batch = 1;    ///< runs per sample
  std::optional<double> sm_mhz{};  ///< median clock over the rounds, where the device tells it
  std::optional<double>
      cpu_pressure{};     ///< median over the rounds of the share of time in which a task waited for a CPU
  bool drifting = false;  ///< its later rounds differ from its earlier ones
};

/// Run-to-run noise of a case that was known before these runs.
struct Prior {
  double variance = 0.0;  ///< of the log median, from one invocation to the next
  int runs = 0;           ///< invocations that it was estimated from; one degree of freedom less
  /// The baseline's own invocations are that estimate, so that their spread must not count a second time.
  bool from_baseline = false;
};

/// One case on both sides.
struct Evidence {
  std::vector<CaseRun> baseline;
  std::vector<CaseRun> candidate;
  std::optional<Prior> prior{};
  std::optional<double> tau{};  ///< a change that matters, where this case has its own
};

}  // namespace gpubench
