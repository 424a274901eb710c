#include "tests/reference/cuda/suite_runs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "harness/core/error.h"
#include "reference/cuda/runtime.h"

namespace gpubench::testing {
namespace {

class Records : public RunObserver {
 public:
  void phase(std::string_view, std::string_view) override {}
  void finished(const CaseRecord& record) override { records.push_back(record); }
  void note(std::string_view) override {}
  void tick() override {}
  std::vector<CaseRecord> records;
};

}  // namespace

std::string skip_reason(int gpus) {
  try {
    const int there = cuda::device_count();
    if (there >= gpus) return "";
    if (there > 0) return std::to_string(there) + " CUDA device(s); this needs " + std::to_string(gpus);
    return "no CUDA device";
  } catch (const BackendError& e) {
    return std::string("no CUDA device: ") + e.what();
  }
}

bool gpus_are_required() {
  const char* required = std::getenv("GPUBENCH_REQUIRE_GPU");
  return required != nullptr && std::string_view(required) == "1";
}

std::vector<CaseRecord> run_cases(Backend& backend, const std::vector<PlannedCase>& plan, const RunOptions& options) {
  Records seen;
  const StopFlag never{0};
  run_in_process(backend, plan, options, seen, never);
  EXPECT_EQ(seen.records.size(), plan.size());
  return std::move(seen.records);
}

int expect_passes(const std::vector<CaseRecord>& records) {
  int passed = 0;
  for (const CaseRecord& record : records) {
    passed += record.verdict == Verdict::pass ? 1 : 0;
    if (record.verdict == Verdict::unsupported) {
      EXPECT_NE(record.reason, "") << record.id;
    } else {
      EXPECT_EQ(record.verdict, Verdict::pass) << record.id << ": " << record.reason;
    }
  }
  return passed;
}

}  // namespace gpubench::testing
