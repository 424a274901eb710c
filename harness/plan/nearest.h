// What the user may have meant: for every message about a name that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpubench {

/// Letters to insert, delete, replace or swap with their neighbour to get from `a` to `b` (optimal string alignment).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The first of the known names that is closest to `wanted`; empty where none is close (more than a third of its
/// letters wrong, but two are always forgiven in names longer than two). A known name that `wanted` begins counts as
/// close.
[[nodiscard]] std::string nearest(std::string_view wanted, std::span<const std::string> known);

/// "; did you mean 'gemm'?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view wanted, std::span<const std::string> known);

}  // namespace gpubench
