// Whether a wrong result is one of a lower precision: an "f32" product of tf32 inputs, partial sums in 16 bits.
#pragma once

#include <span>
#include <string>

#include "reference/ops/definition.h"

namespace gpubench {

/// The name of the first arithmetic below the declared one that explains these elements of sums of products (ops with a
/// LinearAxis): each is right within its bound; one uses a sixteenth of it or more (correct sums use 0.07 to 0.6 of
/// their own bounds: what is far below is another fault); one is off by more than a wrong store can make it; and they
/// are not all the right ones times one number. Tried, where the types have them: bf16 inputs (for which the declared
/// bound holds, round the sums of the rounded inputs), tf32 inputs, fast accumulation, partial sums rounded to the
/// output's type, sums in f16, sums in bf16. Empty where none explains them. `wrong`: elements of the output outside
/// the bound of the declared arithmetic, not empty; of very many the first 4096 are looked at.
[[nodiscard]] std::string lower_precision(const Operands& operands, int output, std::span<const Mismatch> wrong);

}  // namespace gpubench
