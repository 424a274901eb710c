// Copies of programs: the values of one in another, and a whole program in fp64.
#pragma once

#include <functional>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

/// Adds the values of `from` to `to`, without the ops that produce them: sources, reservations, parts and updates.
/// `edit` may change each spec on the way (a rank's name and place, a wider type). Returns the new ids, in order.
/// `drop`, by value, where it is not empty: those to leave out. They get no id; nothing may be a part or an update of
/// them.
std::vector<ValueId> copy_values(const Program& from, Program& to, const std::function<void(TensorSpec&)>& edit,
                                 const std::vector<bool>& drop = {});

/// What `program` would compute without rounding, for end-to-end comparisons: every floating-point tensor is stored as
/// f64, and every op accumulates in f64; integers stay. Values, ops and their indices correspond one to one.
[[nodiscard]] Program widen(const Program& program);

}  // namespace gpubench
