// Planning with two fake suites: selected cases, their order, and errors.
#include "harness/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

int programs_built = 0;

// gemm of [m, k] by [k, n]; k must be even, so that some extents are invalid.
class Product : public Workload {
 public:
  [[nodiscard]] WorkloadInfo info() const override {
    return {"product", "", "m", PrimaryMetric::flop_per_s, "rows", CacheMode::cold};
  }
  [[nodiscard]] Grid grid() const override {
    Grid grid;
    grid.points = {{{{"m", 8}, {"n", 4}, {"k", 2}}, "tiny", Tier::smoke},
                   {{{"m", 64}, {"n", 4}, {"k", 2}}, "small", Tier::quick},
                   {{{"m", 640}, {"n", 4}, {"k", 2}}, "big", Tier::large}};
    return grid;
  }
  [[nodiscard]] Program build(const Case& c) const override {
    ++programs_built;
    if (c.dim("k") % 2 != 0) throw ProgramError("k is odd");
    const DType type = recipe(c.recipe).tensor;
    Program p;
    const ValueId a = p.add(tensor("a", type, {c.dim("m"), c.dim("k")}, Role::input));
    const ValueId b = p.add(tensor("b", type, {c.dim("k"), c.dim("n")}, Role::input));
    gemm(p, {}, Math{}, "c", a, b);
    return p;
  }
  [[nodiscard]] double items(const Case& c) const override { return static_cast<double>(c.dim("m")); }
};

// A copy without a batch axis; the gap may be zero.
class Move : public Workload {
 public:
  [[nodiscard]] WorkloadInfo info() const override {
    return {"move", "", "", PrimaryMetric::bytes_per_s, "elements", CacheMode::warm};
  }
  [[nodiscard]] Grid grid() const override {
    Grid grid;
    grid.points = {{{{"elements", 1024}, {"gap", 0}}, "kilo", Tier::smoke}};
    grid.recipes = {"f32"};
    return grid;
  }
  [[nodiscard]] Program build(const Case& c) const override {
    ++programs_built;
    Program p;
    copy(p, "y", p.add(tensor("x", DType::f32, {c.dim("elements")}, Role::input)));
    return p;
  }
  [[nodiscard]] double items(const Case& c) const override { return static_cast<double>(c.dim("elements")); }
};

std::vector<Suite> suites() {
  return {{"algebra", "", {std::make_shared<Product>()}}, {"memory", "", {std::make_shared<Move>()}}};
}

std::vector<std::string> ids(const Selection& selection) {
  const std::vector<Suite> all = suites();
  std::vector<std::string> result;
  for (const PlannedCase& planned : plan_cases(all, selection)) result.push_back(planned.id());
  return result;
}

std::string refusal(const Selection& selection) {
  return thrown_text<UsageError>([&] { (void)ids(selection); }, "(accepted)");
}

Selection selecting(Tier tier) {
  Selection selection;
  selection.tier = tier;
  return selection;
}

TEST(Plan, ATierTakesItsCasesAndThoseOfLowerTiersInSuiteOrder) {
  EXPECT_THAT(ids(selecting(Tier::smoke)),
              ElementsAre("algebra/product/m=8,n=4,k=2/f32/x1", "algebra/product/m=8,n=4,k=2/bf16/x1",
                          "memory/move/elements=1024,gap=0/f32/x1"));
  EXPECT_EQ(ids(selecting(Tier::quick)).size(), 5U);
  EXPECT_EQ(ids(selecting(Tier::standard)).size(), 5U);
  EXPECT_EQ(ids(selecting(Tier::large)).size(), 7U);
}

TEST(Plan, SuitesAreTakenByNameAndAllMeansAll) {
  Selection selection = selecting(Tier::smoke);
  selection.suites = {"memory"};
  EXPECT_THAT(ids(selection), ElementsAre("memory/move/elements=1024,gap=0/f32/x1"));
  selection.suites = {"memory", "all"};
  EXPECT_EQ(ids(selection).size(), 3U);
}

TEST(Plan, AnUnknownSuiteIsAUsageErrorWithTheNearestMatch) {
  Selection selection;
  selection.suites = {"algbera"};
  EXPECT_EQ(refusal(selection), "suite 'algbera' is not known; known: all, algebra, memory; did you mean 'algebra'?");
  selection.suites = {"transformer"};
  EXPECT_THAT(refusal(selection), Not(HasSubstr("did you mean")));
}

TEST(Plan, PrecisionsSelectRecipesOfTheGrid) {
  Selection selection = selecting(Tier::smoke);
  selection.precisions = {"bf16"};
  EXPECT_THAT(ids(selection), ElementsAre("algebra/product/m=8,n=4,k=2/bf16/x1"));
}

