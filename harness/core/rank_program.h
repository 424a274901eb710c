// What one rank does of a sequence: two lanes of steps, and which step waits for the other lane.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/core/backend.h"

namespace gpubench {

/// Bound work of a rank's backend, or of the communicator of all.
struct LaneStep {
  const Launch* work = nullptr;        ///< held by the sequence
  const std::string* label = nullptr;  ///< what the op is called; held by the sequence
  std::uint64_t waits_for = 0;         ///< as many steps of the other lane must be done
};

/// The lanes run side by side as far as data flow lets them, each in its order.
struct RankProgram {
  std::vector<LaneStep> compute;
  std::vector<LaneStep> communication;
};

}  // namespace gpubench
