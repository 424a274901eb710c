// What the builders of collectives share: who takes part, and the tensors that each member has.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

/// Who takes part in a collective, and whose tensors the program has.
struct Members {
  RankGroup group;
  std::vector<int> held;    ///< their places in the group
  std::vector<int> across;  ///< the axes of the mesh that members differ along

  [[nodiscard]] bool is_across(const AxisSpread& spread) const;
};

/// Of an op of so many ranks; `given`: empty for ranks 0, 1, ... Throws ProgramError for a group of another size, and
/// where the program holds none of its ranks.
[[nodiscard]] Members members_of(const Program& program, OpKind kind, int ranks, const RankGroup& given);

/// Throws ProgramError unless it is a dense tensor on this rank.
void expect_on_rank(OpKind kind, const TensorSpec& tensor, int rank);
/// Throws ProgramError unless there are as many tensors of each member that is held, all of one shape and type.
void expect_alike(const Program& program, OpKind kind, const Members& members, std::span<const ValueId> x);

/// How a result is spread that all members have alike: as its operand, but no longer over them.
[[nodiscard]] std::vector<AxisSpread> alike_on(const Members& members, const TensorSpec& operand);
/// A new tensor with the type and role of another.
[[nodiscard]] ValueId reserve_on(Program& program, std::string_view label, const TensorSpec& like, int rank,
                                 const Shape& shape, std::vector<AxisSpread> spread);
/// A new tensor beside another, on its rank; what all members have alike there.
[[nodiscard]] ValueId reserve_beside(Program& program, std::string_view label, const Members& members, ValueId x,
                                     const Shape& shape);

/// A call that its outputs are still to be added to.
[[nodiscard]] OpCall call_of(OpKind kind, Attributes attributes, const Math& math, std::string label,
                             const Members& members, std::span<const ValueId> inputs);
/// Appends it; returns its outputs.
std::vector<ValueId> appended(Program& program, OpCall call);

}  // namespace gpubench
