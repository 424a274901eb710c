// One case of a soak: its judged results, and launches that differ from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/run/check.h"
#include "harness/run/prepared_case.h"
#include "harness/verify/soak.h"

namespace gpubench {

class SoakedCase {
 public:
  /// Throws as PreparedCase. Backend and planned case must outlive it. `choices`: of earlier runs, and of other devices
  /// that must run the same; may be null.
  SoakedCase(Backend& backend, const PlannedCase& planned, const RunOptions& options, const TuningCache* choices);

  [[nodiscard]] const Choices& timed_choices() const { return prepared_.timed_choices(); }

  [[nodiscard]] std::string id() const { return planned_.id(); }
  [[nodiscard]] double flop() const { return planned_.cost.flop; }
  [[nodiscard]] std::int64_t ops() const { return static_cast<std::int64_t>(prepared_.ops(Phase::timed).size()); }
  /// Whether the textbook has judged the current data and rejected nothing.
  [[nodiscard]] bool is_judged() const { return is_judged_; }
  /// For SoakObserver::now.
  [[nodiscard]] const std::string& judging() const { return judging_; }
  [[nodiscard]] const std::string& launching() const { return launching_; }

  /// Judges every op on the data of this seed, alone and in the launch, and keeps the launch's results. Returns the
  /// reason of a rejection; empty: passed, and ready for a launch.
  [[nodiscard]] std::string judge(RunOptions options, std::uint64_t seed);
  [[nodiscard]] std::vector<SoakedValue> judged() const { return values_of(prints_); }

  /// Restores the state and poisons a sixteenth of each output, in turn: an op that does not run is found at once, a
  /// stretch that is not written within sixteen launches.
  void clear();
  void launch();
  /// Whether the last launch equals the judged one, by fingerprints.
  [[nodiscard]] bool is_right();
  /// Describes how the last launch differs, and runs the next launch to describe that too. Call clear() afterwards.
  [[nodiscard]] std::string first_difference();
  /// The fingerprints of the last is_right(), in the order of judged().
  [[nodiscard]] std::vector<std::uint64_t> left() const;

 private:
  struct WatchedValue {
    int op;
    ValueId value;
  };
  [[nodiscard]] std::vector<SoakedValue> values_of(const Fingerprints& prints) const;
  [[nodiscard]] std::string first_wrong();

  const PlannedCase& planned_;
  Arena arena_;
  PreparedCase prepared_;
  std::vector<StorageId> watched_;
  std::vector<WatchedValue> values_;  ///< one per watched storage, in the order of the ops
  std::string judging_, launching_;
  Fingerprints prints_, found_;
  StorageContents right_;
  bool is_judged_ = false;
  std::int64_t turn_ = 0;  ///< launches so far
};

}  // namespace gpubench
