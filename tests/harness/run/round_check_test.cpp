// Faults of a round, a copy or a run are found and reported; correct results raise no alarm.
#include "harness/run/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/hash.h"
#include "tests/fakes/sim/sim_backend.h"
#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace round_check_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// 100 us a run on the clock: two runs fill the shortest sample of the preset (200 us), three samples are a round. The
// warm-up is one call, the estimate the first call of time(): rounds 1 to 3 are calls 2 to 4.
constexpr double run_ns = 100e3;
constexpr std::int64_t middle = 27;  // of 64 elements

struct Flaky {
  explicit Flaky(Flaw flaw, const std::string& script = "") : inner(parse_script(script)) {
    const std::unique_ptr<Backend> backend = flaky(inner, std::move(flaw), run_ns);
    run_in_process(*backend, sim_cases(), smoke_options(), seen, seen.stop);
  }
  SimBackend inner;
  Remembering seen;
};

Flaw flaw(std::string label, std::function<bool(const Moment&)> when) {
  return {std::move(label), std::move(when), one_wrong_element(middle), false};
}

TEST(RoundCheck, NamesTheRoundTheCopyAndTheElementThatALaterRoundWouldHaveOverwritten) {
  const Flaky run(flaw("last.add", [](const Moment& now) { return now.call == estimates + 2; }));
  const CaseRecord& record = run.seen.of("last");

  EXPECT_EQ(record.verdict, Verdict::fail);
  EXPECT_THAT(record.reason,
              AllOf(StartsWith("op 'last.add' (add) failed in timed: round 2 left 1 element in copy 0 that differs"),
                    HasSubstr("[3, 3]")));
  EXPECT_EQ(record.rounds.size(), 2U);  // the fault ends the rounds
  EXPECT_EQ(run.seen.count(Verdict::pass), 5);
}

// 17 copies, 7 turns: the warm-up in copy 0, then six runs in copies 0 to 5, of which the fourth is spoiled.
TEST(RoundCheck, SeesTheOneCopyInWhichARunWasSpoiled) {
  const Flaky run(flaw("first.gemm", [](const Moment& now) { return now.call == estimates + 1 && now.turn == 5; }),
                  "cache=4096");
  const CaseRecord& record = run.seen.of("first");

  EXPECT_EQ(record.copies, 17);
  EXPECT_THAT(record.reason, HasSubstr("round 1 left 1 element in copy 3 that differs from the checked results"));
}

// The wrong element of chain.up makes a whole row of chain.down and of chain.add wrong; only chain.up is blamed.
TEST(RoundCheck, BlamesTheOpWhoseResultIsWrongForWhatItWasGiven) {
  const Flaky run(flaw("chain.up", [](const Moment& now) { return now.call == estimates + 3; }));

  EXPECT_THAT(run.seen.of("chain").reason, StartsWith("op 'chain.up' (gemm) failed in timed: round 3 left 1 element"));
}

// After the estimates and three rounds each recheck is a call of time() with one run.
constexpr std::int64_t calls_before = estimates + 3;
struct Rechecked {
  Rechecked(int rechecks, Flaw flaw) : inner(parse_script("")) {
    RunOptions options = smoke_options();
    options.rechecks = rechecks;
    const std::unique_ptr<Backend> backend = flaky(inner, std::move(flaw), run_ns);
    run_in_process(*backend, sim_cases(), options, seen, seen.stop);
  }
  SimBackend inner;
  Remembering seen;
};

TEST(Recheck, FindsAFaultThatComesAfterAllRounds) {
  const Rechecked run(20, flaw("last.add", [](const Moment& now) { return now.call == calls_before + 13; }));
  const CaseRecord& record = run.seen.of("last");

  EXPECT_EQ(record.verdict, Verdict::fail);
  EXPECT_THAT(record.reason, AllOf(HasSubstr("recheck 13 left 1 element in copy"), HasSubstr("[3, 3]")));
  EXPECT_THAT(record.parity.coverage, HasSubstr("; 13 rechecks: a fault in 1 of 10 launches is seen with 75%"));
  EXPECT_EQ(record.rounds.size(), 3U);
}

// The state is restored before each recheck, so all must give the same bits.
TEST(Recheck, OfAProgramWithStateComparesItsLaunchesWithEachOther) {
  const Rechecked run(20, flaw("update.gemm", [](const Moment& now) { return now.call == calls_before + 6; }));
  const CaseRecord& record = run.seen.of("update");

  EXPECT_EQ(record.verdict, Verdict::fail);
  EXPECT_THAT(record.reason, HasSubstr("recheck 6 left other bits of 'c' in copy 0 than two repetitions of the same "
                                       "run from the same state, which agree"));
}

TEST(Recheck, OfCorrectLaunchesSaysHowRareAFaultIsSeen) {
  const Rechecked run(20, flaw("no op", [](const Moment&) { return false; }));

  EXPECT_EQ(run.seen.count(Verdict::pass), 6);
  for (const auto& [id, record] : run.seen.records)
    EXPECT_THAT(record.parity.coverage, HasSubstr("; 20 rechecks: a fault in 1 of 10 launches is seen with 88%")) << id;
}

// 1 - 0.999^1000 = 0.6323, 1 - 0.9^5 = 0.40951, 1 - 0.99^300 = 0.9510
TEST(Recheck, TellsTheChanceToSeeARareFault) {
  EXPECT_NEAR(detection_probability(1000, 1000), 0.6323, 1e-4);
  EXPECT_EQ(recheck_text(1000), "1000 rechecks: a fault in 1 of 1,000 launches is seen with 63%");
  EXPECT_EQ(recheck_text(300), "300 rechecks: a fault in 1 of 100 launches is seen with 95%");
  EXPECT_EQ(recheck_text(5), "5 rechecks: a fault in 1 of 10 launches is seen with 41%");
}

