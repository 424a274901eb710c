// Faults of training steps that ranks share, as changes to the program: every op is right, the program is wrong. Each
// class occurred in a framework. The comparison with one rank (one_rank.h) must find it, at the stage and as one of the
// kinds given here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"
#include "harness/verify/one_rank.h"

namespace gpubench {

struct ParallelFaultClass {
  std::string_view name;              ///< "gradient not reduced"
  std::string_view where;             ///< "tensor parallel", "sequence parallel", "data parallel"
  StepStage stage;                    ///< the first at which it must be found
  std::vector<DivergenceKind> kinds;  ///< it must be found as one of them
};
[[nodiscard]] std::span<const ParallelFaultClass> parallel_fault_classes();

struct FaultyStep {
  std::size_t fault_class = 0;  ///< in parallel_fault_classes()
  std::string place;            ///< label of the wrong op, or name of the wrong tensor
  Program program;
};

/// Injects the class into a step of several ranks, at up to `most` places, including the first and the last.
[[nodiscard]] std::vector<FaultyStep> faulty_steps(const Program& step, std::size_t fault_class, std::size_t most);

}  // namespace gpubench

namespace gpubench::faulty {

// Training steps of several ranks with one change, for faulty_steps().

/// `edit` changes an op or leaves it out (false), `place` changes a spec. Values keep their ids; readers of an update
/// whose op is left out get the value before it.
struct Edits {
  std::function<bool(int index, OpCall& call)> edit = [](int, OpCall&) { return true; };
  std::function<void(TensorSpec& spec)> place = [](TensorSpec&) {};
  /// Ops to insert after op `index`.
  std::function<std::vector<OpCall>(int index, Program& program)> behind = [](int, Program&) {
    return std::vector<OpCall>();
  };
  int moved = -1;  ///< an op that is among the inserted ones instead of at its place
};
[[nodiscard]] Program edited(const Program& step, const Edits& edits);

/// The axis of the mesh along which a collective's group is; empty if there is none.
[[nodiscard]] std::string_view axis_of(const Program& step, const OpCall& call);

[[nodiscard]] Program changed(const Program& step, int op, const std::function<void(OpCall& call)>& change);

template <class T, class Change>
Program with(const Program& step, int op, const Change& change) {
  return changed(step, op, [&](OpCall& call) {
    T attributes = call.attributes.as<T>();
    change(attributes);
    call.attributes = attributes;
  });
}

/// A rank that uses the first rank's row or class index.
template <class T>
Program as_on_the_first_rank(const Program& step, int op) {
  return with<T>(step, op, [](T& attributes) { attributes.first = 0; });
}

/// Leaves out an op, as Edits::edit.
[[nodiscard]] Program without(const Program& step, int op);
/// A sum instead of an average, or an average instead of a sum.
[[nodiscard]] Program reduced_otherwise(const Program& step, int op);
/// Gradients of a softmax over only the rank's classes.
[[nodiscard]] std::optional<Program> softmax_of_own_classes(const Program& step, int op);
/// Gradients of the mean over the unmasked labels of only the rank's part of the batch.
[[nodiscard]] Program mean_of_own_labels(const Program& step, int op);
/// A bias that a second rank adds too.
[[nodiscard]] std::optional<Program> bias_twice(const Program& step, int op);
[[nodiscard]] Program reduced_twice(const Program& step, int op);
/// A norm of only this rank's parts, without the gathered norms of the others.
[[nodiscard]] std::optional<Program> norm_of_own_parts(const Program& step, int op);
/// A norm to which every rank adds the tensors that all ranks hold.
[[nodiscard]] std::optional<Program> norm_counts_all_ranks(const Program& step, int op);
/// A collective with its members in reverse order, so that parts change places.
[[nodiscard]] Program in_opposite_order(const Program& step, int op);
/// Rows of tokens with another layer's destinations. Empty if no earlier layer groups tokens.
[[nodiscard]] std::optional<Program> by_counts_of_another_layer(const Program& step, int op);
/// Sends the previous micro-batch to another stage.
[[nodiscard]] std::optional<Program> of_the_last_micro_batch(const Program& step, int op);
/// Only one addend of a sum of gradients.
[[nodiscard]] Program of_one_use(const Program& step, int op);
/// Two reductions over pairs of replicas, {0, 2} and {1, 3}, over pairs that share the tensors, {0, 1} and {2, 3}.
[[nodiscard]] std::optional<Program> over_the_wrong_ranks(const Program& step, int op);
/// An op that reads the values its rank sent instead of those it received.
[[nodiscard]] Program before_exchange(const Program& step, int op);

}  // namespace gpubench::faulty
