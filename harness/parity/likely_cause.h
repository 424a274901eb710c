// The likely cause of a wrong result: the one fault with which the textbook gives the same numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/parity/compare_elements.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// "operand left out: 'bias'", "y is 2 times what it should be": the fault that predicts, within the bound, 99% of
/// `elements` and 99% of the wrong ones among them. Empty where no fault does, or where several do that predict
/// different numbers.
///
/// Faults of calls and formulas (faults.h) and of stores come first; then a factor, an offset or a permutation of the
/// whole output. Large operands are not changed (max_changed_elements). `flop`: fp64 work of the textbook for the
/// elements of one fault, for faults of whole outputs.
[[nodiscard]] std::string likely_cause(const Operands& operands, int output, std::span<const CheckedElement> elements,
                                       double flop);

/// A sample of elements for likely_cause(), as ascending logical linear indices: some of each judged unit `unit(0)` to
/// `unit(judged - 1)`, or of as many units as `flop` allows, and the same number of wrong ones.
[[nodiscard]] std::vector<std::int64_t> cause_sample(const CheckUnits& units, std::int64_t judged,
                                                     const std::function<std::int64_t(std::int64_t)>& unit,
                                                     std::span<const Mismatch> wrong, double flop);

}  // namespace gpubench
