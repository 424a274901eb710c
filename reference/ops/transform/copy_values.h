// Values of one program in another.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "harness/core/program.h"

namespace gpubench {

/// Adds the values of `from` to `to`, without the ops that produce them: sources, reservations, parts and updates.
/// `edit` may change each spec on the way (a rank's name and place, a wider type). Returns the new ids, in order.
/// Values that `drop` names are left out and get no id; nothing may be a part or an update of them.
std::vector<ValueId> copy_values(const Program& from, Program& to, const std::function<void(TensorSpec&)>& edit,
                                 const std::set<ValueId>& drop = {});

}  // namespace gpubench
