// What goes wrong when ranks share a training step, as changes to its program: every op is right, and what they make up
// is not. Each class is one that frameworks had; what finds it is the comparison with one rank (one_rank.h), by the
// stage and the divergence that are named here.
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
  StepStage stage;                    ///< at which it must be found first
  std::vector<DivergenceKind> kinds;  ///< one of which it must be found to be
};
[[nodiscard]] std::span<const ParallelFaultClass> parallel_fault_classes();

/// A program with one fault.
struct FaultyStep {
  std::size_t fault_class = 0;  ///< in parallel_fault_classes()
  std::string place;            ///< the label of the op, or the name of the tensor, that is wrong
  Program program;
};

/// The places at which a class of faults can be put into a step of several ranks, at most `most`, the first and the
/// last among them.
[[nodiscard]] std::vector<FaultyStep> faulty_steps(const Program& step, std::size_t fault_class, std::size_t most);

}  // namespace gpubench

namespace gpubench::faulty {

// Training steps of several ranks, changed in one place: what faulty_steps() puts into them.

/// The same program, each op changed or left out by `edit` (false), each spec by `place`. Values keep their ids; an
/// update whose op is left out is read as it was before.
struct Edits {
  std::function<bool(int index, OpCall& call)> edit = [](int, OpCall&) { return true; };
  std::function<void(TensorSpec& spec)> place = [](TensorSpec&) {};
  /// Appended behind an op.
  std::function<std::vector<OpCall>(int index, Program& program)> behind = [](int, Program&) {
    return std::vector<OpCall>();
  };
  int moved = -1;  ///< an op that is not where it was, but among those appended
};
[[nodiscard]] Program edited(const Program& step, const Edits& edits);

/// The axis of the mesh that a collective's group is along; empty where it is along none.
[[nodiscard]] std::string_view axis_of(const Program& step, const OpCall& call);

/// With one op changed.
[[nodiscard]] Program changed(const Program& step, int op, const std::function<void(OpCall& call)>& change);

/// With other attributes of one.
template <class T, class Change>
Program with(const Program& step, int op, const Change& change) {
  return changed(step, op, [&](OpCall& call) {
    T attributes = call.attributes.as<T>();
    change(attributes);
    call.attributes = attributes;
  });
}

/// A rank that takes its rows or classes for the first rank's.
template <class T>
Program as_on_the_first_rank(const Program& step, int op) {
  return with<T>(step, op, [](T& attributes) { attributes.first = 0; });
}

/// Without an op; an update of its is read as it was before.
[[nodiscard]] Program without(const Program& step, int op);
/// With another reduction: a sum for an average, or the other way.
[[nodiscard]] Program reduced_otherwise(const Program& step, int op);
/// Gradients of a softmax over the classes that the rank has.
[[nodiscard]] std::optional<Program> softmax_of_own_classes(const Program& step, int op);
/// Gradients of the mean over the labels that count in this part of the batch.
[[nodiscard]] Program mean_of_own_labels(const Program& step, int op);
/// A bias that one rank adds, on another rank as well.
[[nodiscard]] std::optional<Program> bias_twice(const Program& step, int op);
/// A reduction, and the same once more.
[[nodiscard]] Program reduced_twice(const Program& step, int op);
/// A norm of what this rank has: of the gathered norms of all ranks' parts only its own.
[[nodiscard]] std::optional<Program> norm_of_own_parts(const Program& step, int op);
/// A norm into which every rank counts what all of them have.
[[nodiscard]] std::optional<Program> norm_counts_all_ranks(const Program& step, int op);
/// A collective whose members are in the opposite order: parts end up in each other's places.
[[nodiscard]] Program in_opposite_order(const Program& step, int op);
/// Rows of tokens that go where those of another layer went. None where no other was grouped before.
[[nodiscard]] std::optional<Program> by_counts_of_another_layer(const Program& step, int op);
/// What is sent to another stage, of the micro-batch before.
[[nodiscard]] std::optional<Program> of_the_last_micro_batch(const Program& step, int op);
/// Of a sum of gradients only one addend.
[[nodiscard]] Program of_one_use(const Program& step, int op);
/// Two reductions over pairs of replicas as two over pairs that share the tensors: {0, 2} and {1, 3} as {0, 1} and {2,
/// 3}.
[[nodiscard]] std::optional<Program> over_the_wrong_ranks(const Program& step, int op);
/// An op that reads what its rank sent on, not what it got.
[[nodiscard]] Program before_exchange(const Program& step, int op);

}  // namespace gpubench::faulty
