// Every scripted fault must get its verdict, name its op, and affect no other case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <ostream>

#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace {

using ::testing::HasSubstr;

struct ExpectedOutcome {
  std::string script;
  std::string name;  ///< of the affected case; all others must pass
  Verdict verdict;
  std::vector<std::string> reason;  ///< substrings of the reason
};

class EveryFault : public ::testing::TestWithParam<ExpectedOutcome> {};

TEST_P(EveryFault, IsFoundAndCostsOnlyItsCase) {
  const ExpectedOutcome& expected = GetParam();
  for (const std::string prefix : {"", "opaque;"}) {
    const InProcess run(prefix + expected.script);

    ASSERT_EQ(run.seen.records.size(), 6U);
    EXPECT_EQ(run.seen.count(Verdict::pass), 5) << expected.script;
    const CaseRecord& record = run.seen.of(expected.name);
    EXPECT_EQ(record.verdict, expected.verdict) << record.reason;
    for (const std::string& part : expected.reason) EXPECT_THAT(record.reason, HasSubstr(part));
    EXPECT_EQ(record.derived.headline == 0.0, record.rounds.empty());
  }
}

std::string test_name(const ::testing::TestParamInfo<ExpectedOutcome>& test) {
  std::string name = test.param.script;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

std::ostream& operator<<(std::ostream& out, const ExpectedOutcome& expected) { return out << expected.script; }

INSTANTIATE_TEST_SUITE_P(
    Sim, EveryFault,
    ::testing::Values(
        ExpectedOutcome{
            "wrong_element@first.gemm", "first", Verdict::fail, {"op 'first.gemm' (gemm) failed in check", "1 of 64"}},
        ExpectedOutcome{"unwritten@chain.down",
                        "chain",
                        Verdict::fail,
                        {"op 'chain.down' (gemm) failed in check", "unwritten", "16 of 64"}},
        ExpectedOutcome{"transposed@first.gemm", "first", Verdict::fail, {"op 'first.gemm' (gemm) failed in check"}},
        ExpectedOutcome{"nan@last.add", "last", Verdict::fail, {"op 'last.add' (add) failed in check"}},
        ExpectedOutcome{"inf@packed.gemm", "packed", Verdict::fail, {"op 'packed.gemm' (gemm) failed in check"}},
        ExpectedOutcome{
            "wrong_element@packed.copy", "packed", Verdict::fail, {"op 'packed.copy' (copy) failed in check"}},
        ExpectedOutcome{
            "guard@chain.up",
            "chain",
            Verdict::fail,
            {"op 'chain.up' (gemm) failed in check", "wrote outside 'chain.up': 3 guard bytes after its end changed"}},
        ExpectedOutcome{"changes_input@chain.add",
                        "chain",
                        Verdict::fail,
                        {"op 'chain.add' (add) failed in check", "changed its input 'chain.down'"}},
        ExpectedOutcome{"out_of_memory@update.gemm",
                        "update",
                        Verdict::error,
                        {"could not allocate 123456789 bytes", "in phase 'check'"}},
        ExpectedOutcome{"bad_alloc@clip.norm", "clip", Verdict::error, {"out of host memory in phase 'check'"}},
        ExpectedOutcome{"unsupported@first.gemm", "first", Verdict::unsupported, {"sim: no implementation of gemm"}}),
    test_name);

// Only in the timed launch: the check of the ops alone passes.
INSTANTIATE_TEST_SUITE_P(
    SimSequenceOnly, EveryFault,
    ::testing::Values(
        ExpectedOutcome{
            "drop@chain.down", "chain", Verdict::fail, {"op 'chain.down' (gemm) failed in timed", "unwritten"}},
        ExpectedOutcome{"drop@update.gemm", "update", Verdict::fail, {"op 'update.gemm' (gemm) failed in recheck"}},
        ExpectedOutcome{"drop@clip.clip", "clip", Verdict::fail, {"op 'clip.clip' (clip) failed in recheck"}},
        ExpectedOutcome{"drop@clip.dw", "clip", Verdict::fail, {"op 'clip.dw' (gemm) failed in recheck"}},
        ExpectedOutcome{"early@chain.add", "chain", Verdict::fail, {"op 'chain.add' (add) failed in"}},
        ExpectedOutcome{"early@clip.clip", "clip", Verdict::fail, {"failed in"}},
        ExpectedOutcome{"stale@first.gemm", "first", Verdict::fail, {"op 'first.gemm' (gemm) failed in recheck"}},
        ExpectedOutcome{"stale@packed.gemm", "packed", Verdict::fail, {"op 'packed.gemm' (gemm) failed in recheck"}},
        ExpectedOutcome{
            "wrong_element/sequence@last.add", "last", Verdict::fail, {"op 'last.add' (add) failed in timed"}},
        ExpectedOutcome{"nan/sequence@clip.dw", "clip", Verdict::fail, {"op 'clip.dw' (gemm) failed in recheck"}},
        ExpectedOutcome{
            "guard/sequence@first.gemm", "first", Verdict::fail, {"the timed launch wrote outside 'first.gemm'"}},
        ExpectedOutcome{"changes_input/sequence@last.add",
                        "last",
                        Verdict::fail,
                        {"the timed launch changed constant 'a', read by 'last.add' (add)"}},
        ExpectedOutcome{
            "out_of_memory/sequence@update.gemm", "update", Verdict::error, {"could not allocate", "in phase 'time'"}}),
    test_name);

TEST(Faults, NoneMeansThatAllPass) {
  const InProcess run("");

  ASSERT_EQ(run.seen.records.size(), 6U);
  for (const auto& [id, record] : run.seen.records) {
    EXPECT_EQ(record.verdict, Verdict::pass) << id << ": " << record.reason;
    EXPECT_EQ(record.reason, "");
    EXPECT_GT(record.parity.ops.size(), 0U);
  }
}

TEST(Faults, ADeviceLostWithoutIsolationIsAnErrorOfEveryLaterCaseAndNeverAPass) {
  const InProcess run("lost@chain.down");

  ASSERT_EQ(run.seen.records.size(), 6U);
  EXPECT_THAT(run.seen.of("chain").reason, HasSubstr("sim: illegal address"));
  EXPECT_EQ(run.seen.count(Verdict::error), 6);  // earlier cases had no rounds yet
  EXPECT_THAT(run.seen.of("last").reason, HasSubstr("the device was lost in an earlier case"));
}

TEST(Faults, AFailedCheckIsNotTimed) {
  const InProcess run("wrong_element@first.gemm");

  EXPECT_EQ(run.seen.of("first").rounds.size(), 0U);
  EXPECT_EQ(run.seen.of("first").summary.rounds, 0);
}

TEST(Faults, WithTheCheckOffAWrongResultIsUnverifiedAndStillTimed) {
  RunOptions options = smoke_options();
  options.check = CheckMode::off;
  const InProcess run("wrong_element@first.gemm", options);

  EXPECT_EQ(run.seen.count(Verdict::unverified), 6);
  EXPECT_EQ(run.seen.of("first").rounds.size(), 3U);
  EXPECT_EQ(run.seen.of("first").parity.coverage, "not checked");
}

}  // namespace
}  // namespace gpubench::sim
