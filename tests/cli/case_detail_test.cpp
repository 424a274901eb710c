// What `gpubench list CASE` prints of a case with very many tensors.
#include "harness/cli/verbs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sstream>

#include "harness/core/program.h"
#include "harness/report/json.h"
#include "reference/ops/optimizer.h"
#include "tests/harness/report/terminal_width.h"

namespace gpubench {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int gradients = 40;

// One clip of 40 gradients, as at the end of a training step.
class ManyGradients final : public Workload {
 public:
  [[nodiscard]] WorkloadInfo info() const override {
    return {"clip", "a case for tests", "", PrimaryMetric::items_per_s, "elements", CacheMode::warm};
  }
  [[nodiscard]] Grid grid() const override { return {{{{{"n", 8}}, "tiny", Tier::smoke}}, {"f32"}}; }
  [[nodiscard]] Program build(const Case&) const override {
    Program p;
    std::vector<ValueId> all;
    for (int i = 0; i < gradients; ++i) {
      all.push_back(
          p.add(tensor(fmt::format("block{}.gradient", i), DType::f32, {8}, Role::gradient, Fill::normal(1.0))));
    }
    const ValueId norm = gradient_norm(p, {}, "gradient_norm", all);
    clip(p, {.limit = 1.0}, {}, "clip", norm, all);
    return p;
  }
  [[nodiscard]] double items(const Case&) const override { return 8.0 * gradients; }
};

PlannedCase planned() {
  const auto workload = std::make_shared<ManyGradients>();
  PlannedCase one;
  one.c.suite = "sim";
  one.c.workload = "clip";
  one.c.dims = {{"n", 8}};
  one.c.recipe = "f32";
  one.workload = workload;
  return one;
}

TEST(CaseDetail, CountsTheTensorsOfAnOpWithVeryManyAndStaysWithin120Columns) {
  const std::string text = case_detail(planned(), "gpubench run", {});

  EXPECT_THAT(text, HasSubstr("40 tensors: block0.gradient, block1.gradient, block2.gradient, block3.gradient, ... "
                              "-> gradient_norm"));
  EXPECT_THAT(text, HasSubstr("(40 tensors)"));  // judged alike
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
}

TEST(CaseDetail, KeepsToTheWidthOfTheTerminalAsTheTablesOfCasesDo) {
  const std::vector<PlannedCase> cases{planned()};
  for (int width = 40; width <= 200; ++width) {
    ConsoleStyle style;
    style.width = width;
    const std::string plan = plan_text(cases, {Tier::smoke}, 2, style);
    EXPECT_THAT(lines_too_wide(case_detail(cases[0], "gpubench run --filter x", style), width), IsEmpty()) << width;
    EXPECT_THAT(lines_too_wide(cases_table(cases, style) + plan, width), IsEmpty()) << width;
    EXPECT_THAT(plan, HasSubstr("sim/clip/n=8/f32/x1")) << width;
    EXPECT_THAT(plan, HasSubstr("--dry-run")) << width;
  }
}

TEST(CaseDetail, SaysArithmeticThatAllOpsShareOnce) {
  const std::string text = case_detail(planned(), "gpubench run", {});

  const std::size_t at = text.find("sums in f32");
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(text.find("sums in f32", at + 1), std::string::npos);
}

TEST(CaseDetail, NamesEveryTensorAsJson) {
  const Json json = case_detail_json(planned(), "gpubench run");

  const std::string reads = json["ops"][0]["reads"];
  for (int i = 0; i < gradients; ++i) EXPECT_THAT(reads, HasSubstr(fmt::format("block{}.gradient", i)));
  EXPECT_THAT(reads, Not(HasSubstr("...")));
}

}  // namespace
}  // namespace gpubench
