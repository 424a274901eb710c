// Probes of an implementation under test (own_implementation.h): tricks that judging its results cannot show, and what
// it may not do to the process that it runs in. OWN_IMPLEMENTATIONS.md has the table.
//
// None of them raises an alarm for honest code; what each could mistake for a trick, and how often, is said with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/record.h"
#include "harness/run/prepared_case.h"
#include "harness/run/process_state.h"

namespace gpubench {

/// Whether an op of the case runs in an implementation under test.
[[nodiscard]] bool runs_own_implementation(const PreparedCase& prepared);

/// Nanoseconds of a pair of runs: on data that are new, and on the same data written once more.
struct NoveltyPair {
  double new_ns = 0.0, seen_ns = 0.0;
};
inline constexpr int novelty_pairs = 9;
/// Whether the pairs, all of a series, say that results are kept: each was more than 1.2 times as fast on data that it
/// had seen. Were pairs of honest code independent tosses of a coin, two series of nine would say so in 2^-18 of all
/// cases. They are not quite: the run on seen data is always the second, and what makes second runs faster leans on
/// every pair. The factor is the margin for that; OWN_IMPLEMENTATIONS.md has the trials.
[[nodiscard]] bool keeps_results(const std::vector<NoveltyPair>& pairs);
/// "2.9": the median ratio of the pairs.
[[nodiscard]] double median_ratio(const std::vector<NoveltyPair>& pairs);

/// Of one case, from before it is planned to its end.
class ImplProbes {
 public:
  /// Remembers the state of the process. `record` must outlive it.
  explicit ImplProbes(CaseRecord& record) : record_(record) {}

  /// Call after each phase in which the implementation ran: signal handlers, the arithmetic of all threads that the
  /// backend computes on, and how threads are scheduled. What has changed is restored and makes the case an error.
  /// Throws DeviceLost where it cannot be restored: then the other cases need another process.
  void look_at_process(Backend& backend, const std::string& phase);

  /// Around a round: counts the page faults of its runs. After it, how threads are scheduled is looked at as well, so
  /// that of several implementations that take turns the right one is blamed.
  void before_round();
  void after_round();
  /// Adds what was found to the summary's flags: "page faults in timed runs: 12 per run" where every round had at least
  /// one per run, since memory that is allocated and freed in a run is cleared anew each time (a single round may owe
  /// its faults to a first touch); and a thread that stays busy.
  void add_flags();

  /// Launches copy 0 as a round does and looks at its outputs at once and 20 ms later: work that goes on after its end,
  /// on another thread or stream, shows as a difference. Honest code cannot change an output later. Three times.
  /// Also finds a thread that stays busy while nothing runs, which is a flag: it takes time from what is measured next.
  void early_return(PreparedCase& prepared);

  /// Times copy 0 on data that are new, then on the same data, written again with the same operations; see
  /// keeps_results(). The processor's memory of branches is overwritten before each run. Ends with the first pair that
  /// shows nothing. Leaves other data in copy 0.
  void novelty(PreparedCase& prepared, std::uint64_t seed);

  /// "; probed for early return and kept results"; empty if nothing was.
  [[nodiscard]] const std::string& coverage() const { return coverage_; }

 private:
  void look_at_scheduling(const std::string& phase);

  CaseRecord& record_;
  ArithmeticModes modes_ = ArithmeticModes::now();
  SignalHandlers handlers_ = SignalHandlers::now();
  Scheduling scheduling_ = Scheduling::now();
  std::int64_t faults_before_ = 0;
  std::size_t rounds_before_ = 0;
  std::vector<double> faults_per_run_;  ///< by round
  bool busy_ = false;
  std::string coverage_;
};

}  // namespace gpubench
