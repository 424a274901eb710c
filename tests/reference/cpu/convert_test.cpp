// Every number of the narrow types, and every position of an f32 between two of them, against the harness's conversions
// (harness/core/dtype.h), with each instruction set.
#include "reference/cpu/runs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "tests/reference/cpu/each_target.h"

namespace gpubench::cpu {
namespace convert_test {

class Convert : public gpubench::testing::EachTarget {};
GPUBENCH_ON_EACH_TARGET(Convert);

// NaN payloads may differ.
bool same(float a, float b) {
  return std::isnan(b) ? std::isnan(a) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

TEST_P(Convert, WidensEveryNumberExactly) {
  for (const DType type : {DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
    const std::int64_t codes = std::int64_t{1} << bits_of(type);
    std::vector<std::byte> stored;
    for (std::int64_t code = 0; code < codes; ++code) {
      stored.push_back(static_cast<std::byte>(code & 0xFF));
      if (size_of(type) == 2) stored.push_back(static_cast<std::byte>(code >> 8));
    }
    std::vector<float> wide(static_cast<std::size_t>(codes));
    widen_elements(type, stored.data(), codes, wide.data());
    for (std::int64_t code = 0; code < codes; ++code) {
      const auto want = static_cast<float>(load(type, stored.data(), code));
      ASSERT_TRUE(same(wide[static_cast<std::size_t>(code)], want)) << name(type) << " " << code << ": " << want;
    }
  }
}

// Around every number of the type: the number, its f32 neighbours, the midpoint to the next and its neighbours.
TEST_P(Convert, RoundsToTheNearestEvenNumber) {
  for (const DType type : {DType::f16, DType::bf16}) {
    std::vector<float> wide{1e30F, -1e30F, 65519.996F, 65520.0F, 1e-10F, -1e-10F, 1e-42F, INFINITY, NAN, -NAN};
    for (std::uint32_t code = 0; code < 0xFFFFU; ++code) {
      const std::uint16_t pair[] = {static_cast<std::uint16_t>(code), static_cast<std::uint16_t>(code + 1)};
      const auto* bytes = reinterpret_cast<const std::byte*>(pair);
      const double low = load(type, bytes, 0), next = load(type, bytes, 1);
      for (const double at : {low, 0.5 * (low + next)}) {
        const auto middle = static_cast<float>(at);
        wide.insert(wide.end(), {middle, std::nextafterf(middle, INFINITY), std::nextafterf(middle, -INFINITY)});
      }
    }
    std::vector<std::byte> got(2 * wide.size());
    narrow_elements(type, wide.data(), static_cast<std::int64_t>(wide.size()), got.data());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      std::byte want[2];
      store(type, want, static_cast<double>(wide[i]));
      const auto rounded = static_cast<float>(load(type, got.data(), static_cast<std::int64_t>(i)));
      ASSERT_TRUE(same(rounded, static_cast<float>(load(type, want))))
          << name(type) << " " << wide[i] << ": " << rounded;
    }
  }
}

TEST_P(Convert, LeavesMemoryBeyondTheLastElement) {
  for (std::int64_t count = 0; count < 40; ++count) {
    std::vector<float> wide(41, 7.0F);
    std::vector<std::uint16_t> narrow(41, 0x3C00);  // 1 in f16
    widen_elements(DType::f16, reinterpret_cast<const std::byte*>(narrow.data()), count, wide.data());
    for (std::size_t i = 0; i < wide.size(); ++i) EXPECT_EQ(wide[i], i < static_cast<std::size_t>(count) ? 1.0F : 7.0F);
    narrow.assign(41, 0xFFFF);
    narrow_elements(DType::f16, wide.data(), count, reinterpret_cast<std::byte*>(narrow.data()));
    for (std::size_t i = 0; i < narrow.size(); ++i)
      EXPECT_EQ(narrow[i], i < static_cast<std::size_t>(count) ? 0x3C00 : 0xFFFF);
  }
}

}  // namespace convert_test
}  // namespace gpubench::cpu
