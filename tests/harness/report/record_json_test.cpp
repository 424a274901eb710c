#include "harness/report/reader.h"
#include "harness/report/report_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "harness/report/json.h"
#include "tests/harness/report/sample_records.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

CaseRecord round_trip(const CaseRecord& record) {
  const std::string text = dump(to_json(record));
  const Json json = parse_json(text, "test");
  return record_from_json({json, "test"});
}

// All members, so that one read wrongly or not at all makes a difference.
std::string whole(const CaseRecord& record) { return dump(to_json(record)); }

TEST(RecordJson, ComesBackAsItWas) {
  for (const Verdict verdict : {Verdict::pass, Verdict::fail, Verdict::not_proven, Verdict::error}) {
    CaseRecord record = sample_record(verdict);
    record.parity.seed = 18446744073709551615ULL;
    const CaseRecord back = round_trip(record);
    EXPECT_EQ(whole(back), whole(record));
    EXPECT_EQ(back.id, "gemm/square/m=64,n=32,k=16/bf16/warm/x1");
    EXPECT_EQ(back.c.dims, record.c.dims);
    EXPECT_EQ(back.c.tier, Tier::standard);
    EXPECT_EQ(back.parity.seed, 18446744073709551615ULL);
    EXPECT_EQ(back.rounds[1].times.wall_ns, (std::vector<double>{8100, 7100, 9100}));
    EXPECT_EQ(back.rounds[1].note, "throttled");
    EXPECT_EQ(back.parity.ops[0].worst->index, (std::vector<std::int64_t>{0, 17}));
    EXPECT_EQ(back.derived.breakdown[0].share, 0.83);
    EXPECT_EQ(back.summary.flags, (std::vector<std::string>{"noisy", "drift"}));
  }
}

TEST(RecordJson, TelemetryEnergyAndPeakComeBackAndMayBeMissing) {
  CaseRecord record = sample_record();
  CaseRecord back = round_trip(record);
  ASSERT_TRUE(back.rounds[0].telemetry.has_value());
  EXPECT_EQ(back.rounds[0].telemetry->sm_mhz->median, 1755.5);
  EXPECT_EQ(back.rounds[0].telemetry->energy_j, 1300.5);
  EXPECT_EQ(back.rounds[0].telemetry->uncorrected_errors, 3);
  EXPECT_EQ(back.rounds[0].telemetry->reasons, (std::vector<std::string>{"sw_power_cap"}));
  EXPECT_EQ(back.rounds[0].telemetry->rejected, 2);
  EXPECT_EQ(back.rounds[0].telemetry->errors, (std::vector<std::string>{"Xid 94 (contained ECC error)"}));
  EXPECT_EQ(back.derived.energy_j, 0.0025);
  ASSERT_TRUE(back.derived.peak.has_value());
  EXPECT_EQ(back.derived.peak->of_peak, 0.546);
  EXPECT_EQ(back.derived.peak->best_case, "gemm/square/m=128/bf16/x1");
  EXPECT_FALSE(back.rounds[1].telemetry.has_value());

  record.rounds[0].telemetry = RoundTelemetry{};
  record.derived.energy_j.reset();
  record.derived.peak.reset();
  const Json json = to_json(record);
  EXPECT_EQ(json["rounds"][0]["telemetry"].size(), 4U);  // readings, window_s, reasons, rejected
  EXPECT_FALSE(json["derived"].contains("energy_j") || json["derived"].contains("peak"));
  back = round_trip(record);
  EXPECT_FALSE(back.rounds[0].telemetry->sm_mhz.has_value());
  EXPECT_FALSE(back.derived.energy_j.has_value());
}