TEST(Plan, AnUnknownPrecisionIsAUsageErrorWithTheNearestMatch) {
  Selection selection;
  selection.precisions = {"bf61"};
  EXPECT_THAT(refusal(selection), HasSubstr("precision 'bf61' is not known; known: f32, bf16; did you mean 'bf16'?"));
}

TEST(Plan, EachCaseIsPlannedInEachLaunchModeAndTheDefaultIsNotInTheId) {
  Selection selection = selecting(Tier::smoke);
  selection.suites = {"memory"};
  selection.default_launch = LaunchMode::graph;
  EXPECT_THAT(ids(selection), ElementsAre("memory/move/elements=1024,gap=0/f32/x1"));
  selection.launches = {LaunchMode::graph, LaunchMode::stream};
  EXPECT_THAT(ids(selection),
              ElementsAre("memory/move/elements=1024,gap=0/f32/x1", "memory/move/elements=1024,gap=0/f32/stream/x1"));
  const std::vector<Suite> all = suites();
  const std::vector<PlannedCase> planned = plan_cases(all, selection);
  EXPECT_EQ(planned[0].c.launch, LaunchMode::graph);
  EXPECT_EQ(planned[1].c.launch, LaunchMode::stream);
}

TEST(Plan, UnfusedCasesAreMarkedInTheirId) {
  Selection selection = selecting(Tier::smoke);
  selection.suites = {"memory"};
  EXPECT_TRUE(plan_cases(suites(), selection).at(0).c.fuse);
  selection.fuse = false;
  EXPECT_THAT(ids(selection), ElementsAre("memory/move/elements=1024,gap=0/f32/unfused/x1"));
  EXPECT_FALSE(plan_cases(suites(), selection).at(0).c.fuse);
}

TEST(Plan, FiltersAreSearchedInTheIdAndAnyMayMatch) {
  Selection selection = selecting(Tier::large);
  selection.filters = {"m=8,.*f32", "^memory/"};
  EXPECT_THAT(ids(selection),
              ElementsAre("algebra/product/m=8,n=4,k=2/f32/x1", "memory/move/elements=1024,gap=0/f32/x1"));
  selection.excludes = {"move"};
  EXPECT_THAT(ids(selection), ElementsAre("algebra/product/m=8,n=4,k=2/f32/x1"));
}

TEST(Plan, AFilterThatMatchesNothingIsAnEmptyPlan) {
  Selection selection;
  selection.filters = {"no such case"};
  EXPECT_THAT(ids(selection), IsEmpty());
}

TEST(Plan, AMalformedFilterIsAUsageError) {
  Selection selection;
  selection.filters = {"m=(8"};
  EXPECT_THAT(refusal(selection), HasSubstr("filter 'm=(8' is not a regular expression"));
}

TEST(Plan, ABatchReplacesTheBatchAxisAndLeavesOtherWorkloadsAlone) {
  Selection selection = selecting(Tier::smoke);
  selection.precisions = {"f32"};
  selection.batches = {1, 32};
  EXPECT_THAT(ids(selection), ElementsAre("algebra/product/m=1,n=4,k=2/f32/x1", "algebra/product/m=32,n=4,k=2/f32/x1",
                                          "memory/move/elements=1024,gap=0/f32/x1"));
}

TEST(Plan, PointsThatCoincideAfterAnOverrideAreOneCaseTheFirst) {
  Selection selection = selecting(Tier::quick);
  selection.precisions = {"f32"};
  selection.suites = {"algebra"};
  selection.batches = {16};
  const std::vector<Suite> all = suites();
  const std::vector<PlannedCase> planned = plan_cases(all, selection);
  ASSERT_EQ(planned.size(), 1U);
  EXPECT_EQ(planned[0].c.label, "tiny");
  EXPECT_EQ(planned[0].c.tier, Tier::smoke);
}

TEST(Plan, ABatchWithoutAnyBatchAxisIsAUsageError) {
  Selection selection;
  selection.suites = {"memory"};
  selection.batches = {4};
  EXPECT_THAT(refusal(selection), HasSubstr("no selected workload has a batch axis"));
}

TEST(Plan, ExtentsBelowOneAreUsageErrors) {
  Selection selection;
  selection.batches = {0};
  EXPECT_THAT(refusal(selection), HasSubstr("--batch has value 0, expected at least 1"));
  Selection axis;
  axis.axes = {{"n", {-3}}};
  EXPECT_THAT(refusal(axis), HasSubstr("--axis n has value -3"));
  Selection none;
  none.axes = {{"n", {}}};
  EXPECT_THAT(refusal(none), HasSubstr("axis 'n' has no values"));
}

