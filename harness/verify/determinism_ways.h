// What determinism.h is made of: a case that is run in one way and another, and the ways that need a second program.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/program.h"
#include "harness/parity/compare_elements.h"
#include "harness/parity/textbook_outputs.h"
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

/// A repetition that could not be tried, with the reason.
[[nodiscard]] inline Repetition untested(std::string_view way, std::string why) {
  return {std::string(way), Sameness::untested, std::move(why)};
}

/// What the trial returns; untested, with the reason, where it throws Unsupported, DoesNotFit or ProgramError, of which
/// `no_program` comes first.
[[nodiscard]] Repetition tried(std::string_view way, const std::string& no_program,
                               const std::function<Repetition()>& trial);

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

// Which values must have the same bits because they are the same computation on the same data: replicas on several
// ranks, and what a rank computes before it meets others, which one rank alone computes as well.

/// Numbers of values, as compilers number them: two with the same number come from the same data by the same ops, on
/// whichever ranks. Results of all_reduce, all_gather and broadcast have one number on all members. Values in one
/// storage with others count as made from all that was written there before.
class ValueNumbers {
 public:
  /// `sources`: numbers for the sources of these global names; others have source_number().
  explicit ValueNumbers(const Program& program, const std::map<std::string, std::uint64_t>& sources = {});
  /// None for a value that no op produces and that is no source.
  [[nodiscard]] std::optional<std::uint64_t> operator[](ValueId id) const {
    return numbers_.at(static_cast<std::size_t>(id.index));
  }

 private:
  [[nodiscard]] std::uint64_t read(ValueId id) const;
  [[nodiscard]] std::uint64_t of_op(const OpCall& call) const;

  const Program& program_;
  std::vector<std::optional<std::uint64_t>> numbers_;
};

/// Of a source: by its name, and which part of it a rank has.
[[nodiscard]] std::uint64_t source_number(const TensorSpec& spec);

}  // namespace gpubench
