#include "harness/predict/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpubench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// harness/predict/ACCURACY.md lists these errors. If the rate per device falls by more than 3%, predictions are far
// better than a constant rate.
TEST(Published, SeriesArePredictedFromTheirTwoSmallestSteps) {
  const PublishedErrors& errors = published_errors();
  EXPECT_GE(errors.weak.count, 4);
  EXPECT_LE(errors.weak.worst, 0.011);
  EXPECT_GE(errors.strong.count, 7);
  EXPECT_LE(errors.strong.mean, 0.012);
  EXPECT_LE(errors.strong.worst, 0.035);
  for (const PublishedSeries& series : published_series()) {
    ASSERT_GE(series.steps.size(), 3U) << series.name;
    const SeriesScore score = score_of(series);
    EXPECT_EQ(score.steps.size(), series.steps.size() - 2) << series.name;
    for (const PredictedStep& step : score.steps) {
      const double of_constant = std::fabs(step.error_of_constant());
      EXPECT_TRUE(of_constant < 0.03 || std::fabs(step.error()) < 0.3 * of_constant)
          << series.name << " " << step.devices << ": " << step.error();
    }
  }
}

// Fits any two steps of a series and predicts the larger ones, also if both have the same work per device, which leaves
// the exposed share open.
TEST(Published, IntervalsContainNearlyAllStepsForAnyTwoFittedSteps) {
  int inside[2] = {}, all[2] = {};
  for (const PublishedSeries& series : published_series()) {
    for (std::size_t first = 0; first < series.steps.size(); ++first) {
      for (std::size_t second = first + 1; second < series.steps.size(); ++second) {
        for (std::size_t other = first + 1; other < series.steps.size(); ++other) {
          if (other == second) continue;
          const MeasuredStep& step = series.steps[other];
          PredictionRequest request{.model = *find_model(series.model), .layout = step.shape.layout};
          request.sequence = step.shape.sequence;
          request.global_batch = step.shape.global_batch;
          request.devices = {step.shape.devices};
          request.measured = {series.steps[first], series.steps[second]};
          const PredictedSize size = predict(request).sizes.front();
          const int weak = is_weak(request.model, size.terms, request.measured, request.network) ? 1 : 0;
          ++all[weak];
          inside[weak] += size.low_s <= step.seconds && step.seconds <= size.high_s ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(all[0], 40);
  EXPECT_GT(all[1], 40);
  EXPECT_GE(inside[0], 0.9 * all[0]);
  EXPECT_GE(inside[1], 0.9 * all[1]);
}

// A fit reproduces its two steps, or one of them if exposure or growth is at its limit.
TEST(Published, AFitReproducesItsSteps) {
  for (const PublishedSeries& series : published_series()) {
    const StepModel model = score_of(series).model;
    const MeasuredStep& first = series.steps.front();
    const StepTerms terms = terms_of(*find_model(series.model), first.shape, series.network);
    EXPECT_NEAR(model.seconds(terms, first.shape.devices) / first.seconds, 1.0, 1e-9) << series.name;
  }
}

PredictionRequest llama() {
  PredictionRequest request{.model = *find_model("llama3-405b")};
  request.layout = {8, 8, 2, 1, 8, 1};
  request.global_batch = 2048;
  request.devices = {2048, 16384, 32768};
  request.measured = {{{512, 1152, 8192, request.layout}, 55.12}, {{2048, 1152, 8192, request.layout}, 14.22}};
  return request;
}

TEST(Predict, SplitsAStepIntoWorkBubbleWireAndGrowth) {
  const Prediction prediction = predict(llama());
  for (const PredictedSize& size : prediction.sizes) {
    EXPECT_EQ(size.failure, "");
    EXPECT_LT(size.low_s, size.seconds);
    EXPECT_GT(size.high_s, size.seconds);
    EXPECT_NEAR(size.efficiency + size.bubble + size.wire + size.growth, 1.0, 1e-9);
    EXPECT_NEAR(size.tokens_per_s * size.seconds, 2048.0 * 8192.0, 1.0);
  }
  // 16 micro-batches per replica, then 2 and 1.
  EXPECT_GT(prediction.sizes[0].efficiency, prediction.sizes[1].efficiency);
  EXPECT_GT(prediction.sizes[1].efficiency, prediction.sizes[2].efficiency);
  EXPECT_EQ(prediction.sizes[0].extrapolated, "");
  EXPECT_THAT(prediction.sizes[2].extrapolated, HasSubstr("the largest published training"));
  const auto above = [&](std::size_t i) { return prediction.sizes[i].high_s / prediction.sizes[i].seconds; };
  EXPECT_GT(above(2) / above(1), 1.02);  // one doubling beyond the published sizes
  EXPECT_LT(above(2) / above(1), 1.03);
}

TEST(Predict, OneMeasuredStepGivesWiderIntervalsThanTwo) {
  PredictionRequest request = llama();
  const PredictedSize two = predict(request).sizes[1];
  request.measured.pop_back();
  const PredictedSize one = predict(request).sizes[1];
  EXPECT_GT(one.high_s - one.low_s, two.high_s - two.low_s);
  EXPECT_THAT(one.extrapolated, HasSubstr("more than 16 times 512"));
}

TEST(Predict, ASizeThatDoesNotFitHasAReasonAndTheOthersArePredicted) {
  PredictionRequest request = llama();
  request.devices = {2048, 2100, 4096};
  const Prediction prediction = predict(request);
  EXPECT_THAT(prediction.sizes[1].failure, HasSubstr("not a multiple of the 128 devices of a replica"));
  EXPECT_EQ(prediction.sizes[2].failure, "");
}

TEST(Predict, ASmallModelOnOneNodeIsLimitedByWork) {
  PredictionRequest request{.model = *find_model("llama3-8b")};
  request.devices = {8};
  request.flop_per_s = 400e12;
  const PredictedSize size = predict(request).sizes.front();
  EXPECT_EQ(size.limit(), "work");
  EXPECT_EQ(size.global_batch, 8 * 32);
}

// 1,024 devices without a pipeline: 128 nodes, in pods of four with a slow network beyond.
TEST(Predict, NamesTheLevelThatLimits) {
  PredictionRequest request{.model = *find_model("llama3-8b")};
  request.layout = {8, 1, 1, 1, 1, 1};
  request.devices = {1024};
  request.micro_batches = 1;
  request.flop_per_s = 400e12;
  EXPECT_EQ(predict(request).sizes.front().slowest, "network");
  request.network = {{{8, 450e9}, {32, 50e9}, {all_devices, 5e9}}};
  const PredictedSize size = predict(request).sizes.front();
  EXPECT_EQ(size.limit(), "wire");
  EXPECT_EQ(size.slowest, "beyond 32");
}

TEST(Predict, TakesEitherStepsOrARate) {
  PredictionRequest request = llama();
  request.flop_per_s = 1e15;
  EXPECT_THROW((void)predict(request), std::invalid_argument);
  request.measured.clear();
  EXPECT_NO_THROW((void)predict(request));
  request.flop_per_s.reset();
  EXPECT_THROW((void)predict(request), std::invalid_argument);
}

TEST(Predict, SizesAreNumbersAndRanges) {
  const auto sizes = [](std::vector<std::string> words) { return parse_sizes(words); };
  EXPECT_THAT(sizes({"64..512:x2", "100"}), ElementsAre(64, 100, 128, 256, 512));
  EXPECT_THAT(sizes({"8..30:+8", "8"}), ElementsAre(8, 16, 24));
  EXPECT_THAT(sizes({"8..32"}), ElementsAre(8, 16, 32));
  for (const char* word : {"", "0", "-8", "8.5", "8..", "..8", "8..4", "8..64:x1", "8..64:2", "8..64:", "8..64:x",
                           "99999999999999999999", "8...64"})
    EXPECT_THROW((void)sizes({word}), std::invalid_argument) << word;
  EXPECT_THROW((void)sizes({"1..1000000:+1"}), std::invalid_argument);
}

}  // namespace
}  // namespace gpubench
