// What determinism.h is made of: a case that is run in one way and another, and the ways that need a second program.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/parity/textbook_outputs.h"
#include "harness/parity/wrong_places.h"
#include "harness/run/prepared_case.h"
#include "harness/verify/determinism.h"

namespace gpubench {

/// A value that was left, and the op that wrote it.
struct LeftValue {
  int op = 0;
  ValueId id;
  HostTensor tensor;
  [[nodiscard]] Role role() const { return tensor.spec.role; }
};

/// A case, ready to be run again and again.
class DeterminismSubject {
 public:
  /// Throws as PreparedCase. Backend and planned case must outlive it.
  DeterminismSubject(Backend& backend, const PlannedCase& planned, const RunOptions& options);

  [[nodiscard]] const Program& program() const { return prepared_.program(); }
  [[nodiscard]] PreparedCase& prepared() { return prepared_; }
  [[nodiscard]] std::string implementation(int op) const { return prepared_.implementation(op); }

  /// From the same state and poisoned outputs, as one launch.
  void run();
  /// The same, as the other kind of launch than the case's. Throws Unsupported.
  void run_in_other_mode();
  void run_op_by_op();
  /// Every value that is in memory at the end, in the order of the ops.
  [[nodiscard]] std::vector<LeftValue> left();
  /// The contents of the sources before anything has run, by name.
  [[nodiscard]] std::map<std::string, HostTensor> sources();

  /// The first value that differs: "'h'[0, 3] of op 'block0.up' (gemm) in layer block0, 0.12 for 0.125, in bits 12-14,
  /// and 16 more elements of it"; empty where no bit does. Both are of this case, run twice.
  [[nodiscard]] std::string difference(const std::vector<LeftValue>& before, const std::vector<LeftValue>& now) const;
  /// The same of one value of this case, which `now` is; there is a difference.
  [[nodiscard]] std::string text(int op, const HostTensor& before, const HostTensor& now) const;

 private:
  void run(const Launch& launch);

  Arena arena_;
  PreparedCase prepared_;
  Launch whole_;
};

/// way::batch.
[[nodiscard]] Repetition batch_repetition(Backend& backend, const PlannedCase& planned, const RunOptions& options);

/// way::replicas, one_rank and one_batch of a case of several ranks, which has left `left`.
[[nodiscard]] std::vector<Repetition> rank_repetitions(Backend& group, const PlannedCase& planned,
                                                       const RunOptions& options, DeterminismSubject& all,
                                                       const std::vector<LeftValue>& left);

/// The case with another batch.
[[nodiscard]] PlannedCase with_batch(const PlannedCase& planned, std::int64_t batch);
/// The first op of which an item's result depends on the others, or on its place among them, by definition; the number
/// of ops where there is none.
[[nodiscard]] int first_mixing_op(const Program& program);

}  // namespace gpubench
