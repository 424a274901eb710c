#include "harness/core/text/quantity.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpubench {
namespace {

TEST(FormatQuantity, ThreeDigitsAndDecimalPrefixes) {
  EXPECT_EQ(format_quantity(0.0, "B"), "0 B");
  EXPECT_EQ(format_quantity(0.125, "B/s"), "0.125 B/s");
  EXPECT_EQ(format_quantity(1.0, "FLOP"), "1.00 FLOP");
  EXPECT_EQ(format_quantity(1234.0, "B"), "1.23 kB");
  EXPECT_EQ(format_quantity(45.6e9, "B/s"), "45.6 GB/s");
  EXPECT_EQ(format_quantity(789e12, "FLOP/s"), "789 TFLOP/s");
  EXPECT_EQ(format_quantity(1.391e15, "FLOP/s"), "1.39 PFLOP/s");
}

TEST(FormatQuantity, AGigabyteIsTenToTheNine) {
  EXPECT_EQ(format_quantity(1e9, "B"), "1.00 GB");
  EXPECT_EQ(format_quantity(1073741824.0, "B"), "1.07 GB");
}

TEST(FormatQuantity, RoundingNeverShowsAThousand) {
  EXPECT_EQ(format_quantity(999.4, "B"), "999 B");
  EXPECT_EQ(format_quantity(999.6, "B"), "1.00 kB");
  EXPECT_EQ(format_quantity(9.996, "B"), "10.0 B");
  EXPECT_EQ(format_quantity(99.96, "B"), "100 B");
}

TEST(FormatQuantity, ShowsNonFiniteValues) {
  EXPECT_EQ(format_quantity(std::nan(""), "B"), "nan");
  EXPECT_EQ(format_quantity(INFINITY, "B"), "inf");
}

TEST(FormatQuantity, AGivenPrefixStaysForAnySize) {
  EXPECT_EQ(format_with_prefix(1.27e12, "FLOP/s", 'G'), "1270 GFLOP/s");
  EXPECT_EQ(format_with_prefix(21.84e9, "FLOP/s", 'G'), "21.8 GFLOP/s");
  EXPECT_EQ(format_with_prefix(0.9996e9, "B/s", 'G'), "1.00 GB/s");
  EXPECT_EQ(format_with_prefix(0.123e9, "B/s", 'G'), "0.123 GB/s");
  EXPECT_EQ(format_with_prefix(12.3e6, "B/s", 'G'), "0.0123 GB/s");
  EXPECT_EQ(format_with_prefix(7.3e6, "B/s", 'G'), "0.00730 GB/s");
  EXPECT_EQ(format_with_prefix(1e6, "B/s", 'G'), "0.00100 GB/s");
  EXPECT_EQ(format_with_prefix(0.9e6, "B/s", 'G'), "<0.001 GB/s");
  EXPECT_EQ(format_with_prefix(0.0, "B/s", 'G'), "0 B/s");
  EXPECT_EQ(format_with_prefix(std::nan(""), "B/s", 'G'), "nan");
}

TEST(FormatTime, PicksTheUnit) {
  EXPECT_EQ(format_time_ns(850), "850 ns");
  EXPECT_EQ(format_time_ns(12345), "12.3 us");
  EXPECT_EQ(format_time_ns(1.5e6), "1.50 ms");
  EXPECT_EQ(format_time_ns(4.56e9), "4.56 s");
  EXPECT_EQ(format_duration(0.0), "0 s");  // not "0.00 ns"
  EXPECT_EQ(format_duration(12.3), "12.3 s");
  EXPECT_EQ(format_duration(252), "4m12s");
  EXPECT_EQ(format_duration(3900), "1h05m");
}

TEST(FormatCount, GroupsDigits) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(12845056), "12,845,056");
  EXPECT_EQ(format_count(-100000), "-100,000");
  EXPECT_EQ(format_count(-100), "-100");
}

TEST(FormatExact, ReadsBackToTheSameNumber) {
  EXPECT_EQ(format_exact(0.1), "0.1");
  EXPECT_EQ(std::stod(format_exact(1.0 / 3.0)), 1.0 / 3.0);
  EXPECT_EQ(format_exact(std::nan("")), "nan");
}

TEST(FormatInterval, HalfTheWidthOverTheMedian) {
  EXPECT_EQ(format_interval(100.0, 99.0, 101.0), "1.0%");
  EXPECT_EQ(format_interval(100.0, 70.0, 130.0), "30%");
  EXPECT_EQ(format_interval(100.0, 0.0, 200.0), "100%");
  EXPECT_EQ(format_interval(100.0, 0.0, 201.0), ">100%");
  EXPECT_EQ(format_interval(100.0, 1.0, 1e9), ">100%");
  EXPECT_EQ(format_interval(100.0, 100.0, 100.0), "-");
  EXPECT_EQ(format_interval(0.0, 0.0, 0.0), "-");
  EXPECT_EQ(format_interval(100.0, std::nan(""), 130.0), "-");
}

}  // namespace
}  // namespace gpubench
