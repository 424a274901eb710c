// How long a planned case will take and how much memory it wants: rough, for --dry-run and the first line of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "harness/cli/remaining.h"
#include "harness/measure/protocol.h"
#include "harness/parity/judge.h"
#include "harness/plan/plan.h"

namespace gpubench {

struct Estimate {
  double seconds = 0.0;     ///< timing and checking
  double checking_s = 0.0;  ///< of them
  std::int64_t bytes = 0;   ///< one copy of the tensors; cold copies come on top, at most a quarter of the free memory
};

/// What a run puts into a case: checks by the tier, rounds by the preset, or the tier's own.
struct Effort {
  Tier tier;
  std::optional<Preset> preset{};
  CheckMode check = CheckMode::sample;
};

/// From the ops of the case, the protocol of the preset and what a core of a server's processor reaches (estimate.cpp),
/// `cores` of them. Builds the case's program. A device that is no processor is not known to fit.
[[nodiscard]] Estimate estimate(const PlannedCase& planned, const Effort& effort, int cores);

/// The same for Remaining, by id.
[[nodiscard]] std::unordered_map<std::string, ExpectedCase> expected_cases(std::span<const PlannedCase> planned,
                                                                           const Effort& effort, int cores);

/// Sum of the seconds, largest of the bytes.
[[nodiscard]] Estimate estimate(std::span<const PlannedCase> planned, const Effort& effort, int cores);

}  // namespace gpubench
