// Training steps with tensors cut over several ranks.
// Tensor parallel (Shoeybi et al., "Megatron-LM", arXiv 1909.08053): ranks share the batch; linear layers are cut by
// columns, the next ones by rows, attention by heads; norms and residuals by tokens (Korthikanti et al., arXiv
// 2205.05198).
// Fully sharded (Rajbhandari et al., "ZeRO", arXiv 1910.02054, stage 3; Zhao et al., "PyTorch FSDP", arXiv 2304.11277):
// each rank has a batch, and a part of every weight, its gradient and optimizer state.
// Expert parallel (Lepikhin et al., "GShard", arXiv 2006.16668): each rank has a batch, and some of the experts, which
// receive and return the tokens of all ranks.
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

// How ranks share an op: the required cuts of its inputs, and the resulting cuts of its outputs, for all transforms
// that cut tensors. Ops without a rule run whole on every rank.

/// Equal parts along an axis of a tensor, one per rank.
struct Cut {
  int axis = 0;
  std::vector<std::int64_t> sections{};  ///< as AxisSpread::sections; empty: one
  /// Expert parallelism: a rank's tensor is larger instead, with room for the rows of all ranks for its experts.
  bool of_experts = false;
  friend bool operator==(const Cut&, const Cut&) = default;
};
inline const Cut rows_of_experts{0, {}, true};
/// None: every rank has the whole tensor.
using MaybeCut = std::optional<Cut>;

struct OpSharding {
  std::vector<MaybeCut> inputs;
  std::vector<MaybeCut> outputs;
  /// By output: the reduction that combines the ranks' addends (of a maximum: candidates), if they have such.
  std::vector<std::optional<Reduction>> addends;
  bool bias_on_first = false;  ///< a product of addends, whose bias only one rank adds
};

/// Whether an op takes lists with an item per parameter: norm, clip, unscale, optimizers.
[[nodiscard]] bool takes_parameters(const OpKind& kind);
/// Whether an operand of such an op is one of the lists.
[[nodiscard]] bool is_of_parameter(std::string_view operand);
/// The list that decides an item's place: weights if the op updates them, else gradients.
[[nodiscard]] std::string_view leading_list(const OpKind& kind);

/// For a call of a single-rank program whose inputs are cut as `inputs`.
[[nodiscard]] OpSharding sharding_of(const Program& program, const OpCall& call, std::span<const MaybeCut> inputs);

/// For expert parallelism: between group_tokens and the return of rows, data are those of a rank's experts, not of its
/// tokens.
[[nodiscard]] OpSharding expert_sharding_of(const Program& program, const OpCall& call,
                                            std::span<const MaybeCut> inputs);

/// Cuts of sources (weights, biases, masters, moments) by global name.
using Cuts = std::map<std::string, Cut, std::less<>>;

struct TensorParallel {
  int ranks = 1;
  /// Sequence parallelism: results of linear layers cut by rows are scattered over the tokens, and gathered before the
  /// next layer.
  bool scatters_tokens = false;
  Math math = {};
};

struct PartitionedStep {
  Program program;
  std::vector<ValueId> gradients;
};

/// `step`, of one rank, on a mesh with axis "tp". Every rank runs every op, on its parts of cut operands if
/// sharding_of() allows, else on whole ones. Addends are reduced right after their op; operands that an op needs whole
/// are gathered before it. The gradient norm covers all parts and counts tensors that every rank has once.
///
/// Names are "x@1". One rank: the step itself. Throws ProgramError for a step of several ranks, for cuts of unknown
/// sources, for extents that the ranks do not divide, and if an operand would be gathered along another axis than its
/// first.
[[nodiscard]] PartitionedStep tensor_parallel(const Program& step, const TensorParallel& options, const Cuts& cuts,
                                              std::span<const ValueId> gradients);

struct FullySharded {
  int ranks = 1;
  Reduction reduction = Reduction::average;  ///< average if the loss is a mean over the batch, else sum
  Math math = {};
};

/// `step` on a mesh with axis "fsdp" in front of the step's axes, each rank with a batch: sources placed as shards
/// (Placement::shard) become the ranks' parts of one tensor. `cuts` names the cut sources. A weight is gathered once
/// per step, as early as data flow allows, and kept whole until the end. Each of the `gradients` is reduced right after
/// its op, to parts if its weight is cut, and later ops (norm, clip, optimizer) work on parts. One rank: the step
/// itself. Throws ProgramError as tensor_parallel() and mask_offsets().
[[nodiscard]] PartitionedStep fully_sharded(const Program& step, const FullySharded& options, const Cuts& cuts,
                                            std::span<const ValueId> gradients);

struct ExpertParallel {
  int ranks = 1;
  Reduction reduction = Reduction::average;  ///< average if the loss is a mean over the batch, else sum
  Math math = {};
};

/// `step` on a mesh with axis "ep" in front, each rank with a batch, as fully_sharded(). `cuts` names the weights of
/// experts, cut by expert. Each rank groups its tokens by all experts; rows are dispatched to the experts' ranks
/// (dispatch_tokens) and return. There is room for all rows of all ranks, so none is dropped. Gradients of experts
/// cover all batches already; others are reduced. One rank: the step itself. Throws ProgramError as fully_sharded(),
/// and if other ops than pointwise ones and those of a mixture read rows of experts.
[[nodiscard]] PartitionedStep expert_parallel(const Program& step, const ExpertParallel& options, const Cuts& cuts,
                                              std::span<const ValueId> gradients);

// A step repeated along a new first axis of its mesh: rank r of the step is rank place * ranks + r at each place.

class OuterAxis {
 public:
  OuterAxis(const Program& step, std::string name, int places)
      : step_(step), name_(std::move(name)), places_(places), each_(step.mesh().ranks()) {}

  [[nodiscard]] Mesh mesh() const;
  [[nodiscard]] int each() const { return each_; }
  [[nodiscard]] int ranks() const { return places_ * each_; }
  [[nodiscard]] int rank(int place, int of_step) const { return place * each_ + of_step; }
  [[nodiscard]] RankGroup group(const RankGroup& of_step, int place) const;
  [[nodiscard]] RankGroup across(int of_step) const;
  /// The label of an op at `place`: "x@1" for rank 1 of the step becomes "x@3"; with `more` ".parts": "x.parts@3".
  [[nodiscard]] std::string label(std::string_view of_step, int rank_of_step, int place,
                                  std::string_view more = "") const;
  /// The label of a collective of the step at `place`: "x@dp1".
  [[nodiscard]] std::string label(std::string_view of_step, int place) const;
  /// Moves a tensor of the step to `place`: its name, rank, and spread.
  void move(TensorSpec& spec, int place) const;

 private:
  const Program& step_;
  std::string name_;
  int places_, each_;
};

}  // namespace gpubench
