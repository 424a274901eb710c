#include "harness/compare/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>

#include "harness/core/error.h"
#include "harness/report/json.h"
#include "tests/harness/compare/made_reports.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;

const std::string id = timed_record("a", 1).id;

// Medians e^0, e^.01, e^.02 times 1000 ns: standard deviation 1%, range 2%, median 1000 e^.01.
TEST(Noise, IsTheStandardDeviationOfLogMediansOverInvocations) {
  const Noise noise = noise_of(side_of({1000, 1000 * std::exp(0.01), 1000 * std::exp(0.02)}), "now");
  EXPECT_EQ(noise.invocations, 3);
  ASSERT_EQ(noise.cases.size(), 1U);
  const CaseNoise& one = noise.cases.at(id);
  EXPECT_EQ(one.runs, 3);
  EXPECT_NEAR(one.spread, 0.01, 1e-12);
  EXPECT_NEAR(one.range, 0.02, 1e-12);
  EXPECT_NEAR(one.median_ns, 1000 * std::exp(0.01), 1e-9);
  EXPECT_NEAR(prior_of(noise, id)->variance, 1e-4, 1e-14);
  EXPECT_EQ(prior_of(noise, id)->runs, 3);
  EXPECT_FALSE(prior_of(noise, "gemm/other/n=1/f32/x1").has_value());
}

TEST(Noise, NeedsTwoRunsOfOneSetup) {
  EXPECT_THROW((void)noise_of(side_of({1000}), "now"), std::invalid_argument);
  std::vector<Invocation> two = side_of({1000, 1010});
  two[1].setup.decisive[0].second = "another";
  EXPECT_THROW((void)noise_of(two, "now"), std::invalid_argument);
}

TEST(Noise, ACaseThatPassedOnceIsLeftOut) {
  std::vector<Invocation> two = side_of({1000, 1010});
  two[1].cases[0].run.reset();
  EXPECT_TRUE(noise_of(two, "now").cases.empty());
}

TEST(Noise, SurvivesItsFile) {
  const Noise noise = noise_of(side_of({1000, 1010, 1005}), "2026-11-21T02:34:19+00:00");
  const Json json = to_json(noise);
  const Noise again = noise_from_json(Node(json, "n.json"), "n.json");
  EXPECT_EQ(dump(to_json(again)), dump(json));
  EXPECT_EQ(again.source, "n.json");
}

TEST(Noise, FilesThatMakeNoSenseAreRefused) {
  const std::pair<const char*, std::function<void(Json&)>> mistakes[] = {
      {"schema", [](Json& j) { j["schema"] = "gpubench-report"; }},
      {"schema_version", [](Json& j) { j["schema_version"] = "2.0"; }},
      {"the file was edited", [](Json& j) { j["setup"]["device.name"] = "Another Processor"; }},
      {"invocations", [](Json& j) { j["invocations"] = 1; }},
      {"runs", [](Json& j) { j["cases"][id]["runs"] = 11; }},
      {"a noise of 0.00%", [](Json& j) { j["cases"][id]["spread"] = 0.0; }},
      {"spread", [](Json& j) { j["cases"][id]["spread"] = -0.1; }},
      {"spread", [](Json& j) { j["cases"][id]["spread"] = 11.0; }},
      {"spread", [](Json& j) { j["cases"][id]["spread"] = nullptr; }},
      {"spread", [](Json& j) { j["cases"][id].erase("spread"); }},
  };
  for (const auto& [said, make] : mistakes) {
    Json json = to_json(noise_of(side_of({1000, 1010}), "now"));
    make(json);
    EXPECT_THAT(thrown_text<ReadError>([&] { (void)noise_from_json(Node(json, "n.json"), "n.json"); }),
                AllOf(HasSubstr("n.json"), HasSubstr(said)));
  }
}

TEST(Setup, WhatChangesNumbersIsDecisiveAndTheRestIsTold) {
  Report other = timed_report({timed_record("a", 1000)});
  other.host.host_name = "elsewhere";
  other.run.devices[0].available_bytes = 1;
  other.run.seed = 43;
  const auto first = read_back(timed_report({timed_record("a", 1000)})).setup;
  auto second = read_back(other).setup;
  EXPECT_EQ(fingerprint(first), fingerprint(second));
  const std::vector<Difference> told = differences(first.telling, second.telling);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(difference_text(told[0]), "host a-host -> elsewhere");

  other.run.devices[0].libraries[0].second = "3.7.1";
  other.run.env.clear();
  second = read_back(other).setup;
  EXPECT_NE(fingerprint(first), fingerprint(second));
  const std::vector<Difference> decisive = differences(first.decisive, second.decisive);
  ASSERT_EQ(decisive.size(), 2U);
  EXPECT_EQ(difference_text(decisive[0]), "device.oneDNN 2.6.3 -> 3.7.1");
  EXPECT_EQ(difference_text(decisive[1]), "env.OMP_NUM_THREADS 2 -> (none)");
}

TEST(Setup, ALimitedInstructionSetIsDecisiveAndItsReasonIsTold) {
  const auto setup = [](const std::string& isa, const std::string& reason) {
    Report report = timed_report({});
    if (!isa.empty())
      report.run.devices[0].properties.insert(report.run.devices[0].properties.end(),
                                              {{"cpu_isa", isa}, {"cpu_isa_reason", reason}});
    return read_back(report).setup;
  };
  const auto limited = setup("limited to avx512_core_bf16", "oneDNN died with SIGILL");
  EXPECT_EQ(fingerprint(limited), fingerprint(setup("limited to avx512_core_bf16", "CPUID leaf 0x1D is empty")));
  EXPECT_NE(fingerprint(limited), fingerprint(setup("limited to avx2", "oneDNN died with SIGILL")));
  // Reports without a limit have no such fact.
  const std::vector<Difference> apart = differences(setup("", "").decisive, limited.decisive);
  ASSERT_EQ(apart.size(), 1U);
  EXPECT_EQ(difference_text(apart[0]), "device.cpu_isa (none) -> limited to avx512_core_bf16");
}

