// Members of a collective and their tensors, for all builders of collectives.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

struct Members {
  RankGroup group;
  std::vector<int> held;    ///< places in the group
  std::vector<int> across;  ///< mesh axes along which members differ

  [[nodiscard]] bool is_across(const AxisSpread& spread) const;
};

/// `given`: empty for ranks 0, 1, ... Throws ProgramError for a group of another size than `ranks`, and if the program
/// holds none of its members.
[[nodiscard]] Members members_of(const Program& program, OpKind kind, int ranks, const RankGroup& given);

/// Throws ProgramError unless the tensor is dense and on this rank.
void expect_on_rank(OpKind kind, const TensorSpec& tensor, int rank);
/// Throws ProgramError unless each held member has equally many tensors, of the same shapes and types.
void expect_equal_specs(const Program& program, OpKind kind, const Members& members, std::span<const ValueId> x);

/// The spread of a result that all members share: the operand's, without that over the members.
[[nodiscard]] std::vector<AxisSpread> alike_on(const Members& members, const TensorSpec& operand);
[[nodiscard]] ValueId reserve_on(Program& program, std::string_view label, const TensorSpec& like, int rank,
                                 const Shape& shape, std::vector<AxisSpread> spread);
/// A new tensor on the rank of x, equal on all members.
[[nodiscard]] ValueId reserve_replicated(Program& program, std::string_view label, const Members& members, ValueId x,
                                         const Shape& shape);

/// A call without outputs.
[[nodiscard]] OpCall call_of(OpKind kind, Attributes attributes, const Math& math, std::string label,
                             const Members& members, std::span<const ValueId> inputs);
std::vector<ValueId> appended(Program& program, OpCall call);

}  // namespace gpubench