TEST(RecordJson, WhatRanksSayComesBackAndIsLeftOutForOne) {
  CaseRecord record = sample_record();
  CaseRecord back = round_trip(record);
  ASSERT_TRUE(back.rounds[0].times.ranks.has_value());
  EXPECT_EQ(back.rounds[0].times.ranks->at(1).ns, (std::vector<double>{3900, 3800, 4500}));
  EXPECT_EQ(back.derived.collective->bus_bytes_per_s, 3.75e9);
  EXPECT_EQ(back.derived.ranks->slowest, 1);
  EXPECT_EQ(back.derived.ranks->exposed_communication, 0.1875);
  EXPECT_EQ(back.derived.ranks->efficiency, 0.9375);
  EXPECT_EQ(back.derived.ranks->partners, (std::vector{1, 0}));

  record.rounds[0].times.ranks.reset();
  record.derived.collective.reset();
  record.derived.ranks.reset();
  const Json json = to_json(record);
  EXPECT_FALSE(json["rounds"][0].contains("ranks"));
  EXPECT_FALSE(json["derived"].contains("collective") || json["derived"].contains("ranks"));
  EXPECT_FALSE(round_trip(record).derived.ranks.has_value());
}

TEST(RecordJson, HowAnImplementationWasChosenComesBackAndIsLeftOutWhereNothingWasChosen) {
  CaseRecord record = sample_record();
  record.choice = Choice::remembered;
  record.workspace_bytes = 4194304;
  record.parity.ops[0].choice = Choice::timed;
  record.derived.energy_per_work_j = 1.5e-12;
  const Json json = to_json(record);
  EXPECT_EQ(json["choice"], "remembered");
  EXPECT_EQ(json["parity"]["ops"][0]["choice"], "timed");
  const CaseRecord back = round_trip(record);
  EXPECT_EQ(back.choice, Choice::remembered);
  EXPECT_EQ(back.workspace_bytes, 4194304);
  EXPECT_EQ(back.parity.ops[0].choice, Choice::timed);
  EXPECT_EQ(back.derived.energy_per_work_j, 1.5e-12);

  const Json plain = to_json(sample_record());
  EXPECT_FALSE(plain.contains("choice") || plain.contains("workspace_bytes"));
  EXPECT_FALSE(plain["parity"]["ops"][0].contains("choice") || plain["derived"].contains("energy_per_work_j"));
  EXPECT_FALSE(round_trip(sample_record()).choice.has_value());
}

TEST(RecordJson, CandidatesThatWereRejectedForTheirResultsComeBackAndAreLeftOutWhereThereWereNone) {
  CaseRecord record = sample_record();
  record.parity.ops[0].rejected = {"cublaslt:algo=1: 3 of 9 judged elements of 'y' outside their bound"};
  EXPECT_EQ(to_json(record)["parity"]["ops"][0]["rejected"].size(), 1U);
  EXPECT_EQ(round_trip(record).parity.ops[0].rejected, record.parity.ops[0].rejected);

  EXPECT_FALSE(to_json(sample_record())["parity"]["ops"][0].contains("rejected"));
  EXPECT_FALSE(round_trip(sample_record()).parity.ops[0].rejected.has_value());
}

TEST(RecordJson, TelemetryThatMakesNoSenseIsRefused) {
  Json json = to_json(sample_record());
  json["rounds"][0]["telemetry"]["readings"] = -1;
  EXPECT_THROW((void)record_from_json({json, "test"}), ReadError);
  json = to_json(sample_record());
  json["rounds"][0]["telemetry"]["sm_mhz"] = "fast";
  EXPECT_THROW((void)record_from_json({json, "test"}), ReadError);
}

TEST(RecordJson, AnEmptyRecordComesBackToo) {
  const CaseRecord record = sample_without_run(Verdict::unsupported, "could not create a primitive");
  const CaseRecord back = round_trip(record);
  EXPECT_EQ(whole(back), whole(record));
  EXPECT_FALSE(back.parity.ops.size() > 0);
}

TEST(RecordJson, EveryBitOfADoubleComesBack) {
  CaseRecord record = sample_record();
  const std::vector<double> awkward{0.1,  1.0 / 3.0,         5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
                                    -0.0, 9007199254740993.0};
  record.rounds[0].times.device_ns = awkward;
  const std::vector<double> back = round_trip(record).rounds[0].times.device_ns;
  ASSERT_EQ(back.size(), awkward.size());
  for (std::size_t i = 0; i < awkward.size(); ++i) {
    EXPECT_EQ(std::signbit(back[i]), std::signbit(awkward[i])) << i;
    EXPECT_EQ(back[i], awkward[i]) << i;
  }
}

