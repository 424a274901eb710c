// Choosing among implementations by timing them, outside of all measurement.
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// How many ways of doing `flop` operations are worth making: one where the best would save less than trying them
/// costs, a few tenths of a millisecond a run.
[[nodiscard]] inline std::size_t ways_worth_trying(double flop) { return flop < 0x1p29 ? 1 : 4; }

/// The fastest of the candidates, which take turns on scratch tensors like `tensors`; the first, unless another takes
/// at least 3% less time. All are of an instruction set that was tried out (usable_isa.h): their results are not looked
/// at here but by the check.
///
/// The first is taken, too, where the same bits are wanted of every run: which is the fastest may depend on the day.
/// A pinned call takes the candidate of that name, untimed; so does one whose remembered implementation is among them.
/// Where the scratch tensors would take most of the free memory, the first candidate is taken.
/// Throws Unsupported ("cpu <kind> '<label>': ...") where the pinned one is not among them.
[[nodiscard]] Plan fastest_of(const OpCall& call, std::span<const Plan> candidates, std::span<const TensorSpec> tensors,
                              const CpuContext& context);

}  // namespace gpubench::cpu
