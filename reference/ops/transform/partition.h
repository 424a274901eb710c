// A training step whose tensors are cut over several ranks, in one of three ways.
//
// Tensor parallel: each rank does its part of the work on the whole batch. Shoeybi et al., "Megatron-LM", arXiv
// 1909.08053: linear layers cut by columns, those behind them by rows, attention by heads; norms and residuals on a
// part of the tokens each: Korthikanti et al., arXiv 2205.05198.
//
// Fully sharded: each rank has a batch of its own, and keeps a part of every weight, of its gradient and of its
// optimizer's state. Rajbhandari et al., "ZeRO", arXiv 1910.02054 (stage 3); Zhao et al., "PyTorch FSDP", arXiv
// 2304.11277.
//
// Expert parallel: each rank has a batch of its own and some of the experts, to which the tokens of all ranks come and
// from which they return, as in Lepikhin et al., "GShard", arXiv 2006.16668.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/collective.h"

namespace gpubench {

// How an op can be shared by several ranks, each of which has a part of some of its operands: what it needs of its
// inputs, and what each rank then has of its outputs. One table for all transforms that cut tensors; what it lacks runs
// whole on every rank.

/// Equal parts along an axis of a tensor, one for each rank.
struct Cut {
  int axis = 0;
  std::vector<std::int64_t> sections{};  ///< as AxisSpread::sections; empty: one
  /// The opposite, where ranks have batches of their own: room for the rows of all, of which a rank has those for its
  /// experts.
  bool of_experts = false;
  friend bool operator==(const Cut&, const Cut&) = default;
};
inline const Cut rows_of_experts{0, {}, true};
/// None: every rank has what a step of one rank has.
using MaybeCut = std::optional<Cut>;

struct OpSharding {
  std::vector<MaybeCut> inputs;   ///< what each has to be
  std::vector<MaybeCut> outputs;  ///< what each is then
  /// By output: where each rank has an addend of it (of a maximum: a candidate), how they make up the whole.
  std::vector<std::optional<Reduction>> addends;
  bool bias_on_first = false;  ///< of a product of addends: one rank adds the bias
};

/// Whether an op takes lists with an item for each parameter: norm, clip, unscale, optimizers.
[[nodiscard]] bool takes_parameters(const OpKind& kind);
/// Of such an op: whether an operand is one of the lists, not one that all items share.
[[nodiscard]] bool is_of_parameter(std::string_view operand);
/// The list that decides where an item is: the weights where the op updates them, else the gradients.
[[nodiscard]] std::string_view leading_list(const OpKind& kind);

/// Of a call of a program of one rank whose inputs are cut as `inputs` says.
[[nodiscard]] OpSharding sharding_of(const Program& program, const OpCall& call, std::span<const MaybeCut> inputs);

/// Of ranks that have batches of their own, and the experts of a mixture in equal parts: what is between the grouping
/// of tokens and the return of their rows is of a rank's experts, not of its tokens.
[[nodiscard]] OpSharding expert_sharding_of(const Program& program, const OpCall& call,
                                            std::span<const MaybeCut> inputs);

/// Sources that are cut, by the name that they have on all ranks of the step: weights, and what belongs to them
/// (biases, masters, moments).
using Cuts = std::map<std::string, Cut, std::less<>>;

struct TensorParallel {
  int ranks = 1;
  /// Sequence parallelism: what linear layers cut by rows return is scattered over the tokens, not the same on all
  /// ranks, and gathered before the next layer.
  bool scatters_tokens = false;
  Math math = {};  ///< of the reductions
};

struct PartitionedStep {
  Program program;
  std::vector<ValueId> gradients;  ///< of all ranks: what data_parallel() reduces over replicas
};

/// `step`, of one rank, on the ranks of a mesh with the axis "tp". Every rank runs every op on its part of those
/// operands that are cut, as sharding_of() allows, and on the whole of all others. Addends of a result are reduced
/// right behind their op; operands that an op needs whole are gathered before it. The gradients' norm is that of all
/// parts, those that every rank has counted once.
///
/// Tensors and ops are named "x@1". For one rank the result is the step itself. Throws ProgramError for a step of
/// several ranks, for a cut of a source that the step lacks, for an extent that the ranks cannot share equally, and
/// where an operand would have to be gathered along another axis than its first.
[[nodiscard]] PartitionedStep tensor_parallel(const Program& step, const TensorParallel& options, const Cuts& cuts,
                                              std::span<const ValueId> gradients);

struct FullySharded {
  int ranks = 1;
  Reduction reduction = Reduction::average;  ///< average where the loss is a mean over the batch, else sum
  Math math = {};                            ///< of the reductions
};

/// `step` on the ranks of a mesh with the axis "fsdp" in front of the step's own, each with a batch of its own: sources
/// that are placed as shards (Placement::shard) become the ranks' parts of one tensor. A source that `cuts` names is
/// cut; a weight is gathered once a step, as early as data flow allows, and the whole is kept until the step ends. Each
/// of the `gradients` is reduced right behind the op that makes it, to its parts where its weight is cut, and what
/// comes behind them (norm, clip, optimizer) works on parts. For one rank the result is the step itself. Throws
/// ProgramError as tensor_parallel(), and as mask_offsets().
[[nodiscard]] PartitionedStep fully_sharded(const Program& step, const FullySharded& options, const Cuts& cuts,
                                            std::span<const ValueId> gradients);

struct ExpertParallel {
  int ranks = 1;
  Reduction reduction = Reduction::average;  ///< average where the loss is a mean over the batch, else sum
  Math math = {};                            ///< of the reductions
};

/// `step` on the ranks of a mesh with the axis "ep" in front, each with a batch of its own, as fully_sharded();
/// `cuts` names the weights of experts, by expert. Each rank groups its own tokens by all experts; their rows are
/// dispatched to the ranks that have these (dispatch_tokens), and what comes of them returns. There is room for all
/// rows of all ranks: none is dropped. Gradients of experts are of all batches already; the others are reduced. For one
/// rank the result is the step itself. Throws ProgramError as fully_sharded(), and where another op than those of a
/// mixture and pointwise ones reads rows of experts.
[[nodiscard]] PartitionedStep expert_parallel(const Program& step, const ExpertParallel& options, const Cuts& cuts,
                                              std::span<const ValueId> gradients);

// A step of some ranks, several times over: a mesh that has one axis more, in front of the step's own. Rank r of the
// step is rank place * ranks + r at each place along that axis.

class OuterAxis {
 public:
  OuterAxis(const Program& step, std::string name, int places)
      : step_(step), name_(std::move(name)), places_(places), each_(step.mesh().ranks()) {}

  [[nodiscard]] Mesh mesh() const;
  [[nodiscard]] int each() const { return each_; }  ///< ranks of the step
  [[nodiscard]] int ranks() const { return places_ * each_; }
  [[nodiscard]] int rank(int place, int of_step) const { return place * each_ + of_step; }
  /// The members of a group of the step, there.
  [[nodiscard]] RankGroup group(const RankGroup& of_step, int place) const;
  /// The ranks at all places that are rank `of_step` of the step.
  [[nodiscard]] RankGroup across(int of_step) const;
  /// The label of an op, "x@1" of rank 1 of the step, as it is there: "x@3"; with `more`, ".parts": "x.parts@3".
  [[nodiscard]] std::string label(std::string_view of_step, int rank_of_step, int place,
                                  std::string_view more = "") const;
  /// The label of a collective of the step, there: "x@dp1".
  [[nodiscard]] std::string label(std::string_view of_step, int place) const;
  /// Makes of a tensor of the step the one that is there: its name, its rank, and the axes that it is spread over.
  void move(TensorSpec& spec, int place) const;

 private:
  const Program& step_;
  std::string name_;
  int places_, each_;
};

}  // namespace gpubench