// As a sum by atomics, whose last bits differ from run to run within the bound.
TEST(Recheck, JudgesByTheBoundsWhereBitsVary) {
  Flaw last_bit = flaw("first.gemm", [](const Moment& now) { return now.call > calls_before && now.call % 2 == 0; });
  last_bit.spoil = [](const TensorSpec&, std::byte* c) { c[4 * middle] ^= std::byte{1}; };
  const Rechecked run(20, last_bit);
  const CaseRecord& record = run.seen.of("first");

  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  EXPECT_THAT(record.parity.coverage, HasSubstr("10 elements that differed within their bound"));
  EXPECT_THAT(record.parity.coverage, HasSubstr("is seen with 88%, if it is outside its bounds, since bits vary"));
}

// clip.dw's result is clipped in place, so the original value is gone at the end of the run.
TEST(RoundCheck, FindsAFaultWhoseOwnTraceWasOverwrittenWithinTheRun) {
  const Flaky run(flaw("clip.dw", [](const Moment& now) { return now.call == estimates + 2; }));
  const CaseRecord& record = run.seen.of("clip");

  EXPECT_EQ(record.verdict, Verdict::fail);
  EXPECT_THAT(record.reason, HasSubstr("failed in timed: round 2 left"));
  EXPECT_THAT(record.reason, HasSubstr("or an earlier op is wrong, whose result was overwritten in the same run"));
}

// 'update' adds to its state in every run, which keeps a wrong addend. With state every warm-up has the same number of
// runs: 10 for 1 ms; 6 follow.
TEST(RoundCheck, AStateCarriesASpoiledRunInTheMiddleOfARoundToItsEnd) {
  for (const std::int64_t round : {1, 2}) {
    const Flaky run(
        flaw("update.gemm", [=](const Moment& now) { return now.call == estimates + round && now.turn == 3; }));
    const CaseRecord& record = run.seen.of("update");

    EXPECT_EQ(record.verdict, Verdict::fail) << record.reason;
    // The second round is compared with the first; only repetitions show which one is wrong.
    EXPECT_THAT(
        record.reason,
        StartsWith(round == 1 ? "op 'update.gemm' (gemm) failed in timed: an earlier round left other bits of 'c'"
                              : "op 'update.gemm' (gemm) failed in timed: round 2 left other bits of 'c'"));
    EXPECT_THAT(record.reason, HasSubstr("16 runs from the same state"));
  }
}

TEST(RoundCheck, AWrongRunThatALaterOneOfTheSameRoundOverwritesLeavesNoTrace) {
  const Flaky run(flaw("packed.gemm", [](const Moment& now) { return now.call == estimates + 2 && now.turn == 1; }));

  EXPECT_EQ(run.seen.of("packed").verdict, Verdict::pass);  // known limit: harness/run/DETECTION.md
}

TEST(RoundCheck, SaysWhatItComparedAndRaisesNoAlarmWhereNothingIsWrong) {
  for (const std::string script : {"", "cache=4096"}) {
    const Flaky run(flaw("last.add", [](const Moment&) { return false; }), script);
    for (const auto& [id, record] : run.seen.records) {
      EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
      // The first round of a state has nothing to be compared with.
      const bool state = id == sim_id("update");
      EXPECT_THAT(record.parity.coverage, HasSubstr(state ? "3 rounds: 67% of their results compared, bit for bit"
                                                          : "3 rounds: all of their results compared, bit for bit"));
    }
  }
}

// The last bit of an element changes in every run, as with atomics.
Flaw restless(const std::string& label) {
  auto runs = std::make_shared<int>(0);
  return {label, [](const Moment&) { return true; },
          [runs](const TensorSpec&, std::byte* data) { data[0] ^= static_cast<std::byte>(++*runs % 2); }, false};
}

TEST(RoundCheck, BitsThatVaryWithinTheBoundAreJudgedAndSaid) {
  const Flaky run(restless("first.gemm"));
  const CaseRecord& record = run.seen.of("first");

  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  EXPECT_THAT(record.parity.coverage, HasSubstr("bits vary from run to run"));
}

TEST(RoundCheck, AStateWhoseBitsVaryBlamesNobody) {
  auto runs = std::make_shared<std::int64_t>(0);
  const auto noise = [runs](const TensorSpec&, std::byte* data) {
    data[0] ^= static_cast<std::byte>(hash_at(1, static_cast<std::uint64_t>(++*runs)) % 8);
  };
  const Flaky run({"update.gemm", [](const Moment&) { return true; }, noise, false});
  const CaseRecord& record = run.seen.of("update");

  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  EXPECT_THAT(record.parity.coverage, HasSubstr("the bits of its state vary from run to run: 3 rounds not compared"));
}

TEST(RoundCheck, NothingIsComparedWithTheCheckOff) {
  SimBackend inner(parse_script(""));
  const auto backend = flaky(inner, flaw("last.add", [](const Moment&) { return true; }), run_ns);
  RunOptions options = smoke_options();
  options.check = CheckMode::off;
  Remembering seen;
  run_in_process(*backend, sim_cases(), options, seen, seen.stop);

  EXPECT_EQ(seen.of("last").verdict, Verdict::unverified);
  EXPECT_EQ(seen.of("last").rounds.size(), 3U);
}

}  // namespace round_check_test
}  // namespace gpubench::sim
