#include "harness/hardware/peaks.h"

#include <gtest/gtest.h>

#include <string>

namespace gpubench {
namespace peaks_test {

std::string row_of(std::string_view device_name, int units) {
  const DeviceRow* row = find_device(device_name, units);
  return row == nullptr ? "none" : std::string(row->name);
}

TEST(FindDevice, KnowsNamesAsDriversWriteThem) {
  EXPECT_EQ(row_of("NVIDIA H200", 132), "H200 SXM");
  EXPECT_EQ(row_of("NVIDIA H200 NVL", 132), "H200 NVL");
  EXPECT_EQ(row_of("NVIDIA H100 80GB HBM3", 132), "H100 SXM");
  EXPECT_EQ(row_of("NVIDIA H100 PCIe", 114), "H100 PCIe");
  EXPECT_EQ(row_of("NVIDIA H100 NVL", 132), "H100 NVL");
  EXPECT_EQ(row_of("NVIDIA A100-SXM4-80GB", 108), "A100 80GB SXM");
  EXPECT_EQ(row_of("NVIDIA A100-SXM4-40GB", 108), "A100 40GB SXM");
  EXPECT_EQ(row_of("A100-PCIE-40GB", 108), "A100 40GB PCIe");
  EXPECT_EQ(row_of("NVIDIA A100 80GB PCIe", 108), "A100 80GB PCIe");
  EXPECT_EQ(row_of("Tesla V100-SXM2-16GB", 80), "V100 SXM2");
  EXPECT_EQ(row_of("Tesla V100-PCIE-32GB", 80), "V100 PCIe");
  EXPECT_EQ(row_of("NVIDIA GeForce RTX 4090", 128), "RTX 4090");
  EXPECT_EQ(row_of("NVIDIA GH200 480GB", 132), "GH200 96GB");
  EXPECT_EQ(row_of("NVIDIA GH200 144G HBM3e", 132), "GH200 144GB");
  EXPECT_EQ(row_of("NVIDIA B200", 148), "B200");
  EXPECT_EQ(row_of("NVIDIA B300 SXM6 AC", 148), "B300");
  EXPECT_EQ(row_of("NVIDIA L40S", 142), "L40S");
}

TEST(FindDevice, DoesNotTakeOneCardForAnother) {
  EXPECT_EQ(row_of("NVIDIA A10G", 80), "none");
  EXPECT_EQ(row_of("NVIDIA L40", 142), "none");
  EXPECT_EQ(row_of("NVIDIA H20", 78), "none");
  EXPECT_EQ(row_of("NVIDIA H800", 132), "none");
  EXPECT_EQ(row_of("NVIDIA GeForce RTX 3090 Ti", 84), "none");
  EXPECT_EQ(row_of("NVIDIA GeForce RTX 4090 D", 114), "none");
  EXPECT_EQ(row_of("NVIDIA GeForce RTX 4090 Laptop GPU", 76), "none");
  EXPECT_EQ(row_of("NVIDIA A100-SXM-64GB", 124), "none");
  EXPECT_EQ(row_of("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14), "none");
  EXPECT_EQ(row_of("NVIDIA H200", 16), "none");  // a slice of a GPU without MIG in its name
  EXPECT_EQ(row_of("", 132), "none");
  EXPECT_EQ(row_of("NVIDIA", 132), "none");
}

TEST(FindDevice, HostileNamesMatchNoDevice) {
  EXPECT_EQ(row_of("\x1b]0;H200\x07", 132), "none");
  EXPECT_EQ(row_of("NVIDIA H200" + std::string(100000, ' '), 132), "none");
  EXPECT_EQ(row_of(std::string("H200\0NVL evil", 13), 132), "none");
  EXPECT_EQ(row_of("\xff\xfe H\xc3\xa9 200", 132), "none");
  EXPECT_EQ(row_of("nvidia h200\n", 132), "H200 SXM");  // only words count
}

TEST(DeviceRows, EveryFigureHasASourceAndItsEndsInOrder) {
  EXPECT_EQ(device_rows().size(), 29U);
  for (const DeviceRow& row : device_rows()) {
    EXPECT_FALSE(row.source.empty()) << row.name;
    EXPECT_LE(row.min_units, row.max_units) << row.name;
    EXPECT_TRUE(peak_bandwidth(row).has_value()) << row.name;
    EXPECT_TRUE(peak_rate(row, Rate::fp32).has_value()) << row.name;
    for (std::size_t i = 0; i < rate_count; ++i) {
      const auto figure = peak_rate(row, static_cast<Rate>(i));
      if (!figure) continue;
      EXPECT_FALSE(figure->source.empty()) << row.name;
      EXPECT_GT(figure->low, 1e11) << row.name;
      EXPECT_LE(figure->low, figure->high) << row.name;
      EXPECT_EQ(figure->low < figure->high, figure->confidence == Confidence::conflict) << row.name;
    }
  }
}

TEST(DeviceRows, EachIsFoundByItsOwnWordsAlone) {
  for (const DeviceRow& row : device_rows())
    EXPECT_EQ(row_of("NVIDIA " + std::string(row.words), row.max_units), row.name);
}

TEST(PeakRate, IsInOperationsPerSecondWithItsConfidence) {
  const DeviceRow* h200 = find_device("NVIDIA H200", 132);
  ASSERT_NE(h200, nullptr);
  EXPECT_EQ(peak_rate(*h200, Rate::bf16)->high, 989e12);
  EXPECT_EQ(peak_rate(*h200, Rate::bf16)->confidence, Confidence::sourced);
  EXPECT_EQ(peak_bandwidth(*h200)->high, 4.8e12);
  EXPECT_FALSE(peak_rate(*h200, Rate::fp4).has_value());
  EXPECT_EQ(h200->l2_mb.confidence, Confidence::measured);
  const DeviceRow* b200 = find_device("NVIDIA B200", 148);
  ASSERT_NE(b200, nullptr);
  EXPECT_EQ(peak_rate(*b200, Rate::fp64)->low, 37e12);
  EXPECT_EQ(peak_rate(*b200, Rate::fp64)->high, 40e12);
  EXPECT_EQ(peak_rate(*b200, Rate::fp64)->confidence, Confidence::conflict);
}

// Sheets print SMs x boost clock x operations per clock, rounded.
TEST(OperationsPerClock, GiveTheRatesThatSheetsPrint) {
  struct Card {
    const char* name;
    int units;
    double boost_hz;
  };
  for (const Card& card :
       {Card{"Tesla V100-SXM2-16GB", 80, 1.53e9}, Card{"NVIDIA A100-SXM4-80GB", 108, 1.41e9},
        Card{"NVIDIA A10", 72, 1.695e9}, Card{"NVIDIA L40S", 142, 2.52e9}, Card{"NVIDIA GeForce RTX 3090", 82, 1.695e9},
        Card{"NVIDIA GeForce RTX 4090", 128, 2.52e9}, Card{"NVIDIA GeForce RTX 5090", 170, 2.407e9},
        Card{"NVIDIA H100 80GB HBM3", 132, 1.83e9}, Card{"NVIDIA B200", 148, 1.856e9}}) {
    const DeviceRow* row = find_device(card.name, card.units);
    ASSERT_NE(row, nullptr) << card.name;
    for (const Rate rate : {Rate::tf32, Rate::fp16, Rate::bf16, Rate::fp8}) {
      const auto printed = peak_rate(*row, rate);
      const auto operations = operations_per_clock(row->capability, is_geforce(card.name), rate);
      ASSERT_EQ(printed.has_value(), operations.has_value()) << card.name << " " << name(rate);
      if (printed) {
        EXPECT_NEAR(card.units * card.boost_hz * *operations / printed->high, 1.0, 0.015)
            << card.name << " " << name(rate);
      }
    }
  }
}

TEST(OperationsPerClock, AGeForceCardReachesHalfWithFp32Accumulation) {
  EXPECT_EQ(operations_per_clock(89, false, Rate::bf16), 1024.0);
  EXPECT_EQ(operations_per_clock(89, true, Rate::bf16), 512.0);
  EXPECT_EQ(operations_per_clock(89, true, Rate::fp32), 256.0);
  EXPECT_TRUE(is_geforce("NVIDIA GeForce RTX 4080"));
  EXPECT_FALSE(is_geforce("NVIDIA RTX 6000 Ada Generation"));
}

TEST(OperationsPerClock, AreNotKnownForOtherChips) {
  EXPECT_FALSE(operations_per_clock(75, false, Rate::fp16).has_value());
  EXPECT_FALSE(operations_per_clock(120, false, Rate::bf16).has_value());
  EXPECT_FALSE(operations_per_clock(0, false, Rate::fp32).has_value());
}

// B200: 3996 MHz on 8192 bits: 8184 GB/s; 8000 are published.
TEST(BandwidthAt, IsDoubleDataRate) {
  EXPECT_DOUBLE_EQ(bandwidth_at(3996.0, 8192.0), 8.183808e12);
  EXPECT_DOUBLE_EQ(bandwidth_at(10501.0, 384.0), 1.008096e12);  // RTX 4090: 1008 GB/s
}

}  // namespace peaks_test
}  // namespace gpubench
