// How an op can be shared by several ranks, each of which has a part of some of its operands: what it needs of its
// inputs, and what each rank then has of its outputs. One table for all transforms that cut tensors; what it lacks runs
// whole on every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/core/program.h"
#include "reference/ops/collective.h"

namespace gpubench {

/// Equal parts along an axis of a tensor, one for each rank.
struct Cut {
  int axis = 0;
  std::vector<std::int64_t> sections{};  ///< as AxisSpread::sections; empty: one
  friend bool operator==(const Cut&, const Cut&) = default;
};
/// None: every rank has the whole.
using MaybeCut = std::optional<Cut>;

struct OpSharding {
  std::vector<MaybeCut> inputs;   ///< what each has to be
  std::vector<MaybeCut> outputs;  ///< what each is then
  /// By output: where each rank has an addend of it (of a maximum: a candidate), how they make up the whole.
  std::vector<std::optional<Reduction>> addends;
  bool bias_on_first = false;  ///< of a product of addends: one rank adds the bias
};

/// Of a call of a program of one rank whose inputs are cut as `inputs` says.
[[nodiscard]] OpSharding sharding_of(const Program& program, const OpCall& call, std::span<const MaybeCut> inputs);

}  // namespace gpubench
