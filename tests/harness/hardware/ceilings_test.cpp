#include "harness/hardware/peaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpubench {
namespace ceilings_test {

using ::testing::HasSubstr;

constexpr std::int64_t cache = 60000000;

DeviceInfo device(std::string name, int units, std::vector<std::pair<std::string, std::string>> properties = {}) {
  DeviceInfo info;
  info.kind = "cuda";
  info.name = std::move(name);
  info.units = units;
  info.cache_bytes = cache;
  info.properties = std::move(properties);
  return info;
}

DeviceInfo h200() {
  return device("NVIDIA H200", 132, {{"max_sm_mhz", "1980"}, {"max_memory_mhz", "3201"}, {"memory_bus_bits", "6144"}});
}

/// A passing case of one op that takes 1 ms, with enough copies to come from memory.
CaseRecord case_of(const std::string& kind, const std::string& recipe, double flop, double bytes) {
  CaseRecord record;
  record.c.suite = "suite";
  record.c.recipe = recipe;
  record.id = kind + "/" + recipe;
  record.verdict = Verdict::pass;
  record.memory_bytes = 4 * cache;
  OpParity op;
  op.kind = kind;
  op.verdict = Verdict::pass;
  record.parity.ops = {op};
  record.summary.rounds = 3;
  record.summary.median_ns = 1e6;
  record.derived.flop = flop;
  record.derived.bytes = bytes;
  record.derived.flop_per_s = flop * 1e3;
  record.derived.bytes_per_s = bytes * 1e3;
  record.derived.headline_unit = flop > 10 * bytes ? "FLOP/s" : "B/s";
  return record;
}

void run_at(CaseRecord& record, double sm_mhz, double memory_mhz) {
  RoundRecord round;
  round.telemetry = RoundTelemetry{};
  round.telemetry->sm_mhz = Spread{sm_mhz - 50, sm_mhz, sm_mhz + 10};
  round.telemetry->memory_mhz = Spread{memory_mhz, memory_mhz, memory_mhz};
  record.rounds.push_back(round);
}

void add_shares(const DeviceInfo& info, std::vector<CaseRecord>& records) {
  const std::vector<std::optional<PeakShare>> shares = peak_shares(info, records);
  for (std::size_t i = 0; i < records.size(); ++i) records[i].derived.peak = shares[i];
}

CaseRecord after(const DeviceInfo& info, CaseRecord record) {
  record.derived.peak = peak_shares(info, {&record, 1}).front();
  return record;
}

// 780 TFLOP/s: 78.87% of 989; at 1755 MHz 132 x 4096 x 1.755e9 = 948.9 TFLOP/s, 82.2%.
TEST(Ceilings, AGemmIsComparedWithPeakAndWithPeakAtItsClock) {
  CaseRecord record = case_of("gemm", "bf16", 780e9, 4e8);
  run_at(record, 1755, 3201);
  record = after(h200(), record);
  ASSERT_TRUE(record.derived.peak.has_value());
  const PeakShare& peak = *record.derived.peak;
  EXPECT_EQ(peak.limit, "bf16");
  EXPECT_EQ(peak.rate, 780e12);
  EXPECT_EQ(peak.peak, 989e12);
  EXPECT_THAT(peak.peak_source, HasSubstr("H200 SXM, sourced: stas00/ml-engineering"));
  EXPECT_NEAR(*peak.of_peak, 0.7887, 0.0001);
  EXPECT_NEAR(*peak.peak_at_clock, 948.9e12, 0.1e12);
  EXPECT_NEAR(*peak.of_peak_at_clock, 0.8220, 0.0001);
  EXPECT_EQ(peak.of_best, 1.0);
  EXPECT_EQ(peak.finding, "");
}

// 4.1 TB/s of 4.8; at 3201 MHz the bus of 6144 bits moves 4.917 TB/s.
TEST(Ceilings, ACopyIsComparedWithTheMemory) {
  CaseRecord record = case_of("copy", "f32", 0.0, 4.1e9);
  run_at(record, 1755, 3201);
  record = after(h200(), record);
  ASSERT_TRUE(record.derived.peak.has_value());
  EXPECT_EQ(record.derived.peak->limit, "memory");
  EXPECT_NEAR(*record.derived.peak->of_peak, 4.1 / 4.8, 1e-12);
  EXPECT_NEAR(*record.derived.peak->peak_at_clock, 4.916736e12, 1e3);
  EXPECT_EQ(record.derived.peak->best_case, "copy/f32");
}

TEST(Ceilings, EachRecipeHasItsOwnPeak) {
  for (const auto& [name, peak] : {std::pair("f64", 67e12), std::pair("f32", 67e12), std::pair("tf32", 494.5e12),
                                   std::pair("f16", 989e12), std::pair("f8_hybrid", 1979e12)})
    EXPECT_EQ(after(h200(), case_of("gemm", name, 1e9, 1e3)).derived.peak->peak, peak) << name;
}

TEST(Ceilings, ARateAboveThePeakIsAFinding) {
  EXPECT_THAT(after(h200(), case_of("gemm", "bf16", 1200e9, 4e8)).derived.peak->finding,
              HasSubstr("1.2e+15 FLOP/s is above the device's limit"));
  EXPECT_THAT(after(h200(), case_of("copy", "f32", 0.0, 5.0e9)).derived.peak->finding, HasSubstr("B/s is above"));
}

// 132 x 4096 x 1.98e9 = 1070.5 TFLOP/s: above the sheet, which assumes 1830 MHz, but possible at this clock.
TEST(Ceilings, AClockAboveTheSheetsMayGoBeyondTheSheet) {
  const CaseRecord record = after(h200(), case_of("gemm", "bf16", 1060e9, 4e8));
  EXPECT_EQ(record.derived.peak->finding, "");
  EXPECT_GT(*record.derived.peak->of_peak, 1.0);
  EXPECT_NE(after(device("NVIDIA H200", 132), case_of("gemm", "bf16", 1060e9, 4e8)).derived.peak->finding, "");
}

TEST(Ceilings, CasesInTheCacheAreNotComparedWithTheMemory) {
  CaseRecord small = case_of("copy", "f32", 0.0, 20e9);
  small.memory_bytes = cache;
  EXPECT_FALSE(after(h200(), small).derived.peak.has_value());
  CaseRecord warm = case_of("copy", "f32", 0.0, 20e9);
  warm.c.cache = CacheMode::warm;
  EXPECT_FALSE(after(h200(), warm).derived.peak.has_value());
}

// 120 SMs of compute capability 9.0 at 1.5 GHz: 120 x 4096 x 1.5e9 = 737.28 TFLOP/s.
TEST(Ceilings, AnUnknownCardsPeakIsWorkedOut) {
  const DeviceInfo unknown = device(
      "NVIDIA Made Up", 120,
      {{"compute_capability", "9.0"}, {"max_sm_mhz", "1500"}, {"max_memory_mhz", "3000"}, {"memory_bus_bits", "4096"}});
  const CaseRecord gemm = after(unknown, case_of("gemm", "bf16", 368.64e9, 1e6));
  ASSERT_TRUE(gemm.derived.peak.has_value());
  EXPECT_DOUBLE_EQ(*gemm.derived.peak->of_peak, 0.5);
  EXPECT_EQ(gemm.derived.peak->peak_source, "derived: 120 SMs x 4096 operations per clock x 1500 MHz");
  const CaseRecord copy = after(unknown, case_of("copy", "f32", 0.0, 1.536e9));
  EXPECT_DOUBLE_EQ(*copy.derived.peak->of_peak, 0.5);  // 3 GHz x 512 bytes x 2
}

TEST(Ceilings, AGeForceCardsPeakIsHalf) {
  const DeviceInfo card =
      device("NVIDIA GeForce RTX 4080", 76, {{"compute_capability", "8.9"}, {"max_sm_mhz", "2505"}});
  EXPECT_DOUBLE_EQ(*after(card, case_of("gemm", "bf16", 1e9, 1e3)).derived.peak->peak, 76 * 512 * 2.505e9);
}

TEST(Ceilings, PropertiesThatMakeNoSenseAreIgnored) {
  for (const char* version : {"", "nan", "-9", "1e400", "9.0 or so", "12345678901"}) {
    const DeviceInfo odd = device("NVIDIA Made Up", 120, {{"compute_capability", version}, {"max_sm_mhz", version}});
    const CaseRecord record = after(odd, case_of("gemm", "bf16", 1e9, 1e3));
    EXPECT_FALSE(record.derived.peak->peak.has_value()) << version;
  }
}

TEST(Ceilings, WithoutPeaksCasesAreComparedWithTheBestOfTheRun) {
  DeviceInfo cpu = device("A Processor with an H200 in its name", 132);
  cpu.kind = "cpu";
  std::vector<CaseRecord> records{case_of("gemm", "f32", 4e8, 1e5),  case_of("gemm", "f32", 2e8, 1e5),
                                  case_of("gemm", "bf16", 8e8, 1e5), case_of("copy", "f32", 0.0, 2e7),
                                  case_of("add", "f32", 1e4, 1e7),   case_of("transpose", "f32", 0.0, 3e7)};
  records[0].id = "best gemm";
  records[3].id = "best copy";
  add_shares(cpu, records);
  EXPECT_EQ(records[0].derived.peak->of_best, 1.0);
  EXPECT_EQ(records[1].derived.peak->of_best, 0.5);
  EXPECT_EQ(records[1].derived.peak->best_case, "best gemm");
  EXPECT_EQ(records[2].derived.peak->of_best, 1.0);
  EXPECT_EQ(records[4].derived.peak->of_best, 0.5);
  EXPECT_EQ(records[4].derived.peak->limit, "memory");
  EXPECT_EQ(records[4].derived.peak->best_case, "best copy");
  EXPECT_EQ(records[5].derived.peak->of_best, 1.5);  // only copies and triads count
  for (const CaseRecord& record : records) {
    EXPECT_FALSE(record.derived.peak->peak || record.derived.peak->of_peak_at_clock);
    EXPECT_EQ(record.derived.peak->finding, "");
  }
}

// A processor has no peaks here: cases are compared with the best of the run. The fastest has an interval of +-40%.
TEST(Ceilings, AnUnreliableTimingIsNeverTheBestAndIsNotCompared) {
  CaseRecord sure = case_of("gemm", "f32", 1e9, 1e3), slower = case_of("gemm", "f32", 5e8, 1e3);
  CaseRecord noisy = case_of("gemm", "f32", 8e9, 1e3);
  sure.id = "sure";
  noisy.summary.ci95_low_ns = 0.6e6;
  noisy.summary.ci95_high_ns = 1.4e6;
  std::vector<CaseRecord> records{sure, noisy, slower};
  DeviceInfo cpu = device("A Processor", 2);
  cpu.kind = "cpu";
  add_shares(cpu, records);
  EXPECT_EQ(records[0].derived.peak->of_best, 1.0);
  EXPECT_EQ(records[2].derived.peak->of_best, 0.5);
  EXPECT_EQ(records[2].derived.peak->best_case, "sure");
  EXPECT_FALSE(records[1].derived.peak.has_value());
}

TEST(Ceilings, AProductBelowHalfAMillisecondIsNeverTheBest) {
  CaseRecord large = case_of("gemm", "f32", 5e8, 1e3), tiny = case_of("gemm", "f32", 6e8, 1e3);
  large.id = "large";
  tiny.summary.median_ns = 499e3;
  DeviceInfo cpu = device("A Processor", 2);
  cpu.kind = "cpu";
  std::vector<CaseRecord> both{large, tiny}, alone{tiny};

  add_shares(cpu, both);
  add_shares(cpu, alone);

  EXPECT_EQ(both[1].derived.peak->best_case, "large");
  EXPECT_EQ(both[1].derived.peak->of_best, both[1].derived.flop_per_s / both[0].derived.flop_per_s);
  EXPECT_FALSE(alone[0].derived.peak.has_value());
}

TEST(Ceilings, ARateAboveThePeakIsNeverTheBest) {
  std::vector<CaseRecord> records{case_of("gemm", "bf16", 5000e9, 4e8), case_of("gemm", "bf16", 700e9, 4e8)};
  records[1].id = "honest";
  add_shares(h200(), records);
  EXPECT_NE(records[0].derived.peak->finding, "");
  EXPECT_EQ(records[1].derived.peak->best_case, "honest");
}

TEST(Ceilings, OnlyMeasuredCasesOfOneRankAreCompared) {
  CaseRecord failed = case_of("gemm", "bf16", 780e9, 4e8);
  failed.verdict = Verdict::fail;
  CaseRecord two = case_of("gemm", "bf16", 780e9, 4e8);
  two.c.ranks = 2;
  CaseRecord untimed = case_of("gemm", "bf16", 780e9, 4e8);
  untimed.summary = {};
  for (const CaseRecord& record : {failed, two, untimed}) EXPECT_FALSE(after(h200(), record).derived.peak.has_value());
}

// NVLink of an H200: 900 GB/s both ways together, 450 one way.
TEST(Ceilings, ACollectivesBusBandwidthIsComparedWithOneDirectionOfTheLink) {
  CaseRecord record = case_of("all_reduce", "f32", 1e6, 1e9);
  record.c.ranks = 2;
  record.derived.collective = CollectiveRates{1e9, 3.6e11, 3.6e11};
  const CaseRecord compared = after(h200(), record);
  ASSERT_TRUE(compared.derived.peak.has_value());
  EXPECT_EQ(compared.derived.peak->limit, "link");
  EXPECT_DOUBLE_EQ(*compared.derived.peak->peak, 4.5e11);
  EXPECT_DOUBLE_EQ(*compared.derived.peak->of_peak, 0.8);
  EXPECT_THAT(compared.derived.peak->peak_source, HasSubstr("one direction"));

  record.derived.collective->bus_bytes_per_s = 4.8e11;  // in-switch reduction
  EXPECT_EQ(after(h200(), record).derived.peak->finding, "");
}

TEST(Ceilings, VirtualRanksAndUnknownLinksAreComparedWithNothing) {
  CaseRecord record = case_of("all_reduce", "f32", 1e6, 1e9);
  record.c.ranks = 2;
  record.derived.collective = CollectiveRates{1e9, 3.6e11, 3.6e11};
  EXPECT_FALSE(after(device("Another card", 7), record).derived.peak.has_value());
  record.c.modes = {"virtual"};
  EXPECT_FALSE(after(h200(), record).derived.peak.has_value());
}

}  // namespace ceilings_test
}  // namespace gpubench
