#include "harness/cli/case_listing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <map>
#include <sstream>
#include <utility>

#include "harness/core/program.h"
#include "harness/report/json.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/differentiate.h"
#include "tests/harness/core/text/terminal_width.h"

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
    for (int i = 0; i < gradients; ++i)
      all.push_back(
          p.add(tensor(fmt::format("block{}.gradient", i), DType::f32, {8}, Role::gradient, Fill::normal(1.0))));
    const ValueId norm = gradient_norm(p, {}, "gradient_norm", all);
    clip(p, {.limit = 1.0}, {}, "clip", norm, all);
    return p;
  }
  [[nodiscard]] double items(const Case&) const override { return 8.0 * gradients; }
};

// Four blocks of two gelus each on 64 elements, forward and backward.
class FourBlocks final : public Workload {
 public:
  [[nodiscard]] WorkloadInfo info() const override { return {"blocks", "a case for tests", "", {}, "elements"}; }
  [[nodiscard]] Grid grid() const override { return {{{{{"n", 64}}, "tiny", Tier::smoke}}, {"f32"}}; }
  [[nodiscard]] Program build(const Case&) const override {
    Program p;
    const ValueId x = p.add(tensor("x", DType::f32, {64}, Role::input, Fill::normal(1.0)));
    const ValueId dy = p.add(tensor("dy", DType::f32, {64}, Role::gradient, Fill::normal(1.0)));
    ValueId y = x;
    for (int i = 0; i < 4; ++i)
      for (const char* gelu : {"first", "second"}) y = gelu_forward(p, {}, {}, fmt::format("block{}.{}", i, gelu), y);
    (void)differentiate(p, std::array{Seed{y, dy}}, std::array{x});
    return p;
  }
  [[nodiscard]] double items(const Case&) const override { return 64.0; }
};

PlannedCase planned(std::shared_ptr<const Workload> workload = std::make_shared<ManyGradients>()) {
  PlannedCase one;
  one.c.suite = "sim";
  one.c.workload = "clip";
  one.c.dims = {{"n", 8}};
  one.c.recipe = "f32";
  one.workload = std::move(workload);
  return one;
}

TEST(CaseDetail, CountsTheTensorsOfAnOpWithVeryManyAndStaysWithin120Columns) {
  const std::string text = case_detail(planned(), "gpubench run", {});

  EXPECT_THAT(text, HasSubstr("40 tensors: block0.gradient, block1.gradient, block2.gradient, block3.gradient, ... "
                              "-> gradient_norm"));
  EXPECT_THAT(text, HasSubstr("(40 tensors)"));
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

TEST(CaseDetail, SaysTheWorkOfEachItem) {
  PlannedCase blocks = planned(std::make_shared<FourBlocks>());
  blocks.cost.flop = 6400.0;

  EXPECT_THAT(case_detail(blocks, "", {}), HasSubstr("64 elements per run, 100 FLOP each\n"));
}

TEST(CaseDetail, NamesEveryTensorAsJson) {
  const Json json = case_detail_json(planned(), "gpubench run");

  const std::string reads = json["ops"][0]["reads"];
  for (int i = 0; i < gradients; ++i) EXPECT_THAT(reads, HasSubstr(fmt::format("block{}.gradient", i)));
  EXPECT_THAT(reads, Not(HasSubstr("...")));
}

// By hand: x, dy, the last y and the gradient of x stay. The backward also starts with 7 activations and one gradient;
// with recomputed blocks, with 3 activations, the recomputed one, and the gradient. That costs 4 gelus of 9 FLOP for 64
// elements.
TEST(CaseDetail, SaysWhatRecomputationSavesAndCosts) {
  const PlannedCase blocks = planned(std::make_shared<FourBlocks>());
  const Json json = case_detail_json(blocks, "gpubench run");

  std::map<std::string, Json> policies;
  for (const Json& policy : json["recomputation"]) policies[policy["policy"]] = policy;
  ASSERT_EQ(policies.size(), 3U);
  EXPECT_EQ(policies["none"]["least_memory_bytes"], 256 * (4 + 7 + 1));
  EXPECT_EQ(policies["block"]["least_memory_bytes"], 256 * (4 + 3 + 2));
  EXPECT_EQ(policies["block"]["ops_again"], 4);
  EXPECT_EQ(policies["block"]["flop"].get<double>() - policies["none"]["flop"].get<double>(), 4 * 9 * 64);
  EXPECT_EQ(json["layers"].size(), 4U);
  EXPECT_EQ(json["layers"][2]["name"], "block2");
  EXPECT_EQ(json["kinds"][0]["name"], "gelu_backward");
  EXPECT_THAT(case_detail(blocks, "gpubench run", {}), HasSubstr("every block (4 ops)"));
}

TEST(CaseDetail, ACaseOfOneOpIsMadeOfNothingElse) {
  class OneOp final : public Workload {
   public:
    [[nodiscard]] WorkloadInfo info() const override { return {"one", "a case for tests", "", {}, "elements"}; }
    [[nodiscard]] Grid grid() const override { return {{{{{"n", 8}}, "tiny", Tier::smoke}}, {"f32"}}; }
    [[nodiscard]] Program build(const Case&) const override {
      Program p;
      (void)gelu_forward(p, {}, {}, "y", p.add(tensor("x", DType::f32, {8}, Role::input, Fill::normal(1.0))));
      return p;
    }
    [[nodiscard]] double items(const Case&) const override { return 8.0; }
  };
  EXPECT_FALSE(case_detail_json(planned(std::make_shared<OneOp>()), "").contains("layers"));
  EXPECT_THAT(case_detail(planned(std::make_shared<OneOp>()), "", {}), Not(HasSubstr("by layer")));
}

}  // namespace
}  // namespace gpubench
