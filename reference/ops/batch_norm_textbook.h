// Batch norm of statistics that were not taken of x but summed up where x was made, for ops that do both.
#pragma once

#include <string>

#include "reference/ops/definition.h"

namespace gpubench {

/// Judges an output of `norm`, a batch_norm_forward or batch_norm_relu_forward whose statistics are made of the sums of
/// x's elements and of their squares, each taken before or after the element was rounded to `stored`.
void judge_batch_norm_of_sums(const Operands& norm, DType stored, int output, std::span<const std::int64_t> wanted,
                              std::span<Expected> judged);
/// The rule behind that bound, as OpDefinition::bound().
[[nodiscard]] std::string batch_norm_of_sums_bound(const CallSpecs& norm, int output);

}  // namespace gpubench
