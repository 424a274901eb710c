// Reports of programs with and without deterministic bits.
#include "harness/verify/determinism.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/run/forwarding_backend.h"
#include "suites/suites.h"
#include "tests/harness/run/run_fixture.h"

namespace gpubench::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A product with output [m, 8] and batch m.
PlannedCase product(std::int64_t m) {
  Selection selection;
  selection.tier = Tier::smoke;
  selection.filters = {"gemm/linear_forward/.*/f32/"};
  selection.axes = {{"m", {m}}, {"n", {8}}, {"k", {16}}};
  return plan_cases(all_suites(), selection).at(0);
}

DeterminismRecord measured(Backend& backend, const PlannedCase& planned, const RunOptions& options, int runs,
                           bool has_graphs = false) {
  const DeterminismEffort effort{runs, has_graphs};
  return DeterminismProbe(backend, options, effort).measure(planned);
}

Repetition of(const DeterminismRecord& record, std::string_view way) {
  for (const Repetition& repetition : record.repetitions) {
    if (repetition.way == way) return repetition;
  }
  return {};
}

// Each run changes the last bit of element 3 of its output.
class Wandering final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  [[nodiscard]] Launch bind(const Plan& plan, std::span<const Tensor> tensors, Workspace workspace) override {
    output_ = tensors.back();
    return ForwardingBackend::bind(plan, tensors, workspace);
  }
  void run(const Launch& launch) override {
    ForwardingBackend::run(launch);
    std::vector<std::byte> bytes(static_cast<std::size_t>(output_.spec.bytes()));
    read(bytes, output_.data);
    store_bits(output_.spec.dtype, bytes.data(), 3, load_bits(output_.spec.dtype, bytes.data(), 3) ^ (++runs_ & 1U));
    write(output_.data, bytes);
  }

 private:
  Tensor output_;
  std::uint64_t runs_ = 0;
};

TEST(Determinism, OfACorrectBackendHoldsInEveryWay) {
  SimBackend backend(parse_script(""));
  const DeterminismRecord record = measured(backend, product(4), smoke_options(), 3);
  EXPECT_THAT(record.unsupported, IsEmpty());
  for (const std::string_view way : {way::again, way::op_by_op, way::batch})
    EXPECT_EQ(of(record, way).outcome, Sameness::same) << way << of(record, way).text;
  ASSERT_EQ(record.bits.values.size(), 1U);
  EXPECT_EQ(record.bits.values[0].elements, 32);
}

TEST(Determinism, NamesTheElementAndTheOpThatDifferFromRunToRun) {
  SimBackend inner(parse_script(""));
  Wandering backend(inner, nullptr);
  const Repetition again = of(measured(backend, product(4), smoke_options(), 3), "again");
  EXPECT_EQ(again.outcome, Sameness::differs);
  EXPECT_THAT(again.text, AllOf(HasSubstr("[0, 3] of op '"), HasSubstr("(gemm)")));
}

TEST(Determinism, SeesWhatOnlyASequenceChanges) {
  const PlannedCase planned = product(4);
  const std::string label = planned.workload->build(planned.c).op(0).label;
  SimBackend backend(parse_script("wrong_element/sequence@" + label));
  const DeterminismRecord record = measured(backend, planned, smoke_options(), 3);
  EXPECT_EQ(of(record, "again").outcome, Sameness::same);
  EXPECT_EQ(of(record, "op by op").outcome, Sameness::differs);
}

TEST(Determinism, SeesWhatOnlyAGraphChanges) {
  const PlannedCase planned = product(4);
  const std::string label = planned.workload->build(planned.c).op(0).label;
  SimBackend backend(parse_script("wrong_element/graph@" + label));
  const DeterminismRecord record = measured(backend, planned, smoke_options(), 3, true);
  EXPECT_EQ(of(record, way::again).outcome, Sameness::same);
  EXPECT_EQ(of(record, way::op_by_op).outcome, Sameness::same);
  EXPECT_EQ(of(record, way::graph).outcome, Sameness::differs);
  EXPECT_THAT(of(record, way::graph).text, HasSubstr("of op '" + label + "'"));

  PlannedCase graph = planned;  // compared with the stream
  graph.c.launch = LaunchMode::graph;
  EXPECT_EQ(of(measured(backend, graph, smoke_options(), 3, true), way::graph).outcome, Sameness::differs);
  EXPECT_EQ(of(measured(backend, planned, smoke_options(), 3, false), way::graph).text,
            "the sim backend has no graphs");
}

