// Parts of determinism.h: a case that runs in several ways, and the ways that need a second program.
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

struct LeftValue {
  int op = 0;
  ValueId id;
  HostTensor tensor;
  [[nodiscard]] Role role() const { return tensor.spec.role; }
};

class DeterminismSubject {
 public:
  /// Throws as PreparedCase. Backend and planned case must outlive it.
  DeterminismSubject(Backend& backend, const PlannedCase& planned, const RunOptions& options);

  [[nodiscard]] const Program& program() const { return prepared_.program(); }
  [[nodiscard]] PreparedCase& prepared() { return prepared_; }
  [[nodiscard]] std::string implementation(int op) const { return prepared_.implementation(op); }

  /// As one launch, from the same state and poisoned outputs.
  void run();
  /// As a graph for a stream, or as a stream for a graph. Throws Unsupported.
  void run_in_other_mode();
  void run_op_by_op();
  /// Every value in memory after the run, in the order of the ops.
  [[nodiscard]] std::vector<LeftValue> left();
  /// The contents of the sources before a run, by name.
  [[nodiscard]] std::map<std::string, HostTensor> sources();

  /// The first difference between two runs of this case, or "": "'h'[0, 3] of op 'block0.up' (gemm) in layer block0,
  /// 0.12 for 0.125, in bits 12-14, and 16 more elements".
  [[nodiscard]] std::string difference(const std::vector<LeftValue>& before, const std::vector<LeftValue>& now) const;
  /// The same for one value of this case; they must differ.
  [[nodiscard]] std::string text(int op, const HostTensor& before, const HostTensor& now) const;

 private:
  void run(const Launch& launch);

  Arena arena_;
  PreparedCase prepared_;
  Launch whole_;
};

[[nodiscard]] inline Repetition untested(std::string_view way, std::string why) {
  return {std::string(way), Sameness::untested, std::move(why)};
}

/// Returns the trial's result; untested, with the reason, if it throws Unsupported, DoesNotFit or ProgramError.
/// `no_program` begins the reason of a ProgramError.
[[nodiscard]] Repetition tried(std::string_view way, const std::string& no_program,
                               const std::function<Repetition()>& trial);

[[nodiscard]] Repetition batch_repetition(Backend& backend, const PlannedCase& planned, const RunOptions& options);

/// For way::replicas, one_rank and one_batch of a case of several ranks. `left`: the values after its run.
[[nodiscard]] std::vector<Repetition> rank_repetitions(Backend& group, const PlannedCase& planned,
                                                       const RunOptions& options, DeterminismSubject& all,
                                                       const std::vector<LeftValue>& left);

[[nodiscard]] PlannedCase with_batch(const PlannedCase& planned, std::int64_t batch);
/// The first op in which an item's result depends by definition on the other items or on its position; the number of
/// ops if there is none.
[[nodiscard]] int first_mixing_op(const Program& program);

/// Value numbering, as in compilers, to find values that must have the same bits: replicas, and values that a rank
/// computes before it communicates, which a single rank computes too. Values with the same number come from the same
/// data by the same ops, on any rank. Results of all_reduce, all_gather and broadcast have the same number on all
/// members. A value depends on all earlier writes to its storage.
class ValueNumbers {
 public:
  /// `sources`: numbers of sources, by global name; others have source_number().
  explicit ValueNumbers(const Program& program, const std::map<std::string, std::uint64_t>& sources = {});
  /// Empty for a value that is neither a source nor produced by an op.
  [[nodiscard]] std::optional<std::uint64_t> operator[](ValueId id) const {
    return numbers_.at(static_cast<std::size_t>(id.index));
  }

 private:
  [[nodiscard]] std::uint64_t read(ValueId id) const;
  [[nodiscard]] std::uint64_t of_op(const OpCall& call) const;

  const Program& program_;
  std::vector<std::optional<std::uint64_t>> numbers_;
};

/// From a source's name and the part that the rank has.
[[nodiscard]] std::uint64_t source_number(const TensorSpec& spec);

}  // namespace gpubench
