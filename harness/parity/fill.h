// Inputs that are the same on every machine: integer arithmetic on a hash of (case, tensor, element, seed), converted
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "harness/core/tensor.h"

namespace gpubench {

/// Writes the tensor `spec` to `out`: spec.bytes() bytes in spec.layout, filled by spec.fill. Elements depend only on
/// (case_key, spec.global_name(), logical linear index, seed): the same bits for any layout, rank count, thread count
/// or compiler. Indices of a rank's part are those in the global tensor. `case_key` is Case::id_without_ranks().
void fill(const TensorSpec& spec, std::string_view case_key, std::uint64_t seed, std::span<std::byte> out);

}  // namespace gpubench
