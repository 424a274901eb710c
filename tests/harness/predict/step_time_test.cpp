#include "harness/predict/step_time.h"
#include "tests/thrown_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace gpubench {
namespace {

using ::testing::HasSubstr;

// 1e9 parameters in 80 layers of width 1,024, 4 h^2 + 8 h^2 each, and a small vocabulary.
const TransformerModel tiny{"tiny", 80, 1024, 8, 8, 128, 4096, false, 1, 1, 1000, true, 0, ""};

std::string refusal(const auto& work) { return thrown_text<std::invalid_argument>(work); }

TEST(ParallelLayout, IsParsedAxisByAxis) {
  EXPECT_EQ(parse_layout("tp=8,pp=4,vp=5,cp=2,ep=16,mbs=3"), (ParallelLayout{8, 4, 2, 16, 5, 3}));
  EXPECT_EQ(parse_layout(""), ParallelLayout{});
  EXPECT_EQ(to_string(parse_layout("pp=4,tp=2")), "tp=2,pp=4");
}

TEST(ParallelLayout, InvalidTextsAreErrors) {
  for (const char* text : {"tp", "tp=", "tp=0", "tp=-1", "tp=2x", "dp=2", "tp=2,,pp=2", "tp=9999999999999999999", "="})
    EXPECT_THAT(refusal([&] { return parse_layout(text); }), HasSubstr("expected some of tp, pp")) << text;
  EXPECT_EQ(refusal([] { return parse_layout("tp=2,tp=2"); }), "'tp' is given twice");
  EXPECT_THAT(refusal([] { return parse_layout("vp=2"); }), HasSubstr("expected pp above 1"));
}

// 32 devices, tp=2, pp=4: four replicas. 64 sequences in micro-batches of two: eight per replica. The pipeline idles
// for 3 / 2 micro-batches, 1.5 / 9.5 of the time.
TEST(StepTerms, CountReplicasMicroBatchesAndTheBubble) {
  const StepShape shape{32, 64, 1000, {2, 4, 1, 1, 2, 2}};
  const StepTerms terms = terms_of(tiny, shape, {});
  EXPECT_EQ(terms.replicas, 4);
  EXPECT_EQ(terms.micro_batches, 8);
  EXPECT_DOUBLE_EQ(terms.bubble, 1.5 / 9.5);
  EXPECT_DOUBLE_EQ(terms.flop, 9.5 * 2.0 * 1000.0 * tiny.flop_per_token(1000) / 8.0);
}

// Four replicas, two in each node: half of the 6 bytes per parameter goes to the neighbor, then a half of the remaining
// half to the other node.
TEST(StepTerms, GradientsGoThroughTheNodeFirst) {
  const Network network{{{8, 100e9}, {all_devices, 10e9}}};
  const StepTerms terms = terms_of(tiny, {16, 4, 1000, {4, 1, 1, 1, 1, 1}}, network);
  const double bytes = 6.0 * tiny.parameters() / 4.0;
  EXPECT_NEAR(terms.wire.seconds - terms.wire.latency_s, bytes / 2.0 / 100e9 + bytes / 2.0 / 2.0 / 10e9, 1e-12);
  EXPECT_EQ(slowest_of(terms.wire, network), "network");
  const StepTerms alone = terms_of(tiny, {4, 4, 1000, {4, 1, 1, 1, 1, 1}}, network);  // one replica
  EXPECT_EQ(alone.wire.seconds, 0.0);
  EXPECT_EQ(slowest_of(alone.wire, network), "none");
}

// Two replicas on a node each: 126e6 parameters of a device in four buckets of at most 40e6; per bucket, a ring of
// 8.4 us and a step of 14 us, there and back.
TEST(StepTerms, EachBucketHasTheLatencyOfItsCollectives) {
  ParallelLayout layout{8, 1, 1, 1, 1, 1};
  const StepTerms sharded = terms_of(tiny, {16, 2, 1000, layout}, {});
  EXPECT_NEAR(sharded.wire.latency_s, 4.0 * 2.0 * 22.4e-6, 1e-12);
  EXPECT_LT(sharded.wire.latency_s, 0.03 * sharded.wire.seconds);
  layout.optimizer = Optimizer::replicated;  // one collective, one base latency
  EXPECT_NEAR(terms_of(tiny, {16, 2, 1000, layout}, {}).wire.latency_s, 4.0 * 36.4e-6, 1e-12);
}

// 8,192 replicas on a node each, one bucket, 15.1 ms of bytes. LL ring: 8,191 steps of 2.7 us there and back at half
// the bandwidth, 74.5 ms (LL128: 82 ms, simple: 244 ms). Tree: up and down 13 levels of 14 us.
TEST(StepTerms, GradientsOfAReplicatedOptimizerUseATreeOnManyRanks) {
  ParallelLayout layout{8, 1, 1, 1, 1, 1};
  const double bytes_s = 6.0 * tiny.parameters() / 8.0 * 8191.0 / 8192.0 / 50e9;
  const StepShape shape{65536, 8192, 1000, layout};
  EXPECT_NEAR(terms_of(tiny, shape, {}).wire.seconds, bytes_s / 0.5 + 2.0 * (6.6 + 8191.0 * 2.7) * 1e-6, 1e-9);
  layout.optimizer = Optimizer::replicated;
  EXPECT_NEAR(terms_of(tiny, {65536, 8192, 1000, layout}, {}).wire.seconds, bytes_s / 0.92 + (8.4 + 26.0 * 14.0) * 1e-6,
              1e-9);
}

// All eight replicas fit in 64 of the 72 devices of an NVLink domain.
TEST(StepTerms, GradientsOfAnNvlinkDomainNeedNoNetwork) {
  const Network nvl72{{{72, 900e9}, {all_devices, 50e9}}};
  const StepTerms terms = terms_of(tiny, {64, 8, 1000, {8, 1, 1, 1, 1, 1}}, nvl72);
  EXPECT_EQ(terms.wire.by_level[1], 0.0);
  EXPECT_NEAR(terms.wire.by_level[0], 6.0 * tiny.parameters() / 8.0 * 7.0 / 8.0 / 900e9, 1e-12);
  EXPECT_EQ(slowest_of(terms.wire, nvl72), "node");
}

TEST(StepTerms, SizesThatDoNotDivideEvenlyAreErrors) {
  const auto terms = [](std::int64_t devices, std::int64_t batch, const ParallelLayout& layout) {
    return refusal([&] { return terms_of(tiny, {devices, batch, 100, layout}, {}); });
  };
  EXPECT_THAT(terms(12, 8, {8, 1, 1, 1, 1, 1}),
              HasSubstr("12 devices are not a multiple of the 8 devices of a replica (tp=8)"));
  EXPECT_THAT(terms(8, 6, {2, 1, 1, 1, 1, 1}), HasSubstr("expected a multiple of 4"));
  EXPECT_THAT(terms(8, 3, {2, 1, 1, 1, 1, 1}), HasSubstr("expected a multiple of 4"));
  EXPECT_THAT(terms(8, 8, {1, 1, 1, 2, 1, 1}), HasSubstr("ep=2 does not divide both the 1 experts"));
  EXPECT_EQ(terms(0, 8, {}).empty(), false);
}

std::vector<MeasuredStep> made_by(const StepModel& truth, const StepShape& small, const StepShape& large) {
  std::vector<MeasuredStep> steps{{small, 0.0}, {large, 0.0}};
  for (MeasuredStep& step : steps) step.seconds = truth.seconds(terms_of(tiny, step.shape, {}), step.shape.devices);
  return steps;
}

// A fit of a model's steps returns the model.
TEST(Fit, FindsRateAndExposureIfWorkAndWireDifferInRatio) {
  const ParallelLayout layout{2, 4, 1, 1, 1, 1};
  const StepModel truth{3e14, 0.4, 0.0, 64};
  const StepModel found = fit(tiny, made_by(truth, {64, 512, 4096, layout}, {512, 512, 4096, layout}), {});
  EXPECT_NEAR(found.flop_per_s / truth.flop_per_s, 1.0, 1e-9);
  EXPECT_NEAR(found.exposed, 0.4, 1e-9);
  EXPECT_EQ(found.growth, 0.0);
}

TEST(Fit, FindsRateAndGrowthIfWorkAndWireHaveTheSameRatio) {
  const ParallelLayout layout{2, 4, 1, 1, 1, 1};
  const StepModel truth{3e14, 1.0, 0.01, 64};
  const StepModel found = fit(tiny, made_by(truth, {64, 512, 4096, layout}, {256, 2048, 4096, layout}), {});
  EXPECT_NEAR(found.flop_per_s / truth.flop_per_s, 1.0, 1e-9);
  EXPECT_NEAR(found.growth, 0.01, 1e-9);
}

TEST(Fit, OfOneStepAssumesFullExposureAndTheUsualGrowth) {
  const MeasuredStep step{{64, 512, 4096, {2, 4, 1, 1, 1, 1}}, 3.0};
  const StepModel found = fit(tiny, std::vector{step}, {});
  EXPECT_EQ(found.exposed, 1.0);
  EXPECT_EQ(found.growth, usual_growth);
  EXPECT_NEAR(found.seconds(terms_of(tiny, step.shape, {}), 64), 3.0, 1e-12);
}

TEST(Fit, AStepShorterThanItsWireTimeIsAnError) {
  const MeasuredStep step{{64, 64, 4096, {1, 1, 1, 1, 1, 1}}, 1e-3};
  EXPECT_THAT(refusal([&] { return fit(tiny, std::vector{step}, {}); }), HasSubstr("is shorter than"));
  EXPECT_THAT(refusal([&] { return fit(tiny, {}, {}); }), HasSubstr("expected one or two"));
}

}  // namespace
}  // namespace gpubench
