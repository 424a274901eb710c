// What the tuner asks of a device besides kernels and events: memory, data to tune on, and a spin, whose lengths are
// kept.
#pragma once

#include <cstdint>
#include <vector>

namespace gpubench::testing {

/// Nanoseconds of the spins so far.
[[nodiscard]] std::vector<std::uint64_t>& spins();

}  // namespace gpubench::testing
