// A whole output by few sums: what a sample of its elements leaves unseen.
//
// Where an output is linear along an axis (a product's columns, a convolution's channels), its elements there are added
// with random signs, and so are the operands that have this axis; the same op on these must give the same sums. That
// is Freivalds' check (1977), at 1/n of the work for an axis of n elements, by the textbook itself on smaller operands.
//
// How far a correct output's sums may be off. An element that the check would accept is within h + T of the true one, h
// being half the distance between numbers of the storage type and T its bound. The signs know nothing of the errors,
// so by Hoeffding's inequality the sum of n errors exceeds t sqrt(sum (h + T)^2) with a probability of at most
// 2 exp(-t^2 / 2), whatever the errors are. t makes that 1e-12 for all sums of an output together.
//
// Of results that are exact, and stored so (exact_data.h), no sum may be off at all. Then the factors are odd whole
// numbers up to 1023 with random signs, so that a single wrong element always shows, and errors that make up for each
// other in one sum would need the same factors. Elements that are no whole multiples of what all are, by whatever
// little, are suspects too.
//
// T is not computed for every element: it is taken from those that were judged, as the largest ratio to the root mean
// square of h in the same sum. So a sum that is off is no verdict: it says where to look, and its elements are judged
// one by one.
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
  /// The elements of the sums that are off, of as many as were asked for, ascending.
  std::vector<std::int64_t> suspects;
  /// One element that is off by this much or more makes its sum a suspect, wherever it is; in units of the output's
  /// root mean square. 0 where the output is, and where any wrong bit shows.
  double smallest_fault = 0.0;
};

/// Calls work(i) for i from 0 to below a count, on several threads where that pays.
using Parallel = std::function<void(std::int64_t count, double flop, const std::function<void(std::int64_t)>& work)>;

/// Projects an output of an op, if the op is linear along one of its axes and that costs no more than `flop_budget`
/// fp64 operations (reading an element counts as one); the axis is cut into as many groups as this allows, each with a
/// sum of its own. `judged`: elements of the output that were judged; at least one. `max_suspects`: elements of sums
/// that are off to name, those of the farthest first; a sum is named whole, and one always. `multiple_of`: of exact
/// results, what they are whole multiples of (these take one group); else 0. Nothing for outputs in fp64 that are not
/// exact, whose own arithmetic the sums would need to surpass.
[[nodiscard]] std::optional<ProjectionResult> project(const Operands& operands, const TensorView& output, int index,
                                                      std::span<const CheckedElement> judged, std::int64_t max_suspects,
                                                      double flop_budget, std::uint64_t key, const Parallel& parallel,
                                                      double multiple_of = 0.0);

}  // namespace gpubench