// Before schema 1.5 presets had the names of tiers.
TEST(Setup, APresetByItsOldNameIsNoDifference) {
  for (const auto& [before, now] : {std::pair{"smoke", "minimal"}, {"quick", "brief"}, {"standard", "normal"}}) {
    EXPECT_TRUE(differences({{"preset", before}}, {{"preset", now}}).empty()) << now;
    EXPECT_EQ(differences({{"preset", before}}, {{"preset", "gate"}}).size(), 1U);
    EXPECT_EQ(differences({{"tier", before}}, {{"tier", now}}).size(), 1U);  // only names of presets changed
  }
}

TEST(Setup, EveryDecisiveFactOfADeviceChangesTheFingerprint) {
  const std::function<void(Report&)> changes[] = {
      [](Report& r) { r.run.devices[0].kind = "cuda"; },
      [](Report& r) { r.run.devices[0].name = "B Processor"; },
      [](Report& r) { r.run.devices[0].units = 4; },
      [](Report& r) { r.run.devices[0].properties.emplace_back("uuid", "GPU-1"); },
      [](Report& r) { r.run.devices.push_back(r.run.devices[0]); },
      [](Report& r) { r.run.tool_version = "1.0.0"; },
      [](Report& r) { r.run.tier = "quick"; },
      [](Report& r) { r.run.preset = "normal"; },
      [](Report& r) { r.run.deterministic = true; },
      [](Report& r) { r.run.arithmetic = {"tf32"}; },
      [](Report& r) { r.run.arithmetic.clear(); },
      [](Report& r) { r.run.locked_clock_mhz = 1980; },
      [](Report& r) { r.run.locked_clock_mhz = 0; },
      [](Report& r) { r.run.build[1].second = "Debug"; },
  };
  const std::string first = fingerprint(read_back(timed_report({})).setup);
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    Report report = timed_report({});
    changes[i](report);
    EXPECT_NE(fingerprint(read_back(report).setup), first) << i;
  }
}

// Assumed without a measurement: 0.3% with a locked clock, 1% without, 3% on a processor; of two set-ups the larger.
TEST(Setup, TheSpreadToAssumeIsThatOfTheNoisierSide) {
  Report report = timed_report({});
  const auto setup_as = [&](const char* kind, int locked) {
    report.run.devices[0].kind = kind;
    report.run.locked_clock_mhz = locked;
    return read_back(report).setup;
  };
  const auto cpu = setup_as("cpu", 0);
  const auto free = setup_as("cuda", 0);
  const auto locked = setup_as("cuda", 1980);
  EXPECT_EQ(assumed_spread(locked, locked), 0.003);
  EXPECT_EQ(assumed_spread(locked, free), 0.01);
  EXPECT_EQ(assumed_spread(free, locked), 0.01);
  EXPECT_EQ(assumed_spread(cpu, locked), 0.03);
}

TEST(Baseline, PoolsRunsOfOneSetupAndSurvivesItsFile) {
  const Noise noise = noise_of(side_of({1000, 1010}), "now");
  const Baseline baseline = make_baseline("main", "now", side_of({1000, 1010, 1020}), noise);
  const Json json = to_json(baseline);
  const Baseline again = baseline_from_json(Node(json, "b.json"), "b.json");
  EXPECT_EQ(again.invocations.size(), 3U);
  EXPECT_EQ(again.noise->invocations, 2);
  EXPECT_EQ(dump(to_json(again)), dump(json));
}

TEST(Baseline, RefusesOtherSetupsInjectedSlowdownsAndPartialRuns) {
  const auto refusal = [](std::vector<Invocation> runs, std::optional<Noise> noise = {}) -> std::string {
    return thrown_text<UsageError>([&] { (void)make_baseline("main", "now", std::move(runs), std::move(noise)); },
                                   "accepted");
  };
  EXPECT_THAT(refusal({}), HasSubstr("at least one report"));
  std::vector<Invocation> other = side_of({1000, 1010});
  other[1].setup.decisive[1].second = "B Processor";
  EXPECT_THAT(refusal(other),
              HasSubstr("1.json is of another set-up than the first report: device.name A Processor -> B Processor"));
  std::vector<Invocation> slowed = side_of({1000});
  slowed[0].injected = "gemm=25%";
  EXPECT_THAT(refusal(slowed),
              HasSubstr("0.json was measured with an injected fault, gemm=25%, and cannot be a baseline"));
  std::vector<Invocation> partial = side_of({1000});
  partial[0].complete = false;
  EXPECT_THAT(refusal(partial), HasSubstr("partial"));
  std::vector<Invocation> twice = side_of({1000, 1010});
  twice.push_back(twice[0]);
  EXPECT_THAT(refusal(twice), HasSubstr("0.json and 0.json are one report"));
  Noise elsewhere = noise_of(side_of({1000, 1010}), "now");
  elsewhere.setup.decisive[1].second = "B Processor";
  EXPECT_THAT(refusal(side_of({1000}), elsewhere), HasSubstr("another set-up"));
}

}  // namespace
}  // namespace gpubench
