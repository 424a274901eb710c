// How an op can be shared by several ranks, each of which has a part of some of its operands: what it needs of its
// inputs, and what each rank then has of its outputs. One table for all transforms that cut tensors; what it lacks runs
// whole on every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/collective.h"

namespace gpubench {

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

}  // namespace gpubench
