#include "harness/run/case_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "harness/core/error.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/gemm.h"
#include "reference/ops/pointwise.h"
#include "suites/suites.h"
#include "tests/harness/run/run_fixture.h"

namespace gpubench {
namespace case_record_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CaseRecord passing() {
  CaseRecord record;
  record.verdict = Verdict::pass;
  return record;
}

TEST(EndToEndVerdict, TensorsWithinWhatTheyMayBeOffLeaveThePass) {
  CaseRecord record = passing();
  add_end_to_end(record, std::vector<EndToEndResult>{{"loss", Role::scalar, 3.0, 0.5, 1.0},
                                                     {"y", Role::activation, 1.0, 0.0, 0.0}});
  EXPECT_EQ(record.verdict, Verdict::pass);
  ASSERT_EQ(record.parity.end_to_end->size(), 2U);
  EXPECT_EQ(record.parity.end_to_end->front().role, "scalar");
}

TEST(EndToEndVerdict, OneThatIsFurtherOffOrNaNFailsAndTheWorstIsNamed) {
  CaseRecord record = passing();
  add_end_to_end(record, std::vector<EndToEndResult>{{"a", Role::gradient, 3.0, 1.5, 1.0},
                                                     {"b", Role::gradient, 3.0, 4.0, 1.0},
                                                     {"c", Role::gradient, 3.0, 0.5, 1.0}});
  EXPECT_EQ(record.verdict, Verdict::fail);
  EXPECT_THAT(record.reason, HasSubstr("end to end: 'b' differs by 4 from the whole program in fp64"));
  EXPECT_THAT(record.reason, HasSubstr("2 of 3 tensors are outside"));

  CaseRecord nan = passing();
  add_end_to_end(nan, std::vector<EndToEndResult>{{"a", Role::gradient, 3.0, std::nan(""), 1.0}});
  EXPECT_EQ(nan.verdict, Verdict::fail);
}

Program two_ops(const Case& c, const Recipe& r) {
  Program p;
  const ValueId a = p.add(tensor("a", r.tensor, {c.dim("m"), 40}, Role::input, Fill::normal(1.0)));
  const ValueId b = p.add(tensor("b", r.tensor, {40, 24}, Role::input, Fill::normal(0.125)));
  (void)gelu_forward(p, {}, r.math, "gelu", gemm(p, {}, r.math, "product", a, b).c);
  return p;
}

CaseRecord run_with(CheckMode check) {
  Grid grid;
  grid.recipes = {"f32"};
  grid.points = {Point{{{"m", 33}}, "odd", Tier::smoke}};
  const std::vector<Suite> suites{
      {"two",
       "ops",
       {suites::declare(
           {{"two", "ops", "", PrimaryMetric::flop_per_s, "rows", CacheMode::cold}, grid, two_ops, [](const Case&) {
              return 1.0;
            }})}}};
  const std::vector<PlannedCase> planned = plan_cases(suites, {});
  const std::unique_ptr<Backend> cpu = open_cpu_backend(2);
  RunOptions options = sim::smoke_options();
  options.check = check;
  sim::Remembering seen;
  run_in_process(*cpu, planned, options, seen, seen.stop);
  return seen.records.begin()->second;
}

TEST(EndToEndVerdict, TheFullCheckRunsSmallProgramsWholeAndTheSampleDoesNot) {
  const CaseRecord full = run_with(CheckMode::full);
  EXPECT_EQ(full.verdict, Verdict::pass) << full.reason;
  ASSERT_TRUE(full.parity.end_to_end.has_value());
  ASSERT_EQ(full.parity.end_to_end->size(), 2U);  // the product and its gelu
  for (const EndToEndTensor& tensor : *full.parity.end_to_end) {
    EXPECT_GT(tensor.error, 0.0) << tensor.tensor;
    EXPECT_LE(tensor.error, tensor.allowed) << tensor.tensor;
    EXPECT_LT(tensor.allowed, 1e-4 * tensor.norm) << tensor.tensor;
  }
  EXPECT_THAT(full.parity.coverage, HasSubstr("2 tensors end to end"));
  EXPECT_FALSE(run_with(CheckMode::sample).parity.end_to_end.has_value());
}

TEST(PeakVerdict, ARateAboveThePeakIsAnErrorOfWhatPassed) {
  PeakShare share;
  share.finding = "1.2e+15 FLOP/s is above what the device can do";
  for (const auto& [before, after] :
       {std::pair{Verdict::pass, Verdict::error}, {Verdict::unverified, Verdict::error}}) {
    CaseRecord record = passing();
    record.verdict = before;
    add_peak_share(record, share);
    EXPECT_EQ(record.verdict, after);
    EXPECT_EQ(record.reason, share.finding);
    EXPECT_THAT(record.summary.flags, ElementsAre("above peak"));
  }
}

TEST(PeakVerdict, AConvolutionAboveThePeakIsOnlyFlagged) {
  CaseRecord record = passing();
  OpParity op;
  op.kind = "conv2d_forward";
  record.parity.ops = {op};
  PeakShare share;
  share.finding = "9e+13 FLOP/s is above what the device can do";
  add_peak_share(record, share);
  EXPECT_EQ(record.verdict, Verdict::pass);
  EXPECT_THAT(record.summary.flags, ElementsAre("above peak"));
}

TEST(PeakVerdict, AShareWithoutAFindingLeavesTheVerdict) {
  CaseRecord record = passing();
  add_peak_share(record, PeakShare{});
  add_peak_share(record, std::nullopt);
  EXPECT_EQ(record.verdict, Verdict::pass);
  EXPECT_THAT(record.summary.flags, ElementsAre());
}

TEST(UnfinishedRecord, IsSkippedWhereASignalCameAndAnErrorElsewhere) {
  const PlannedCase planned = sim::sim_cases().front();
  EXPECT_EQ(unfinished_record(planned, 2, nullptr).verdict, Verdict::skipped);
  EXPECT_EQ(unfinished_record(planned, 0, nullptr).verdict, Verdict::error);
  CaseRecord left = passing();
  left.rounds.resize(2);
  const CaseRecord record = unfinished_record(planned, 2, &left);
  EXPECT_THAT(record.reason, HasSubstr("its 2 rounds are kept as unfinished"));
  EXPECT_EQ(record.unfinished->why, "SIGINT");
}

TEST(DefinitionHash, IsSixteenHexadecimalDigitsAndAnotherForEachCase) {
  std::set<std::string> seen;
  for (const PlannedCase& planned : sim::sim_cases()) {
    const std::string hash = definition_hash(planned);
    EXPECT_TRUE(is_definition_hash(hash)) << hash;
    EXPECT_EQ(hash, definition_hash(planned));
    EXPECT_TRUE(seen.insert(hash).second) << planned.id();
  }
  EXPECT_EQ(seen.size(), 6U);
}

TEST(DefinitionHash, StandsInTheRecordOfCasesThatPassAndOfThoseThatDoNot) {
  sim::InProcess faulty("wrong_element@chain.down");
  sim::InProcess clean("");
  RunOptions narrow = sim::smoke_options();
  narrow.memory_limit_bytes = 1;
  sim::InProcess skipped("", narrow);
  EXPECT_GT(faulty.seen.count(Verdict::fail), 0);
  EXPECT_EQ(skipped.seen.count(Verdict::skipped), 6);
  for (const PlannedCase& planned : sim::sim_cases()) {
    for (const sim::InProcess* run : {&faulty, &clean, &skipped})
      EXPECT_EQ(run->seen.records.at(planned.id()).def_hash, definition_hash(planned)) << planned.id();
  }
}

}  // namespace case_record_test

}  // namespace gpubench
