// Golden files of learn's charts. GPUBENCH_UPDATE_GOLDEN=1 ctest -R cli_test rewrites them; look at them in a browser
// before committing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "harness/cli/finding_records.h"
#include "harness/cli/learn.h"
#include "tests/paths.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace learn_charts_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<double> falling(double by, double off) {
  std::vector<double> losses;
  for (int step = 0; step < 12; ++step) losses.push_back(4.0 - by * step + (step % 4) * 0.25 + off * step);
  return losses;
}

std::vector<StepParity> steps(double first, double growth) {
  std::vector<StepParity> all;
  for (int step = 1; step <= 5; ++step) {
    StepParity one{.step = step, .loss = 4.0, .exact_loss = 4.0, .tensors = 9, .worst = first * std::pow(growth, step)};
    one.worst_tensor = {"w'", Role::parameter, 1.0, one.worst, 1.0};
    if (one.worst > 1.0) one.rejected.push_back(one.worst_tensor);
    all.push_back(one);
  }
  return all;
}

ModelLearning sample() {
  ModelLearning model;
  model.model = "transformer/gpt2_train_step/b=2,s=16";
  model.exact_losses = falling(0.125, 0.0);
  model.exact_first = 4.0;
  model.exact_last = 3.0;
  RecipeLearning f32{.id = model.model + "/f32/x1", .recipe = "f32", .verdict = Verdict::pass};
  f32.judged = steps(0.0625, 1.0);
  f32.losses = falling(0.125, 0x1p-20);
  f32.low = falling(0.125, -0x1p-19);
  f32.high = falling(0.125, 0x1p-19);
  RecipeLearning bf16{
      .id = model.model + "/bf16/x1", .recipe = "bf16", .lacking = "no <bf16>", .verdict = Verdict::pass};
  bf16.judged = steps(0.5, 1.0625);
  bf16.losses = falling(0.125, 0x1p-10);
  bf16.low = falling(0.125, -0x1p-6);
  bf16.high = falling(0.125, 0x1p-6);
  model.recipes = {f32, bf16};
  model.broken.push_back({"bf16 master weights",
                          "small updates are lost",
                          "bf16",
                          steps(2.0, 4.0),
                          falling(0.0625, 0.0),
                          1,
                          {"w'", Role::parameter, 1.0, 2048.0, 1.0}});
  return model;
}

TEST(LearnCharts, EachIsDrawnAsInItsFile) {
  const bool update = std::getenv("GPUBENCH_UPDATE_GOLDEN") != nullptr;
  const std::vector<ModelLearning> models{sample()};
  const std::vector<page::Drawing> drawings = learning_drawings(models);
  ASSERT_EQ(drawings.size(), 5U);  // loss, distance, steps, and two for the recipe with broken ones
  for (const page::Drawing& drawing : drawings) {
    const std::string path = std::string(paths::cli_golden) + "/" + drawing.name + ".svg";
    if (update) std::ofstream(path, std::ios::binary) << drawing.svg;
    EXPECT_EQ(ScratchFolder::content_of(path), drawing.svg) << path;
  }
  if (update) GTEST_SKIP() << "the golden files were rewritten, not compared";
}

// (4 + 4.25 + 4.5 + 4.75 - (0 + 1 + 2 + 3) / 8) / 4
TEST(LearnCharts, APointOfALossIsTheMeanOfATurn) {
  const chart::PlotChart loss = charts_of(sample()).front().plot;
  ASSERT_EQ(loss.series.size(), 3U);
  EXPECT_EQ(loss.series.back().name, "fp64");
  EXPECT_EQ(loss.series.back().points.size(), 9U);
  EXPECT_EQ(loss.series.back().points.front().x, 4.0);
  EXPECT_DOUBLE_EQ(loss.series.back().points.front().y, 4.1875);
  EXPECT_EQ(loss.series[1].name, "bf16, emulated");
  EXPECT_LT(*loss.series[1].points[3].low, loss.series[1].points[3].y);
}

TEST(LearnCharts, ModelsOfOneWorkloadHaveFilesOfTheirOwn) {
  const std::vector<ModelLearning> models{sample(), sample()};
  const std::vector<page::Drawing> drawings = learning_drawings(models);
  ASSERT_EQ(drawings.size(), 10U);
  EXPECT_EQ(drawings[0].name, "gpt2-loss");
  EXPECT_EQ(drawings[5].name, "gpt2-2-loss");
}

TEST(LearnPage, SaysWhyAndHoldsNoForeignMarkup) {
  std::vector<ModelLearning> models{sample()};
  models[0].recipes[0].verdict = Verdict::fail;
  models[0].recipes[0].reason = "step 1: '<w>' is off";
  const std::string page = learning_page(models, {}, "a <device>");
  const auto says = [&](const char* text) { return page.find(text) != std::string::npos; };
  for (const char* text : {"Training against fp64: FAIL", "bf16 is emulated: no &lt;bf16&gt;",
                           "f32: step 1: ", "&lt;w&gt;", "a &lt;device&gt;"})
    EXPECT_TRUE(says(text)) << text;
  EXPECT_FALSE(says("<device>"));
  EXPECT_FALSE(says("<w>"));
}

TEST(LearnTable, ShowsWhatWasNotToldApart) {
  ModelLearning model = sample();
  const ConsoleStyle plain;
  EXPECT_THAT(table_of(model, plain), AllOf(HasSubstr("(PASS)   bf16       emulated"), HasSubstr("step 1")));
  EXPECT_EQ(verdict_of(std::vector{model}, {}), Verdict::pass);
  const Completion interrupted{false, 1, 4, "models"};
  EXPECT_EQ(verdict_of(std::vector{model}, interrupted), Verdict::skipped);
  EXPECT_THAT(summary_of(std::vector{model}, interrupted, plain),
              AllOf(HasSubstr("learn interrupted after 1 of 4 models\n"), HasSubstr("VERDICT  SKIPPED")));
  model.broken.front().seen_in_step = 0;
  EXPECT_THAT(table_of(model, plain), HasSubstr("bf16 master weights  bf16       NO"));
  EXPECT_THAT(summary_of(std::vector{model}, {}, plain),
              AllOf(HasSubstr("0 of 1 broken recipes detected"), HasSubstr("VERDICT  NOT_PROVEN")));
  EXPECT_EQ(verdict_of({}, {}), Verdict::unsupported);
  ModelLearning emulated = sample();
  emulated.recipes.erase(emulated.recipes.begin());
  EXPECT_EQ(verdict_of(std::vector{emulated}, {}), Verdict::unsupported);
}

TEST(LearnTable, ALossThatIsNotFiniteIsSaid) {
  ModelLearning model = sample();
  model.recipes[0].losses.back() = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(table_of(model, {}), HasSubstr("nan"));
}

TEST(LearnFindings, ComeBackFromAChildAsTheyWere) {
  ModelLearning model = sample();
  model.recipes[0].judged[0].worst_tensor.error = std::numeric_limits<double>::infinity();
  const Json json = to_json(model);
  EXPECT_EQ(to_json(learning_from_json({json, "a finding"})), json);
  EXPECT_EQ(table_of(learning_from_json({json, "a finding"}), {}), table_of(model, {}));
}

}  // namespace learn_charts_test
}  // namespace gpubench
