// Tests that run once per Highway instruction set that this processor has.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <string>

#include "reference/cpu/usable_isa.h"

namespace gpubench::testing {

class EachTarget : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    (void)cpu::usable_isa();  // chooses the instruction set at the first call
    if ((hwy::SupportedTargets() & GetParam()) == 0) GTEST_SKIP() << "not on this processor";
    hwy::DisableTargets(~GetParam());
  }
  void TearDown() override { hwy::DisableTargets(0); }
};

#if defined(__x86_64__)
inline constexpr std::int64_t targets[] = {HWY_SSE4, HWY_AVX2, HWY_AVX3};
#else
inline constexpr std::int64_t targets[] = {HWY_STATIC_TARGET};
#endif

}  // namespace gpubench::testing

#define GPUBENCH_ON_EACH_TARGET(Fixture)                                                   \
  INSTANTIATE_TEST_SUITE_P(On, Fixture, ::testing::ValuesIn(::gpubench::testing::targets), \
                           [](const auto& target) { return std::string(hwy::TargetName(target.param)); })
