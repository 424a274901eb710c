// Labels and tokens for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/core/hash.h"

namespace gpubench::testing {

/// Whole numbers in [0, limit), the same each time.
inline std::vector<double> indices(std::int64_t count, std::int64_t limit, std::uint64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(hash_at(seed, i) % static_cast<std::uint64_t>(limit));
  }
  return values;
}

}  // namespace gpubench::testing
