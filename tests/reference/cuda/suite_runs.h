// Runs whole suites on GPUs, judged as in a run; skips tests without GPUs.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/plan.h"
#include "harness/run/run.h"

namespace gpubench::testing {

/// Why there are fewer GPUs, by CUDA's error or their number; "" if there are enough.
[[nodiscard]] std::string skip_reason(int gpus);

/// Whether GPUBENCH_REQUIRE_GPU=1 makes a missing GPU a failure.
[[nodiscard]] bool gpus_are_required();

/// Skips the test, or fails it if GPUs are required, without that many GPUs.
#define GPUBENCH_NEEDS_GPUS(gpus)                                                         \
  if (const std::string why = ::gpubench::testing::skip_reason(gpus); !why.empty()) {     \
    if (::gpubench::testing::gpus_are_required()) FAIL() << "a GPU is required: " << why; \
    GTEST_SKIP() << why;                                                                  \
  }

/// One record per case. Cases of several ranks open them by `options`.
[[nodiscard]] std::vector<CaseRecord> run_cases(Backend& backend, const std::vector<PlannedCase>& plan,
                                                const RunOptions& options);

/// Expects each case to pass or to be unsupported with a reason; returns the number that pass.
int expect_passes(const std::vector<CaseRecord>& records);

}  // namespace gpubench::testing
