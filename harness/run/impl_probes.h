// Probes of an implementation under test (own_implementation.h), for cheats that judging its results cannot show, and
// for forbidden changes of its process. OWN_IMPLEMENTATIONS.md has the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/record.h"
#include "harness/run/prepared_case.h"
#include "harness/run/process_state.h"

namespace gpubench {

/// Whether a timed op of the case runs in an implementation under test.
[[nodiscard]] bool runs_own_implementation(const PreparedCase& prepared);

/// Nanoseconds of a pair of runs: on new data, and on the same data rewritten.
struct NoveltyPair {
  double new_ns = 0.0, seen_ns = 0.0;
};
inline constexpr int novelty_pairs = 9;
/// Whether the pairs of a series show that results are kept: every pair was more than 1.2 times as fast on seen data.
/// If pairs of correct code were independent and symmetric, two series of nine would be a false alarm in 2^-18 of all
/// cases. The factor 1.2 is the margin for effects that make second runs faster; OWN_IMPLEMENTATIONS.md has the trials.
[[nodiscard]] bool keeps_results(const std::vector<NoveltyPair>& pairs);
/// "2.9": the median ratio of the pairs.
[[nodiscard]] double median_ratio(const std::vector<NoveltyPair>& pairs);

class ImplProbes {
 public:
  /// Saves the state of the process. `record` must outlive it.
  explicit ImplProbes(CaseRecord& record) : record_(record) {}

  /// Checks signal handlers, the arithmetic modes of all threads of the backend, and the scheduling of threads.
  /// Restores what has changed and makes the case an error. Call after each phase in which the implementation ran.
  /// Throws DeviceLost if a change cannot be restored: the other cases then need another process.
  void look_at_process(Backend& backend, const std::string& phase);

  /// Counts the page faults of a round's runs. after_round() also checks the scheduling of threads, since several
  /// implementations take turns.
  void before_round();
  void after_round();
  /// Adds to the summary's flags: "page faults in timed runs: 12 per run", where every round had at least one per run
  /// (memory allocated and freed in each run; a first touch affects single rounds), and a thread that stays busy.
  void add_flags();

  /// Launches copy 0 as a round does and compares its outputs at once and 20 ms later, three times: a difference shows
  /// work that continues after its end, on another thread or stream. No false alarm: correct code cannot change an
  /// output later. Also finds a thread that stays busy while nothing runs, which is only a flag.
  void early_return(PreparedCase& prepared);

  /// Times copy 0 on new data, then on the same data, written again with the same operations; see keeps_results().
  /// Overwrites the processor's branch history before each run. Ends with the first pair without evidence. Leaves other
  /// data in copy 0.
  void novelty(PreparedCase& prepared, std::uint64_t seed);

  /// "; probed for early return and kept results"; empty if nothing was probed.
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
