// Limits these tests to one of Highway's instruction sets: GPUBENCH_TEST_TARGET=AVX2 or SSE4.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <string_view>

#include "tests/reference/cpu/each_target.h"

namespace gpubench::cpu {
namespace one_target {

class OneTarget : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* name = std::getenv("GPUBENCH_TEST_TARGET");
    if (name == nullptr) return;
    (void)usable_isa();  // chooses the instruction set at the first call
    for (const std::int64_t target : testing::targets) {
      if (std::string_view(hwy::TargetName(target)) != name) continue;
      if ((hwy::SupportedTargets() & target) == 0) GTEST_SKIP() << "this processor lacks " << name;
      hwy::DisableTargets(~target);
      return;
    }
    FAIL() << "GPUBENCH_TEST_TARGET is " << name << "; expected the name of a target";
  }
};

const ::testing::Environment* const registered = ::testing::AddGlobalTestEnvironment(new OneTarget);

}  // namespace one_target
}  // namespace gpubench::cpu
