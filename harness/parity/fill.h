// Inputs that every machine agrees on: integer arithmetic on a hash of (case, tensor, element, seed), converted once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "harness/core/tensor.h"

namespace gpubench {

/// Writes the whole tensor `spec` to `out` (spec.bytes() of them, laid out as spec.layout) as spec.fill says. Elements
/// are functions of (case_key, spec.global_name(), logical linear index, seed) alone: the same bits for any layout,
/// rank count, thread count or compiler. The index of an element of one rank's part is that in the tensor that all
/// parts make up. `case_key` is Case::id_without_ranks().
void fill(const TensorSpec& spec, std::string_view case_key, std::uint64_t seed, std::span<std::byte> out);

}  // namespace gpubench
