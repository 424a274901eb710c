#include "harness/cli/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "suites/suites.h"
#include "tests/harness/cli/captured.h"
#include "tests/scratch_folder.h"

namespace gpubench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const OpExplanation& op(std::string_view name) {
  static const std::vector<OpExplanation> all = explain_ops(all_suites());
  return *std::find_if(all.begin(), all.end(), [&](const OpExplanation& one) { return one.kind.name == name; });
}

class Explain : public ScratchFolder {
 protected:
  Captured cli_;
};

TEST_F(Explain, AnOpIsItsOperandsAttributesAndFormula) {
  EXPECT_EQ(cli_.run("explain adamw"), 0);

  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr("A step of AdamW (or Adam) for all parameters."),
                                    HasSubstr("input, a list, where attributes ask for it"),
                                    HasSubstr("i32 [1], the first is 1"), HasSubstr("beta2"), HasSubstr("0.95"),
                                    HasSubstr("  m' = beta1 m + (1 - beta1) g"), HasSubstr("arXiv 1711.05101")));
}

TEST_F(Explain, WithoutANameEveryOpIsALine) {
  EXPECT_EQ(cli_.run("explain"), 0);

  const std::string text = cli_.out.str();
  EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), 1 + definitions().size());
  EXPECT_THAT(text, HasSubstr("Layer normalization over the last axis."));
}

TEST_F(Explain, ACaseIsWhatListSaysAndTheFormulasOfItsOps) {
  EXPECT_EQ(cli_.run("list sim/first/n=8/f32/x1"), 0);
  const std::string listed = cli_.out.str();
  cli_.out.str("");
  EXPECT_EQ(cli_.run("explain sim/first/n=8/f32/x1"), 0);

  EXPECT_THAT(cli_.out.str(), AllOf(HasSubstr(listed), HasSubstr("  c = epilogue(alpha scale_a")));
}

TEST_F(Explain, AnUnknownNameIsAUsageErrorWithTheNearestOne) {
  EXPECT_EQ(cli_.run("explain layer_norm_foward"), 2);
  EXPECT_THAT(cli_.err.str(), HasSubstr("no op or case is named or matches 'layer_norm_foward'; did you mean "
                                        "'layer_norm_forward'?"));
  EXPECT_EQ(cli_.run("explain sim"), 2);
  EXPECT_THAT(cli_.err.str(),
              HasSubstr("'sim' is not an op, and 6 cases match; did you mean 'sgd'?; give a longer part"));
}

TEST_F(Explain, PagesLinkToPagesThatAreThereAndStandAlone) {
  EXPECT_EQ(cli_.run("explain --html ops"), 0);

  std::size_t links = 0;
  for (const auto& entry : std::filesystem::directory_iterator("ops")) {
    const std::string page = content_of(entry.path());
    EXPECT_THAT(page, AllOf(HasSubstr("default-src 'none'"), Not(HasSubstr("<script")), Not(HasSubstr("src=\""))));
    for (std::size_t at = 0; (at = page.find("href=\"", at)) != std::string::npos; ++links) {
      at += 6;
      EXPECT_TRUE(std::filesystem::exists("ops/" + page.substr(at, page.find('"', at) - at))) << entry.path();
    }
  }
  EXPECT_GE(links, 2 * definitions().size());
  EXPECT_THAT(content_of("ops/relu_backward.html"), HasSubstr("dx = 0 where y &lt;= 0, else dy"));
  EXPECT_THAT(content_of("ops/layer_norm_forward.html"), HasSubstr("(divided by n)\ny = gamma"));
  EXPECT_EQ(cli_.run("explain --html ops"), 2);
  EXPECT_EQ(cli_.run("explain --html ops --force"), 0);
}

TEST(ExplainedOps, NameTheOpsOfTheirGradient) {
  EXPECT_THAT(op("layer_norm_forward").gradient_by, ElementsAre("layer_norm_backward"));
  EXPECT_THAT(op("rotary").gradient_by, ElementsAre("rotary"));  // inverse rotation
  EXPECT_THAT(op("gemm").gradient_by, ElementsAre("gemm"));
  EXPECT_THAT(op("all_gather").gradient_by, ElementsAre("reduce_scatter"));
  EXPECT_THAT(op("layer_norm_backward").gradient_of, Contains("layer_norm_forward"));
  EXPECT_THAT(op("adamw").gradient_by, ElementsAre());
}

TEST(ExplainedOps, HaveAnExampleInTheCasesWithABoundForEachOutput) {
  const OpExample& gemm = op("gemm").example;
  EXPECT_THAT(gemm.case_id, HasSubstr("gemm/"));
  ASSERT_EQ(gemm.bounds.size(), 1U);
  EXPECT_EQ(gemm.bounds[0].first, "c");
  EXPECT_THAT(gemm.bounds[0].second, HasSubstr("Rule G"));
  EXPECT_EQ(op("residual_norm_forward").example.bounds.size(), 4U);
  EXPECT_TRUE(op("residual_norm_forward").example.fused);
  EXPECT_FALSE(gemm.fused);
  for (const OpDefinition* definition : definitions())
    EXPECT_FALSE(op(definition->kind().name).example.case_id.empty()) << definition->kind().name;
}

}  // namespace
}  // namespace gpubench
