#include "harness/cli/recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace {

class InterruptedAfter final : public RunObserver {
 public:
  InterruptedAfter(RunObserver& inner, int rounds, StopFlag& stop) : inner_(inner), left_(rounds), stop_(stop) {}
  void phase(std::string_view key, std::string_view phase) override { inner_.phase(key, phase); }
  void round(const CaseRecord& record) override {
    inner_.round(record);
    if (--left_ == 0) stop_ = SIGTERM;
  }
  void finished(const CaseRecord& record) override { inner_.finished(record); }
  void note(std::string_view text) override { inner_.note(text); }
  void tick() override { inner_.tick(); }

 private:
  RunObserver& inner_;
  int left_;
  StopFlag& stop_;
};

std::vector<CaseRecord> interrupted_after(int rounds, Recorder& recorder, SimBackend& backend) {
  StopFlag stop{0};
  InterruptedAfter observer(recorder, rounds, stop);
  run_in_process(backend, sim_cases(), smoke_options(), observer, stop);
  return recorder.in_order_of(sim_cases(), stop);
}

// The cases of the simulated suite take turns: after as many rounds as cases each has one.
TEST(Recorder, KeepsTheRoundsOfInterruptedCasesAsUnfinished) {
  SimBackend backend(parse_script(""));
  Remembering view;
  Recorder recorder(view, backend.device(), nullptr);
  const auto count = static_cast<int>(sim_cases().size());
  int rounds = 0;
  for (const CaseRecord& record : interrupted_after(count + 1, recorder, backend)) {
    EXPECT_EQ(record.verdict, Verdict::skipped) << record.id;
    EXPECT_TRUE(record.rounds.empty());
    EXPECT_EQ(record.summary.rounds, 0);
    EXPECT_EQ(record.derived.headline, 0.0);
    ASSERT_TRUE(record.unfinished) << record.id;
    const Unfinished& left = *record.unfinished;
    EXPECT_EQ(left.why, "SIGTERM");
    EXPECT_GT(left.batch, 0);
    EXPECT_NE(left.checked.find("elements before the rounds, none wrong; results of the rounds not checked"),
              std::string::npos);
    for (const RoundRecord& round : left.rounds) EXPECT_FALSE(round.times.device_ns.empty());
    rounds += static_cast<int>(left.rounds.size());
    const std::string reason =
        fmt::format("the run was interrupted before this case finished; its {} kept as unfinished",
                    left.rounds.size() == 1 ? "1 round is" : "2 rounds are");
    EXPECT_EQ(record.reason, reason);
  }
  EXPECT_EQ(rounds, count + 1);
}

TEST(Recorder, HasNothingUnfinishedOfCasesThatHadNoRoundOrFinished) {
  SimBackend backend(parse_script(""));
  Remembering view;
  Recorder recorder(view, backend.device(), nullptr);
  StopFlag stop{0};
  run_in_process(backend, sim_cases(), smoke_options(), recorder, stop);
  for (const CaseRecord& record : recorder.in_order_of(sim_cases(), SIGINT)) {
    EXPECT_EQ(record.verdict, Verdict::pass);
    EXPECT_FALSE(record.unfinished);
  }
  Recorder unused(view, backend.device(), nullptr);
  for (const CaseRecord& record : unused.in_order_of(sim_cases(), SIGINT)) EXPECT_FALSE(record.unfinished);
}

// The second interruption comes before the case has another round.
TEST(Recorder, KeepsWhatAnEarlierInterruptionLeft) {
  SimBackend backend(parse_script(""));
  Remembering view;
  Recorder first(view, backend.device(), nullptr);
  Journal journal;
  for (CaseRecord& record : interrupted_after(1, first, backend)) {
    if (!record.unfinished) continue;
    record.rounds = record.unfinished->rounds;
    journal.in_flight[record.key()] = record;
  }
  ASSERT_EQ(journal.in_flight.size(), 1U);
  Recorder second(view, backend.device(), nullptr);
  second.take(journal);
  int rounds = 0;
  for (const CaseRecord& record : second.in_order_of(sim_cases(), SIGHUP)) {
    if (!record.unfinished) continue;
    EXPECT_EQ(record.unfinished->why, "SIGHUP");
    rounds += static_cast<int>(record.unfinished->rounds.size());
  }
  EXPECT_EQ(rounds, 1);
}

// If a value that looks like a flag were taken for one, the next word would become a flag.
TEST(JournalWords, ValuesThatLookLikeFlagsOfCodeAreValues) {
  const std::vector<std::string> crafted{
      "--filter",  "--trust-libraries",    "--exclude", "--impl=evil.so", "--filter", "--impl", "--seed", "1",
      "--exclude", "--junit=overwritten.x"};
  EXPECT_EQ(without_files(crafted), crafted);
  EXPECT_TRUE(code_flags(crafted).empty());
  const std::vector<std::string> plain{"--tier",   "smoke", "--impl",         "mine.so", "--trust-libraries",
                                       "--python", "py",    "--virtual-ranks"};
  EXPECT_EQ(code_flags(plain), (std::vector<std::string>{"--impl", "mine.so", "--trust-libraries", "--python", "py"}));
}

}  // namespace
}  // namespace gpubench::sim
