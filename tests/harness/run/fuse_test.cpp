// Effects of the backend's fused ops on a case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* claiming = "fuse=residual_norm_forward";

CaseRecord run_residual(const std::string& script, bool fuse = true) {
  SimBackend backend(parse_script(script));
  Remembering seen;
  const std::array cases{residual_case(fuse)};
  run_in_process(backend, cases, smoke_options(), seen, seen.stop);
  return seen.of("residual");
}

CaseRecord run_linear(const std::string& script) {
  SimBackend backend(parse_script(script));
  Remembering seen;
  const std::array cases{linear_case()};
  run_in_process(backend, cases, smoke_options(), seen, seen.stop);
  return seen.of("linear");
}

std::vector<std::string> timed_ops(const CaseRecord& record) {
  std::vector<std::string> labels;
  for (const OpShare& op : record.derived.breakdown) labels.push_back(op.label);
  return labels;
}

TEST(Fusing, RunsChecksAndNamesTheFusedOp) {
  const CaseRecord record = run_residual(claiming);

  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  ASSERT_TRUE(record.rewrites.has_value());
  EXPECT_THAT(*record.rewrites, ElementsAre("residual.sum+residual.norm = residual_norm_forward"));
  EXPECT_THAT(timed_ops(record),
              ElementsAre("residual.up", "residual.sum+residual.norm", "residual.down", "residual.out"));
  int judged = 0;
  for (const OpParity& op : record.parity.ops) {
    if (op.kind == "residual_norm_forward") judged += op.verdict == Verdict::pass ? 1 : 0;
    EXPECT_NE(op.kind, "layer_norm_forward");
  }
  EXPECT_EQ(judged, 3);  // check, recheck and revealing data
}

TEST(Fusing, TheRecordSaysWhereAGainIsNotYetMeasured) {
  const CaseRecord record = run_residual("fuse_unmeasured=residual_norm_forward");

  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  ASSERT_TRUE(record.rewrites.has_value());
  EXPECT_THAT(*record.rewrites,
              ElementsAre("residual.sum+residual.norm = residual_norm_forward (gain not yet measured)"));
}

TEST(Fusing, LeavesTheWorkAndSavesBytes) {
  const CaseRecord fused = run_residual(claiming);
  const CaseRecord plain = run_residual("");

  EXPECT_EQ(fused.derived.flop, residual_case(true).cost.flop);
  EXPECT_EQ(fused.derived.flop, plain.derived.flop);
  EXPECT_EQ(fused.derived.bytes, plain.derived.bytes - 8 * 8 * 4);  // one read of the sum
  EXPECT_LE(fused.memory_bytes, plain.memory_bytes);
}

TEST(Fusing, HappensOnlyWhereTheBackendClaimsTheOpAndTheCaseLetsIt) {
  for (const CaseRecord& record : {run_residual(""), run_residual(claiming, false)}) {
    EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
    EXPECT_FALSE(record.rewrites.has_value());
    EXPECT_THAT(timed_ops(record),
                ElementsAre("residual.up", "residual.sum", "residual.norm", "residual.down", "residual.out"));
  }
}

TEST(Fusing, AWrongElementOfTheFusedOpIsFoundInIt) {
  const CaseRecord record = run_residual("fuse=residual_norm_forward;wrong_element@residual.sum+residual.norm");

  EXPECT_EQ(record.verdict, Verdict::fail);
  EXPECT_THAT(record.reason,
              HasSubstr("op 'residual.sum+residual.norm' (residual_norm_forward) failed in check: 1 of 144 "));
}

TEST(Fusing, AFusedOpThatTheTimedLaunchLeavesOutIsFoundInIt) {
  const CaseRecord record = run_residual("fuse=residual_norm_forward;drop@residual.sum+residual.norm");

  EXPECT_EQ(record.verdict, Verdict::fail);
  EXPECT_THAT(record.reason, HasSubstr("op 'residual.sum+residual.norm' (residual_norm_forward) failed in timed"));
}

constexpr const char* claiming_bias_gradients =
    "fuse_unmeasured=gemm_gelu_bias_gradient;fuse=gemm_weight_bias_gradient";
constexpr const char* gelu_op = "linear.dhidden+linear.dz+linear.sum";