TEST(Determinism, NamesTheLayerOfAProgramWithSeveral) {
  Selection selection;
  selection.tier = Tier::smoke;
  selection.filters = {"transformer/vit_train_step/.*/f32/"};
  const PlannedCase planned = plan_cases(all_suites(), selection).at(0);
  SimBackend backend(parse_script("wrong_element/sequence@block1.up"));
  EXPECT_THAT(of(measured(backend, planned, smoke_options(), 2), way::op_by_op).text,
              HasSubstr("of op 'block1.up' (gemm) in layer block1, "));
}

TEST(Determinism, PromisesWhatTheFlagSaysAndNoMore) {
  for (const std::string_view way : {way::again, way::op_by_op, way::graph, way::one_rank}) {
    EXPECT_TRUE(is_promised(way, true)) << way;
    EXPECT_FALSE(is_promised(way, false)) << way;
  }
  for (const bool deterministic : {false, true}) {
    EXPECT_TRUE(is_promised(way::before, deterministic));
    EXPECT_TRUE(is_promised(way::replicas, deterministic));
    for (const std::string_view way : {way::batch, way::one_batch, std::string_view("1 thread")})
      EXPECT_FALSE(is_promised(way, deterministic)) << way;
  }
}

TEST(Determinism, OfSeveralRanksNeedsABackendThatHasThem) {
  Selection selection;
  selection.tier = Tier::smoke;
  selection.filters = {"collectives/broadcast/.*/f32/"};
  SimBackend backend(parse_script(""));
  EXPECT_EQ(measured(backend, plan_cases(all_suites(), selection).at(0), smoke_options(), 2).unsupported,
            "the sim backend runs on one rank only");
}

TEST(Determinism, SeesThatAnItemAloneIsNotWhatItIsInItsBatch) {
  for (const std::int64_t own : {1, 4}) {  // a batch of 1 is compared with a batch of 4
    const PlannedCase planned = product(own);
    const std::string label = planned.workload->build(planned.c).op(0).label;
    SimBackend backend(parse_script("wrong_element@" + label + ":1x8"));
    const Repetition batch = of(measured(backend, planned, smoke_options(), 2), "alone in its batch");
    EXPECT_EQ(batch.outcome, Sameness::differs) << own;
    EXPECT_THAT(batch.text, HasSubstr("item 0 of 4: '")) << own;
  }
}

TEST(Determinism, OtherDataAreOtherBits) {
  SimBackend backend(parse_script(""));
  RunOptions options = smoke_options();
  const CaseBits one = measured(backend, product(4), options, 2).bits;
  options.seed = 43;
  const CaseBits other = measured(backend, product(4), options, 2).bits;
  EXPECT_THAT(first_difference(one, other), HasSubstr("elements 0 to "));
}

TEST(FirstDifference, IsTheFirstPartOfTheFirstTensorThatDiffers) {
  const CaseBits before{
      "case", 1, {{"x", "first", "gemm", "a", 10, 4, {1, 2, 3}}, {"y", "second", "add", "a", 2, 2, {7}}}};
  EXPECT_THAT(first_difference(before, before), IsEmpty());
  CaseBits now = before;
  now.values[0].parts[2] = 9;
  now.values[1].parts[0] = 9;
  EXPECT_EQ(first_difference(before, now), "elements 8 to 9 of 'x' of op 'first' (gemm); 2 of 2 tensors differ");
  now.values[0].implementation = "b";
  EXPECT_THAT(first_difference(before, now), HasSubstr("(gemm), by b for a"));
  now.values[0].tensor = "z";
  EXPECT_THAT(first_difference(before, now), HasSubstr("the programs differ"));
  now.values.pop_back();
  EXPECT_EQ(first_difference(before, now), "1 tensors for 2: the programs differ");
}

}  // namespace
}  // namespace gpubench::sim