TEST(Plan, AnAxisThatASuiteSetsToZeroTakesZero) {
  Selection selection = selecting(Tier::smoke);
  selection.suites = {"memory"};
  selection.axes = {{"gap", {0, 2}}};
  EXPECT_THAT(ids(selection),
              ElementsAre("memory/move/elements=1024,gap=0/f32/x1", "memory/move/elements=1024,gap=2/f32/x1"));
  selection.axes = {{"gap", {-1}}};
  EXPECT_EQ(refusal(selection), "--axis gap has value -1, expected at least 0");
  selection.axes = {{"elements", {0}}};
  EXPECT_EQ(refusal(selection), "--axis elements has value 0, expected at least 1");
}

TEST(Plan, AxesAreCrossedAndTheLabelOfAnotherShapeIsDropped) {
  Selection selection = selecting(Tier::smoke);
  selection.suites = {"algebra"};
  selection.precisions = {"f32"};
  selection.axes = {{"n", {4, 5}}, {"k", {6, 8}}};
  EXPECT_THAT(ids(selection), ElementsAre("algebra/product/m=8,n=4,k=6/f32/x1", "algebra/product/m=8,n=4,k=8/f32/x1",
                                          "algebra/product/m=8,n=5,k=6/f32/x1", "algebra/product/m=8,n=5,k=8/f32/x1"));
  const std::vector<Suite> all = suites();
  EXPECT_EQ(plan_cases(all, selection)[0].c.label, "");
  selection.axes = {{"n", {4}}};
  EXPECT_EQ(plan_cases(all, selection)[0].c.label, "tiny");
}

TEST(Plan, AnUnknownAxisIsAUsageErrorNamingTheKnownOnes) {
  Selection selection;
  selection.axes = {{"element", {8}}};
  EXPECT_EQ(refusal(selection), "axis 'element' is not known; known: m, n, k, elements, gap; did you mean 'elements'?");
  selection.suites = {"algebra"};
  EXPECT_EQ(refusal(selection), "axis 'element' is not known; known: m, n, k");
}

TEST(Plan, InconsistentExtentsAreAUsageErrorWhenTheUserChoseThem) {
  Selection selection = selecting(Tier::smoke);
  selection.suites = {"algebra"};
  selection.axes = {{"k", {3}}};
  EXPECT_THAT(refusal(selection),
              testing::AllOf(HasSubstr("algebra/product/m=8,n=4,k=3/f32/x1"), HasSubstr("k is odd")));
}

// f32 [8, 2] by [2, 4]: 2 x 8 x 4 x 2 = 128 FLOP; 16 + 8 + 32 elements of 4 bytes.
TEST(Plan, WorkAndMemoryAreThoseOfTheProgram) {
  Selection selection = selecting(Tier::smoke);
  selection.filters = {"product.*f32"};
  const std::vector<Suite> all = suites();
  const std::vector<PlannedCase> planned = plan_cases(all, selection);
  ASSERT_EQ(planned.size(), 1U);
  EXPECT_EQ(planned[0].cost.flop, 128.0);
  EXPECT_EQ(planned[0].bytes, 224);
  EXPECT_EQ(planned[0].c.cache, CacheMode::cold);
  EXPECT_EQ(planned[0].workload->info().name, "product");
}

TEST(Plan, ProgramsOfFilteredCasesAreNotBuilt) {
  Selection selection = selecting(Tier::large);
  selection.filters = {"m=64,.*bf16"};
  programs_built = 0;
  EXPECT_EQ(ids(selection).size(), 1U);
  EXPECT_EQ(programs_built, 1);
}

TEST(Plan, DeclaredCasesAreThePlannedOnesAndBuildNothing) {
  const std::vector<Suite> all = suites();
  Selection selection = selecting(Tier::large);
  selection.batches = {8, 16};
  const std::vector<std::string> planned = ids(selection);
  programs_built = 0;
  std::vector<std::string> declared;
  for (const PlannedCase& one : declared_cases(all, selection)) declared.push_back(one.id());
  EXPECT_EQ(declared, planned);
  EXPECT_EQ(programs_built, 0);
}

