#include "harness/cli/implementations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/report/json.h"
#include "harness/report/reader.h"
#include "reference/ops/gemm.h"
#include "reference/ops/softmax.h"
#include "suites/suites.h"

namespace gpubench {
namespace untried_calls_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Only the product changes with tf32.
Program softmax_and_product(const Case& c, const Recipe& r) {
  Program p;
  const auto in = [&](const char* name) {
    return p.add(tensor(name, r.tensor, {c.dim("n"), c.dim("n")}, Role::input, Fill::normal(1.0)));
  };
  gemm(p, {}, r.math, "product", softmax_forward(p, r.math, "softmax", in("x")), in("w"));
  return p;
}

std::vector<Suite> suites() {
  const auto suite_of = [](const char* name, bool only_by_name, std::int64_t n) {
    Grid grid;
    grid.recipes = {"f32"};
    grid.points = {Point{{{"n", n}}, "", Tier::smoke}};
    Suite suite{name,
                "",
                {suites::declare({{"both", "", "", PrimaryMetric::flop_per_s, "rows", CacheMode::cold},
                                  grid,
                                  softmax_and_product,
                                  [](const Case&) { return 1.0; }})}};
    suite.only_by_name = only_by_name;
    return suite;
  };
  return {suite_of("usual", false, 8), suite_of("hidden", true, 5)};
}

bool takes_all(const Program& /*program*/, const OpCall& /*call*/) { return true; }
bool takes_f32_softmax(const Program& program, const OpCall& call) {
  return call.kind == softmax_forward_kind && program.spec(call.inputs[0]).dtype == DType::f32;
}

TEST(UntriedCalls, AreThoseOfHiddenSuitesInEveryPrecisionThatChangesTheCall) {
  const std::vector<Suite> all = suites();
  const std::vector<PlannedCase> planned = declared_cases(all, {});
  const OfferedCalls offered = offered_calls(planned, all, takes_all);
  const std::vector<std::string> lines = untried(offered, {planned[0].id()});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], "softmax_forward: 1 call in f64, 1 in f32, 1 in bf16, 1 in f16");
  EXPECT_THAT(lines[0], ::testing::StartsWith("gemm: 1 call in f64, 1 in f32, 1 in tf32"));
}

TEST(UntriedCalls, OfCasesThatWereNotJudgedAreAmongThem) {
  const std::vector<Suite> all = suites();
  Selection everything;
  everything.suites = {"usual", "hidden"};
  const std::vector<PlannedCase> planned = declared_cases(all, everything);
  const OfferedCalls offered = offered_calls(planned, all, takes_f32_softmax);
  EXPECT_THAT(untried(offered, {planned[0].id(), planned[1].id()}), IsEmpty());
  EXPECT_THAT(untried(offered, {planned[0].id()}), ElementsAre("softmax_forward: 1 call in f32"));
  EXPECT_THAT(untried(offered, {}), ElementsAre("softmax_forward: 2 calls in f32"));
}

TEST(UntriedCalls, ComeBackFromJsonAndPositionsOutsideTheListAreRefused) {
  const std::vector<Suite> all = suites();
  const OfferedCalls offered = offered_calls(declared_cases(all, {}), all, takes_all);
  Json json = to_json(offered);
  const OfferedCalls back = read_offered_calls({json, "claims"});
  EXPECT_EQ(back.of_cases, offered.of_cases);
  EXPECT_EQ(untried(back, {}), untried(offered, {}));
  json["cases"][0]["calls"][0] = offered.calls.size();
  EXPECT_THROW((void)read_offered_calls({json, "claims"}), ReadError);
}

}  // namespace untried_calls_test
}  // namespace gpubench
