// The protocol in the sim backend's log: batch, copies, rounds, interleaving, restoring, recheck.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/measure/protocol.h"
#include "harness/run/engine.h"
#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Phases of kind "time", by case, in order.
std::vector<std::string> timed_order(const Remembering& seen) {
  std::vector<std::string> order;
  for (const auto& [id, phase] : seen.phases) {
    if (phase == "recheck") break;
    if (phase == "time") order.push_back(id);
  }
  return order;
}

TEST(Protocol, TheBatchFillsTheShortestSampleOfThePreset) {
  // smoke: samples of at least 200 us; a run of 1000 ns on the fake clock: 200 runs, rounded up to 256. The chain is a
  // step: always 1. clip has three ops of 1000 ns: 67 runs, rounded up to 128.
  const InProcess run("clock=1000");

  EXPECT_EQ(run.seen.of("first").batch, 256);
  EXPECT_EQ(run.seen.of("chain").batch, 1);
  EXPECT_EQ(run.seen.of("clip").batch, 128);
}

TEST(Protocol, TheFakeClockComesBackAsTheMedianPerRun) {
  const InProcess run("clock=1000");

  EXPECT_DOUBLE_EQ(run.seen.of("first").summary.median_ns, 1000.0);
  EXPECT_DOUBLE_EQ(run.seen.of("chain").summary.median_ns, 3000.0);  // three ops
  // 64 elements in 1000 ns.
  EXPECT_DOUBLE_EQ(run.seen.of("first").derived.items_per_s, 64e6);
  EXPECT_EQ(run.seen.of("first").derived.headline_unit, "elements/s");
}

TEST(Protocol, EveryCaseHasTheRoundsAndSamplesOfThePreset) {
  const InProcess run("");

  for (const auto& [id, record] : run.seen.records) {
    ASSERT_EQ(record.rounds.size(), 3U) << id;
    for (const RoundRecord& round : record.rounds) {
      EXPECT_EQ(round.times.device_ns.size(), 3U);
      EXPECT_TRUE(round.valid);
    }
  }
}

// 10 ms an op: two runs, or one step of three ops, fit into half of a round's share of 40 ms.
TEST(Protocol, SlowCasesOfTheSmokeTierHaveFewerSamples) {
  const InProcess run("clock=10000000");

  for (const RoundRecord& round : run.seen.of("first").rounds) EXPECT_EQ(round.times.device_ns.size(), 2U);
  for (const RoundRecord& round : run.seen.of("chain").rounds) EXPECT_EQ(round.times.device_ns.size(), 1U);
}

TEST(Protocol, ANumberOfRoundsThatTheUserAsksForIsOfWholeRounds) {
  RunOptions options = smoke_options();
  options.rounds = 2;
  const InProcess run("clock=10000000", options);

  EXPECT_EQ(run.seen.of("chain").rounds.size(), 2U);
  for (const RoundRecord& round : run.seen.of("chain").rounds) EXPECT_EQ(round.times.device_ns.size(), 3U);
}

TEST(Protocol, RoundsOfAllCasesAreInterleaved) {
  const InProcess run("");
  const std::vector<std::string> order = timed_order(run.seen);

  ASSERT_EQ(order.size(), 18U);  // six cases, three rounds: each six rounds hold every case once
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<std::string> one(order.begin() + pass * 6, order.begin() + (pass + 1) * 6);
    std::sort(one.begin(), one.end());
    EXPECT_EQ(std::unique(one.begin(), one.end()), one.end()) << "pass " << pass;
  }
}

TEST(Protocol, TheOrderFollowsTheSeedAndChangesFromPassToPass) {
  RunOptions options = smoke_options();
  options.seed = 7;
  const std::vector<std::string> once = timed_order(InProcess("", options).seen);
  const std::vector<std::string> again = timed_order(InProcess("", options).seen);
  const std::vector<std::string> other = timed_order(InProcess("").seen);

  EXPECT_EQ(once, again);
  EXPECT_NE(once, other);
  EXPECT_NE(std::vector(once.begin(), once.begin() + 6), std::vector(once.begin() + 6, once.begin() + 12));
}