TEST(RecordJson, NonFiniteNumbersAreNullWithANoteAndComeBack) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CaseRecord record = sample_record(Verdict::fail);
  record.parity.ops[1].worst->got = std::nan("");
  record.parity.ops[1].error_over_bound = infinity;
  record.summary.drift = -infinity;
  record.rounds[0].times.wall_ns = {1.0, infinity, std::nan("")};
  const Json json = to_json(record);
  EXPECT_TRUE(json["parity"]["ops"][1]["worst"]["got"].is_null());
  EXPECT_EQ(json["parity"]["ops"][1]["worst"]["nonfinite"]["got"], "nan");
  EXPECT_EQ(json["parity"]["ops"][1]["nonfinite"]["error_over_bound"], "inf");
  EXPECT_EQ(json["rounds"][0]["nonfinite"]["wall_ns[1]"], "inf");
  const CaseRecord back = round_trip(record);
  EXPECT_TRUE(std::isnan(back.parity.ops[1].worst->got));
  EXPECT_EQ(back.parity.ops[1].error_over_bound, infinity);
  EXPECT_EQ(back.summary.drift, -infinity);
  EXPECT_EQ(back.rounds[0].times.wall_ns[1], infinity);
  EXPECT_TRUE(std::isnan(back.rounds[0].times.wall_ns[2]));
}

// Optional members: not in every case, or from a later version of the schema.
TEST(RecordJson, EveryMemberIsRequiredButThoseThatMayBeAbsent) {
  const std::set<std::string> may_be_absent{"rewrites", "def_hash", "calls", "memory", "plan_s", "unfinished"};
  CaseRecord record = sample_record();
  record.unfinished = sample_report().cases.back().unfinished;
  const Json json = to_json(record);
  for (const auto& member : json.items()) {
    Json without = json;
    without.erase(member.key());
    if (may_be_absent.contains(member.key())) {
      EXPECT_EQ(to_json(record_from_json({without, "test"})), without) << member.key();
    } else {
      EXPECT_THROW((void)record_from_json({without, "test"}), ReadError) << member.key();
    }
  }
  for (const std::string& key : may_be_absent) EXPECT_TRUE(json.contains(key)) << key;
}

TEST(RecordJson, WordsAndNumbersThatMakeNoSenseAreRefusedWithTheirPlace) {
  const auto error_of = [](const char* pointer, Json value) {
    Json json = to_json(sample_record());
    json[Json::json_pointer(pointer)] = std::move(value);
    return thrown_text<ReadError>([&] { (void)record_from_json({json, "worker"}); }, "accepted");
  };
  EXPECT_EQ(error_of("/status", "ok"),
            "worker:status: is not one of pass, fail, downgraded, not_proven, unverified, unsupported, "
            "skipped, error");
  EXPECT_EQ(error_of("/batch", -1), "worker:batch: is -1, expected 0 to 9223372036854775807");
  EXPECT_EQ(error_of("/ranks", 3.9), "worker:ranks: is 3.9, expected a whole number");
  EXPECT_EQ(error_of("/copies", 4294967296), "worker:copies: is 4294967296, expected 0 to 2147483647");
  EXPECT_EQ(error_of("/parity/ops/1/worst/index/0", "x"),
            "worker:parity.ops[1].worst.index[0]: is string, expected a whole number");
  EXPECT_NE(error_of("/summary/median_ns", nullptr).find("worker:summary: \"median_ns\" is null"), std::string::npos);
  EXPECT_NE(error_of("/id", "gemm/other/m=1/bf16/x1").find("does not match its parts"), std::string::npos);
  EXPECT_NE(error_of("/suite", "GEMM").find("worker:"), std::string::npos);
}

TEST(DeviceJson, ComesBackAsItWas) {
  const DeviceInfo device = sample_report().run.devices[0];
  const Json json = to_json(device);
  EXPECT_EQ(dump(to_json(device_from_json({json, "test"}))), dump(json));
}

}  // namespace
}  // namespace gpubench
