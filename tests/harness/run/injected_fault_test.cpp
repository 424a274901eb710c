#include "harness/run/injected_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/run/memory_pool.h"
#include "harness/run/prepared_case.h"
#include "tests/fakes/sim/sim_suite.h"
#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

RunOptions with_an_error(const std::string& op, ErrorKind kind) {
  RunOptions options = smoke_options();
  options.error = InjectedError{op, kind};
  return options;
}

TEST(InjectedErrorOfEveryKind, FailsTheCasesThatRunTheOpNamesItAndCostsNoOther) {
  for (const ErrorKind kind : enum_values<ErrorKind>) {
    if (kind == ErrorKind::rare) continue;  // see soak_test.cpp
    for (const std::string script : {"", "opaque"}) {
      const InProcess run(script, with_an_error("chain.down", kind));

      EXPECT_EQ(run.seen.count(Verdict::pass), 5) << name(kind);
      const CaseRecord& record = run.seen.of("chain");
      EXPECT_EQ(record.verdict, Verdict::fail) << name(kind) << record.reason;
      const std::string seen_in = kind == ErrorKind::late ? "timed" : "check";
      EXPECT_THAT(record.reason, StartsWith("op 'chain.down' (gemm) failed in " + seen_in)) << name(kind);
      EXPECT_THAT(record.summary.flags, Contains(wrong_flag));
      EXPECT_THAT(run.seen.of("first").summary.flags, ::testing::Not(Contains(wrong_flag)));
    }
  }
}

TEST(InjectedError, IsOfAKindOfOpAsWell) {
  const InProcess run("", with_an_error("gemm", ErrorKind::nan));
  int gemms = 0;
  for (const PlannedCase& planned : sim_cases()) {
    const bool has = runs_timed(planned.workload->build(planned.c), "gemm");
    gemms += has ? 1 : 0;
    EXPECT_EQ(run.seen.records.at(planned.id()).verdict, has ? Verdict::fail : Verdict::pass) << planned.id();
  }
  EXPECT_GT(gemms, 1);
}

// The output of the timed op of case "first" after a timed round.
std::vector<std::byte> left_by_a_round(Backend& backend) {
  Arena arena(backend);
  const auto& cases = sim_cases();
  const auto first =
      std::find_if(cases.begin(), cases.end(), [](const PlannedCase& p) { return p.id() == sim_id("first"); });
  PreparedCase prepared(backend, arena, *first, 42, backend.device().available_bytes);
  prepared.set_up();
  prepared.make_copies(backend.device().available_bytes);
  (void)backend.time(prepared.timed_launches(), RoundPlan{});
  const HostBytes content = prepared.memory(0).block(prepared.produced().front()).read();
  return {content.bytes.begin(), content.bytes.end()};
}

// 64 elements of f32: bit 30 of the first flips, in its last byte.
TEST(InjectedError, IsInTheTimedLaunchTooAndABitIsOneBit) {
  SimBackend right(parse_script("")), inner(parse_script(""));
  const std::unique_ptr<Backend> wrong = with_error(inner, {"first.gemm", ErrorKind::bit});

  const std::vector<std::byte> expected = left_by_a_round(right);
  const std::vector<std::byte> got = left_by_a_round(*wrong);

  ASSERT_EQ(expected.size(), 256U);
  ASSERT_EQ(got.size(), 256U);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i] ^ expected[i], i == 3 ? std::byte{0x40} : std::byte{0}) << i;
}

TEST(InjectedError, AnOpThatIsDroppedLeavesItsDependantsInOrderAndNothingToTimeAlone) {
  RunOptions options = with_an_error("chain.down", ErrorKind::drop);
  options.check = CheckMode::off;  // the check would end the case before it is timed
  const InProcess several("", options);
  EXPECT_EQ(several.seen.of("chain").verdict, Verdict::unverified) << several.seen.of("chain").reason;

  options.error->op = "first.gemm";
  const InProcess alone("", options);
  EXPECT_EQ(alone.seen.of("first").verdict, Verdict::error);
  EXPECT_THAT(alone.seen.of("first").reason, HasSubstr("leaves no op of this case to time"));
}

TEST(InjectedError, AnHonestRunHasNone) {
  for (const auto& [id, record] : InProcess("").seen.records)
    EXPECT_THAT(record.summary.flags, ::testing::Not(Contains(wrong_flag)));
}

TEST(Slowdown, EveryIntervalOfEveryClockBecomesLonger) {
  RoundRecord round;
  round.times.device_ns = {100, 200};
  round.times.wall_ns = {120, 240};
  round.times.ranks = std::vector<RankTimes>{{{100, 160}}, {{80, 200}}};
  slow_down({"gemm", 0.25}, round);
  EXPECT_THAT(round.times.device_ns, ElementsAre(125, 250));
  EXPECT_THAT(round.times.wall_ns, ElementsAre(150, 300));
  EXPECT_THAT((*round.times.ranks)[0].ns, ElementsAre(125, 200));
  EXPECT_THAT((*round.times.ranks)[1].ns, ElementsAre(100, 250));
}

TEST(Slowdown, ConcernsProgramsThatRunTheOpByKindOrLabel) {
  int by_kind = 0, by_label = 0;
  for (const PlannedCase& planned : sim::sim_cases()) {
    const Program program = planned.workload->build(planned.c);
    by_kind += runs_timed(program, "gemm") ? 1 : 0;
    by_label += runs_timed(program, "first.gemm") ? 1 : 0;
    EXPECT_FALSE(runs_timed(program, "gem"));
    EXPECT_FALSE(runs_timed(program, ""));
  }
  EXPECT_GT(by_kind, 1);
  EXPECT_LT(by_kind, static_cast<int>(sim::sim_cases().size()));
  EXPECT_EQ(by_label, 1);
}

}  // namespace

}  // namespace gpubench::sim
