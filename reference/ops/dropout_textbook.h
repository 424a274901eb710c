// The random numbers of dropout's textbook, for the test that compares them with published ones.
#pragma once

#include <array>
#include <cstdint>

namespace gpubench {

/// Philox4x32-10 (Salmon et al., SC 2011).
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                                         std::array<std::uint32_t, 2> key);

}  // namespace gpubench