class Together : public Workload {
 public:
  [[nodiscard]] WorkloadInfo info() const override {
    WorkloadInfo info{"together", "", "", PrimaryMetric::bytes_per_s, "messages", CacheMode::cold};
    info.min_ranks = 2;
    info.max_ranks = 4;
    return info;
  }
  [[nodiscard]] Grid grid() const override {
    Grid grid;
    grid.recipes = {"f32"};
    grid.points = {{{{"bytes", 8}}, "small", Tier::smoke, {}, {"in_place"}, Cadence::isolated}};
    return grid;
  }
  [[nodiscard]] Program build(const Case& c) const override {
    EXPECT_TRUE(c.has_mode("in_place"));
    EXPECT_EQ(c.cadence, Cadence::isolated);
    Program p;
    copy(p, "y", p.add(tensor("x", DType::f32, {c.ranks}, Role::input)));
    return p;
  }
  [[nodiscard]] double items(const Case&) const override { return 1.0; }
};

std::vector<std::string> ids_on(std::vector<int> ranks) {
  const std::vector<Suite> all{{"memory", "", {std::make_shared<Move>()}},
                               {"collectives", "", {std::make_shared<Together>()}}};
  Selection selection;
  selection.ranks = std::move(ranks);
  std::vector<std::string> result;
  for (const PlannedCase& planned : plan_cases(all, selection)) result.push_back(planned.id());
  return result;
}

TEST(PlanRanks, ByDefaultEachWorkloadRunsOnTheFewestRanksItSupports) {
  EXPECT_THAT(ids_on({}), ElementsAre("memory/move/elements=1024,gap=0/f32/x1",
                                      "collectives/together/bytes=8/f32/in_place/isolated/x2"));
}

TEST(PlanRanks, EachCaseRunsOnTheRequestedCountsThatItSupports) {
  EXPECT_THAT(ids_on({1, 2, 4}), ElementsAre("memory/move/elements=1024,gap=0/f32/x1",
                                             "collectives/together/bytes=8/f32/in_place/isolated/x2",
                                             "collectives/together/bytes=8/f32/in_place/isolated/x4"));
}

TEST(PlanRanks, SeveralOnOneDeviceAreVirtualInTheIdAndOneIsNot) {
  const std::vector<Suite> all{{"memory", "", {std::make_shared<Move>()}},
                               {"collectives", "", {std::make_shared<Together>()}}};
  Selection selection;
  selection.virtual_ranks = true;
  std::vector<std::string> ids;
  for (const PlannedCase& planned : plan_cases(all, selection)) ids.push_back(planned.id());
  EXPECT_THAT(ids, ElementsAre("memory/move/elements=1024,gap=0/f32/x1",
                               "collectives/together/bytes=8/f32/in_place/isolated/virtual/x2"));
}

TEST(PlanRanks, SeveralAreLaunchedOpByOpAndTheIdDoesNotNameIt) {
  const std::vector<Suite> all{{"collectives", "", {std::make_shared<Together>()}}};
  Selection selection;
  selection.default_launch = LaunchMode::graph;
  EXPECT_EQ(plan_cases(all, selection).front().c.launch, LaunchMode::stream);
  EXPECT_EQ(plan_cases(all, selection).front().id(), "collectives/together/bytes=8/f32/in_place/isolated/x2");
  selection.launches = {LaunchMode::graph};
  EXPECT_EQ(plan_cases(all, selection).front().id(), "collectives/together/bytes=8/f32/in_place/isolated/graph/x2");
}

// A step whose ranks can share its tensors.
class Shareable : public Together {
 public:
  [[nodiscard]] WorkloadInfo info() const override {
    WorkloadInfo info = Together::info();
    info.name = "shareable";
    info.min_ranks = 1;
    info.shares_tensors = true;
    return info;
  }
};

std::vector<std::string> ids_shared(std::vector<Selection::Layout> layouts, std::vector<int> ranks = {}) {
  const std::vector<Suite> all{
      {"steps", "", {std::make_shared<Shareable>(), std::make_shared<Together>(), std::make_shared<Move>()}}};
  Selection selection;
  selection.layouts = std::move(layouts);
  selection.ranks = std::move(ranks);
  std::vector<std::string> result;
  for (const PlannedCase& planned : declared_cases(all, selection)) result.push_back(planned.id());
  return result;
}