TEST(Protocol, AShuffleIsAPermutation) {
  const std::vector<std::string> ids{"a", "b", "c", "d", "e"};
  std::vector<std::size_t> order = order_of_pass(ids, 3, 2);
  std::sort(order.begin(), order.end());

  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

/// All contenders of one `number` have the same id.
PlannedCase numbered(int number, std::int64_t bytes, const std::string& contender = "") {
  PlannedCase planned;
  planned.c.suite = planned.c.workload = "sim";
  planned.c.dims = {{"n", number}};
  planned.c.recipe = "f32";
  planned.c.contender = contender;
  planned.bytes = bytes;
  return planned;
}

std::vector<std::size_t> sizes_of(const std::vector<PlannedCase>& cases) {
  std::vector<const PlannedCase*> all;
  for (const PlannedCase& planned : cases) all.push_back(&planned);
  return group_sizes(all);
}

TEST(Groups, HoldSixteenCasesOrTwoGibibytes) {
  std::vector<PlannedCase> small, large;
  for (int i = 0; i < 35; ++i) small.push_back(numbered(i, 1024));
  constexpr std::int64_t half_gib = std::int64_t{1} << 29U;
  for (int i = 0; i < 6; ++i) large.push_back(numbered(i, half_gib));
  large.push_back(numbered(6, 9 * half_gib));
  large.push_back(numbered(7, half_gib));

  EXPECT_THAT(sizes_of(small), ElementsAre(16, 16, 3));
  EXPECT_THAT(sizes_of(large), ElementsAre(4, 2, 1, 1));
  EXPECT_THAT(sizes_of({}), ElementsAre());
}

TEST(Groups, HoldAllContendersOfACaseHoweverLarge) {
  std::vector<PlannedCase> many, large;
  for (int i = 0; i < 16; ++i) many.push_back(numbered(i, 1024));
  for (const char* contender : {"a", "b"}) many.push_back(numbered(15, 1024, contender));
  many.push_back(numbered(16, 1024));
  for (const char* contender : {"", "a", "b"}) large.push_back(numbered(0, std::int64_t{3} << 30U, contender));

  EXPECT_THAT(sizes_of(many), ElementsAre(18, 1));
  EXPECT_THAT(sizes_of(large), ElementsAre(3));
}

// The last two of 18 cases are prepared after the first 16 are finished, as in a worker.
TEST(Groups, AreThoseOfWorkersAlsoInThisProcess) {
  std::vector<PlannedCase> cases(18, sim_cases().front());
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i].c.dims = {{"n", static_cast<std::int64_t>(8 + i)}};
  SimBackend backend(parse_script(""));
  Remembering seen;
  run_in_process(backend, cases, smoke_options(), seen, seen.stop);

  std::vector<std::size_t> finished_before_prepared;
  std::size_t finished = 0;
  for (const auto& [id, phase] : seen.phases) {
    if (phase == "prepare") finished_before_prepared.push_back(finished);
    if (phase == "recheck") ++finished;
  }
  std::vector<std::size_t> expected(16, 0);
  expected.insert(expected.end(), {16, 16});
  EXPECT_EQ(finished_before_prepared, expected);
}

TEST(Protocol, ColdCasesRotateOverCopiesAndOthersDoNot) {
  // first: three matrices of 8 x 8 f32 = 768 bytes; a cache of 4096 bytes: 1 + 3 * 4096 / 768 = 17 copies.
  const InProcess run("cache=4096");

  EXPECT_EQ(run.seen.of("first").copies, 17);
  EXPECT_EQ(run.seen.of("update").copies, 1);
  for (const SimEvent& event : run.backend.events()) {
    if (event.what != SimEvent::What::time || event.labels.front() != "first.gemm") continue;
    EXPECT_EQ(event.copies, 17);
  }
}

TEST(Protocol, TheTimedLaunchLeavesOutSetUpOps) {
  const InProcess run("");

  int seen = 0;
  for (const SimEvent& event : run.backend.events()) {
    if (event.what != SimEvent::What::time || event.labels.back() != "packed.gemm") continue;
    EXPECT_THAT(event.labels, ElementsAre("packed.gemm"));
    ++seen;
  }
  EXPECT_EQ(seen, 5);  // two estimates and three rounds
}

TEST(Protocol, OpsOfACompositeCaseAreTimedAloneToo) {
  const InProcess run("clock=1000");
  const CaseRecord& chain = run.seen.of("chain");

  ASSERT_EQ(chain.derived.breakdown.size(), 3U);
  for (const OpShare& op : chain.derived.breakdown) EXPECT_NEAR(op.share, 1.0 / 3.0, 1e-12);  // 1000 of 3000 ns
  EXPECT_NEAR(chain.derived.remainder, 0.0, 1e-12);
  EXPECT_EQ(chain.implementation, "");
  EXPECT_EQ(run.seen.of("first").derived.breakdown.size(), 0U);
  EXPECT_EQ(run.seen.of("first").implementation, "sim:textbook");
}

