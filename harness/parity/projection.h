// A check of whole outputs by few sums.
//
// Where an output is linear along an axis (a product's columns, a convolution's channels), the check adds its elements
// along it with random signs, and the operands with this axis in the same way. The op on these must give the same sums:
// Freivalds' check (1977), at 1/n of the work for an axis of n elements.
//
// Bound of a correct output's sums: an accepted element is within h + T of the true one, h half the distance between
// numbers of the storage type and T its bound. The signs are independent of the errors, so by Hoeffding's inequality
// the sum of n errors exceeds t sqrt(sum (h + T)^2) with a probability of at most 2 exp(-t^2 / 2). t makes that 1e-12
// for all sums of an output together.
//
// Results that are exact and stored exactly (exact_data.h) allow no error. The factors are then odd whole numbers up to
// 1023 with random signs: a single wrong element always shows, and errors cancel in one sum only with equal factors.
// Elements that are not whole multiples of the common unit are suspects too.
//
// T is known for judged elements only: it is the largest ratio to the root mean square of h in the same sum. So a sum
// that is off is not a verdict; its elements are judged one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "harness/parity/compare_elements.h"
#include "reference/ops/definition.h"

namespace gpubench {

struct ProjectionResult {
  /// The elements of the sums that are off, up to the requested number, ascending.
  std::vector<std::int64_t> suspects;
  /// The smallest error of a single element that makes its sum a suspect, in units of the output's root mean square. 0
  /// where any wrong bit shows, and where the root mean square is 0.
  double smallest_fault = 0.0;
};

/// Calls work(i) for 0 <= i < count, on several threads where that pays.
using Parallel = std::function<void(std::int64_t count, double flop, const std::function<void(std::int64_t)>& work)>;

/// Projects an output if the op is linear along one of its axes and that costs at most `flop_budget` fp64 operations
/// (reading an element counts as one). The axis is cut into as many groups as this allows, each with a separate sum.
/// `judged`: judged elements of the output; at least one. `max_suspects`: maximum of named elements of sums that are
/// off, the farthest first; a sum is named whole, and at least one is. `multiple_of`: the unit of exact results (these
/// take one group); else 0. Nothing for fp64 outputs that are not exact: the sums have no higher precision.
[[nodiscard]] std::optional<ProjectionResult> project(const Operands& operands, const TensorView& output, int index,
                                                      std::span<const CheckedElement> judged, std::int64_t max_suspects,
                                                      double flop_budget, std::uint64_t key, const Parallel& parallel,
                                                      double multiple_of = 0.0);

}  // namespace gpubench