TEST(Fusing, RunsAndChecksBiasGradientsBesideTheirProducts) {
  const CaseRecord record = run_linear(claiming_bias_gradients);

  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  ASSERT_TRUE(record.rewrites.has_value());
  EXPECT_THAT(*record.rewrites, ElementsAre(std::string(gelu_op) + " = gemm_gelu_bias_gradient (gain not yet measured)",
                                            "linear.dw+linear.db = gemm_weight_bias_gradient"));
  EXPECT_THAT(timed_ops(record), ElementsAre(gelu_op, "linear.dw+linear.db"));
  const CaseRecord plain = run_linear("");
  EXPECT_EQ(record.derived.flop, plain.derived.flop);
  // A write and a read of the product, a read of dz and of dy: 4 tensors of 64 elements.
  EXPECT_EQ(record.derived.bytes, plain.derived.bytes - 4 * 64 * 4);
  EXPECT_LT(record.memory_bytes, plain.memory_bytes);
}

TEST(Fusing, AWrongBiasGradientIsFoundInItsFusedOp) {
  for (const std::string& label : {std::string(gelu_op), std::string("linear.dw+linear.db")}) {
    const CaseRecord record = run_linear(std::string(claiming_bias_gradients) + ";wrong_last@" + label);

    EXPECT_EQ(record.verdict, Verdict::fail);
    EXPECT_THAT(record.reason, HasSubstr("op '" + label + "' (gemm_"));
    EXPECT_THAT(record.reason, HasSubstr("1 of 72 judged elements outside their bound, worst at linear."));
  }
}

// Either dz is wrong and its sum is right, or the sum is of another dz; found from the launch's outputs.
TEST(Fusing, AFusedProductThatDoesNotBelongToItsSumIsFoundInBoth) {
  const CaseRecord record = run_linear(std::string(claiming_bias_gradients) + ";wrong_element@" + gelu_op);

  EXPECT_EQ(record.verdict, Verdict::fail);
  EXPECT_THAT(record.reason, HasSubstr("2 of 72 judged elements outside their bound"));
}

CaseRecord run_tied(const std::string& script) {
  SimBackend backend(parse_script(script));
  Remembering seen;
  const std::array cases{tied_case()};
  run_in_process(backend, cases, smoke_options(), seen, seen.stop);
  return seen.of("tied");
}

// The sum overwrites the head's gradient: both are judged, also in every replay of the timed launch.
TEST(Fusing, ASumInThePlaceOfASummandIsRunAndJudged) {
  const CaseRecord record = run_tied("fuse=embedding_backward_add");

  EXPECT_EQ(record.verdict, Verdict::pass) << record.reason;
  ASSERT_TRUE(record.rewrites.has_value());
  EXPECT_THAT(*record.rewrites, ElementsAre("tied.embedding+tied.sum = embedding_backward_add"));
  EXPECT_THAT(timed_ops(record), ElementsAre("tied.head", "tied.embedding+tied.sum", "tied.norm"));
  const CaseRecord plain = run_tied("");
  EXPECT_EQ(plain.verdict, Verdict::pass) << plain.reason;
  EXPECT_EQ(record.derived.flop, plain.derived.flop);
  // A write and a read of the embedding's table.
  EXPECT_EQ(record.derived.bytes, plain.derived.bytes - 2 * 64 * 4);
  EXPECT_LT(record.memory_bytes, plain.memory_bytes);
}

TEST(Fusing, AWrongOrForgottenSumInPlaceIsFoundInIt) {
  const std::string label = "tied.embedding+tied.sum";
  for (const char* fault : {"wrong_element@", "drop@"}) {
    const CaseRecord record = run_tied("fuse=embedding_backward_add;" + (fault + label));

    EXPECT_EQ(record.verdict, Verdict::fail) << fault;
    EXPECT_THAT(record.reason, HasSubstr("op '" + label + "' (embedding_backward_add) failed in")) << fault;
  }
}

TEST(Fusing, CasesWithNothingToFuseStayAsTheyAre) {
  const InProcess run(claiming);

  EXPECT_EQ(run.seen.count(Verdict::pass), 6);
  for (const auto& [id, record] : run.seen.records) EXPECT_FALSE(record.rewrites.has_value()) << id;
}

}  // namespace
}  // namespace gpubench::sim