TEST(PlanRanks, TheIdNamesTheLayoutAndTheDataStaysTheSame) {
  EXPECT_THAT(ids_shared({{{}, {2, false}}}), ElementsAre("steps/shareable/bytes=8/f32/in_place/isolated/tp=2/x2"));
  EXPECT_THAT(ids_shared({{2, {2, true}}}), ElementsAre("steps/shareable/bytes=8/f32/in_place/isolated/tp=2/sp/x4"));
  EXPECT_THAT(ids_shared({{{}, {2, false}}}, {2, 4}),
              ElementsAre("steps/shareable/bytes=8/f32/in_place/isolated/tp=2/x2",
                          "steps/shareable/bytes=8/f32/in_place/isolated/tp=2/x4"));
  EXPECT_THAT(ids_shared({{2, {}}}), ElementsAre("steps/shareable/bytes=8/f32/in_place/isolated/x2",
                                                 "steps/together/bytes=8/f32/in_place/isolated/x2"));
  const Case shared{"steps", "shareable", {{"bytes", 8}}, "f32", {"in_place", "tp=2", "sp"}, 4, "of a test"};
  EXPECT_EQ(shared.id_without_ranks(), shared.on_one_rank().id_without_ranks());
  EXPECT_EQ(shared.on_one_rank().id(), "steps/shareable/bytes=8/f32/in_place/x1");
}

TEST(PlanRanks, LayoutsThatDoNotFitTheRanksAreUsageErrors) {
  const auto refusal_of = [](std::vector<Selection::Layout> layouts, std::vector<int> ranks) -> std::string {
    try {
      return std::to_string(ids_shared(std::move(layouts), std::move(ranks)).size()) + " cases";
    } catch (const UsageError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(refusal_of({{{}, {2, false}}}, {3}), "--ranks 3: --parallel tp=2 needs a multiple of 2");
  EXPECT_EQ(refusal_of({{2, {2, false}}}, {4}),
            "--parallel dp=2 and --ranks both set the number of ranks; give one of them");
  EXPECT_EQ(refusal_of({{{}, {.ep = 2}}}, {}),
            "--parallel ep=2: no selected workload supports this layout; workloads that do: ");
}

TEST(PlanRanks, AnUnsupportedLayoutIsAnErrorNamingWorkloadsThatSupportIt) {
  Selection selection;
  selection.layouts = {{{}, {.tp = 2}}};
  const std::vector<Suite> others{{"steps", "", {std::make_shared<Shareable>()}},
                                  {"moves", "", {std::make_shared<Together>()}}};
  selection.suites = {"moves"};
  EXPECT_EQ(thrown_text<UsageError>([&] { (void)declared_cases(others, selection); }),
            "--parallel tp=2: no selected workload supports this layout; workloads that do: steps/shareable");
}

TEST(PlanRanks, ARankCountThatNothingRunsOnIsAUsageError) {
  EXPECT_EQ(thrown_text<UsageError>([&] {
              (void)ids_on({1, 8});
            }),
            "--ranks 8: the selected suites run on 1 to 4 ranks");
}

TEST(Plan, ExtentsThatOverflowAreAUsageErrorWithTheirValues) {
  // 2^62 elements of 4 bytes are 2^64 bytes, which are 0 in 64 bits.
  Selection selection = selecting(Tier::smoke);
  selection.axes = {{"m", {std::int64_t{1} << 62}}};
  EXPECT_THAT(refusal(selection), HasSubstr("too large to be counted: m=4611686018427387904,n=4,k=2"));
  selection.axes = {{"m", {std::int64_t{1} << 40}}, {"k", {std::int64_t{1} << 40}}};  // their product is 2^80
  EXPECT_THAT(refusal(selection), HasSubstr("too large to be counted"));
  selection.axes = {};
  selection.batches = {std::int64_t{1} << 62};
  EXPECT_THAT(refusal(selection), HasSubstr("too large to be counted"));
}

TEST(Plan, MoreBytesThanAnyDeviceHasAreAUsageErrorOfTheCase) {
  Selection selection = selecting(Tier::smoke);
  selection.suites = {"memory"};
  selection.axes = {{"elements", {std::int64_t{1} << 50}}};
  EXPECT_THAT(refusal(selection), HasSubstr("memory/move/elements=1125899906842624"));
  EXPECT_THAT(refusal(selection), HasSubstr("more than 2^50 bytes"));
  selection.axes = {{"elements", {std::int64_t{1} << 46}}};  // 2^48 bytes each: too much to run, but countable
  EXPECT_EQ(ids(selection).size(), 1U);
}

TEST(Plan, TooManyCombinationsOfValuesAreAUsageError) {
  Selection selection = selecting(Tier::smoke);
  std::vector<std::int64_t> many(200);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = 2 * static_cast<std::int64_t>(i + 1);
  selection.axes = {{"m", many}, {"n", many}, {"k", many}};  // 8 million sizes
  EXPECT_THAT(refusal(selection), HasSubstr("more than 10000 sizes of one case"));
}

}  // namespace
}  // namespace gpubench
