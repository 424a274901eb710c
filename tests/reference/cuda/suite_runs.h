// Whole suites on GPUs, judged as a run judges them; and what a test says where there is no GPU.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/plan.h"
#include "harness/run/run.h"

namespace gpubench::testing {

/// Why there are not so many GPUs: what CUDA says, or how many it sees; "" where there are.
[[nodiscard]] std::string skip_reason(int gpus);

/// Whether GPUBENCH_REQUIRE_GPU=1 makes a missing GPU a failure.
[[nodiscard]] bool gpus_are_required();

/// Skips the test, or fails it, where there are not so many GPUs.
#define GPUBENCH_NEEDS_GPUS(gpus)                                                         \
  if (const std::string why = ::gpubench::testing::skip_reason(gpus); !why.empty()) {     \
    if (::gpubench::testing::gpus_are_required()) FAIL() << "a GPU is required: " << why; \
    GTEST_SKIP() << why;                                                                  \
  }

/// The records of all cases, one for each. Cases of several ranks open them by `options`.
[[nodiscard]] std::vector<CaseRecord> run_cases(Backend& backend, const std::vector<PlannedCase>& plan,
                                                const RunOptions& options);

/// Expects each to pass, or to be unsupported with a reason; returns how many pass.
int expect_passes(const std::vector<CaseRecord>& records);

}  // namespace gpubench::testing