TEST(Protocol, StateIsRestoredBeforeEveryRound) {
  // c grows by a b in every run, so it starts a round with its first value only if it was restored.
  const InProcess run("");

  std::vector<double> c_before;
  for (const SimEvent& event : run.backend.events()) {
    if (event.what == SimEvent::What::time && event.labels.front() == "update.gemm")
      c_before.push_back(event.output_before);
  }
  ASSERT_EQ(c_before.size(), 5U);  // two estimates and three rounds
  for (const double c : c_before) EXPECT_EQ(c, c_before.front());
}

TEST(Protocol, AnUpdatedTensorIsJudgedOnWhatTheOpRead) {
  const InProcess run("");
  const CaseRecord& update = run.seen.of("update");

  EXPECT_EQ(update.verdict, Verdict::pass) << update.reason;
  ASSERT_EQ(update.parity.ops.size(), 3U);
  EXPECT_EQ(update.parity.ops[0].phase, "check");
  EXPECT_EQ(update.parity.ops[1].phase, "recheck");
  EXPECT_EQ(update.parity.ops[2].phase, "exact");
}

TEST(Protocol, GradientsClippedInPlaceAreRecheckedInSegments) {
  const InProcess run("");
  const CaseRecord& clip = run.seen.of("clip");

  EXPECT_EQ(clip.verdict, Verdict::pass) << clip.reason;
  EXPECT_THAT(clip.parity.coverage, HasSubstr("all 3 ops, 100% of elements"));
  EXPECT_THAT(clip.parity.coverage, HasSubstr("recheck replayed in 2 segments"));
  // The segment before the clip ran once, and the whole launch once.
  std::vector<std::vector<std::string>> replays;
  for (const SimEvent& event : run.backend.events()) {
    if (event.what == SimEvent::What::run && event.sequence && event.labels.front() == "clip.dw")
      replays.push_back(event.labels);
  }
  EXPECT_THAT(replays,
              ElementsAre(ElementsAre("clip.dw", "clip.norm"), ElementsAre("clip.dw", "clip.norm", "clip.clip")));
}

TEST(Protocol, ACaseThatDoesNotFitIsSkippedWithNumbersBeforeAnythingIsAllocated) {
  RunOptions options = smoke_options();
  options.memory_limit_bytes = 1000;  // first needs 768 bytes and guards (3 * 192), chain 6 matrices of 256 bytes
  const InProcess run("", options);

  EXPECT_EQ(run.seen.of("chain").verdict, Verdict::skipped);
  EXPECT_EQ(run.seen.of("chain").reason, "needs 1.5 kB, 1.0 kB are available");
  EXPECT_EQ(run.seen.count(Verdict::skipped), 6);
  EXPECT_EQ(run.backend.peak_bytes(), 0);
}

TEST(Protocol, EveryRecordSaysHowToRunItsCaseAgain) {
  RunOptions options = smoke_options();
  options.rerun_prefix = "gpubench run --device cpu";
  const InProcess run("", options);

  EXPECT_EQ(run.seen.of("last").rerun,
            "gpubench run --device cpu --filter '^sim/last/n=8/f32/x1$' --tier smoke --seed 42");
}

TEST(Protocol, AStopLeavesTheUnfinishedCasesWithoutARecord) {
  struct StopsAtTheSecondRecheck : Remembering {
    void phase(std::string_view case_id, std::string_view phase) override {
      Remembering::phase(case_id, phase);
      if (phase == "recheck" && ++rechecks == 2) stop = 15;
    }
    int rechecks = 0;
  };
  SimBackend backend(parse_script(""));
  StopsAtTheSecondRecheck seen;
  run_in_process(backend, sim_cases(), smoke_options(), seen, seen.stop);

  EXPECT_EQ(seen.rechecks, 2);
  EXPECT_EQ(seen.records.size(), 1U);  // a check ends between two ops
}

TEST(Protocol, RecordsAreFilledIn) {
  const InProcess run("");
  const CaseRecord& first = run.seen.of("first");

  EXPECT_EQ(first.c.workload, "first");
  EXPECT_EQ(first.parity.seed, 42U);
  EXPECT_EQ(first.parity.worst_op, "first.gemm");
  EXPECT_EQ(first.parity.coverage,
            "the op, 100% of elements; 100% of products bit for bit on exact data; 3 rounds: all of their results "
            "compared, bit for bit");
  EXPECT_GT(first.parity.ops.front().mutations, 0);
  EXPECT_EQ(first.parity.ops.front().implementation, "sim:textbook");
  EXPECT_GE(first.memory_bytes, first.copies * 768);
  EXPECT_GT(first.check_s, 0.0);
  EXPECT_GT(first.time_s, 0.0);
  EXPECT_DOUBLE_EQ(first.derived.flop, 1024.0);  // 2 * 8 * 8 * 8
}

}  // namespace
}  // namespace gpubench::sim
