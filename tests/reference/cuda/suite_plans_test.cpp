// Every cuDNN graph of the suites becomes an execution plan for a described chip. Without a GPU nothing runs, but
// support, engine and workspace are known.
//
// golden/cudnn-<version>.tsv records one version's answers. To update it after checking why it changes:
// GPUBENCH_UPDATE_GOLDEN=1 ctest -C trials -R cudnn_other_chips
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <tuple>

#include "harness/core/error.h"
#include "reference/cuda/cudnn_plan.h"
#include "tests/paths.h"
#include "tests/reference/cuda/described_chip.h"
#include "tests/reference/cuda/suite_graphs.h"

namespace gpubench::cuda {
namespace suite_plans_test {

using SuitePlansParameters = std::tuple<std::string, GraphFamily>;

bool every_chip() { return std::getenv("GPUBENCH_EVERY_CHIP") != nullptr; }

class SuitePlans : public ::testing::TestWithParam<SuitePlansParameters> {
 protected:
  void SetUp() override {
    if (const std::string why = no_fake_driver(); !why.empty()) GTEST_SKIP() << why;
    // Other chips take minutes to compile and differ little from the H200: ctest -C trials -R cudnn_other_chips
    if (std::get<0>(GetParam()) != "h200" && !every_chip())
      GTEST_SKIP() << "plans for other chips than the H200 are built where GPUBENCH_EVERY_CHIP is set";
  }
  // Requests one plan, so every attempt must succeed. cudnn_plan_test covers the number of candidates.
  static std::string answer(const Cudnn& cudnn, const SuiteGraph& graph) {
    const int before = cudnn.effort().built;
    const auto begin = std::chrono::steady_clock::now();
    std::string answered;
    try {
      const std::vector<CudnnPlan> plans =
          cudnn_plans(cudnn, std::make_shared<const CudnnGraph>(graph.build()), {.numerics = graph.numerics});
      answered = fmt::format("{} workspace={}", plans.at(0).implementation(), plans.at(0).workspace_bytes());
    } catch (const Unsupported& e) {
      answered = fmt::format("unsupported: {}", e.what());
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const int built = cudnn.effort().built - before;
    std::cout << fmt::format("{} plans built in {:.2f} s: {}\n", built, took.count(), graph.name);
    EXPECT_LE(built, 1) << graph.name;
    return answered;
  }
};

TEST_P(SuitePlans, EveryGraphIsSupportedByTheEngineThatThisVersionIsKnownToChoose) {
  const auto& [chip, family] = GetParam();
  const Cudnn cudnn = Cudnn::for_chip(chip_description(chip));
  const std::string prefix = fmt::format("{}\t{}\t", chip, name(family));
  GoldenRows answers;

  for (const SuiteGraph& graph : suite_graphs(family, chip == "h200" && every_chip() ? Sorts::all : Sorts::few)) {
    const std::string answered = answer(cudnn, graph);
    answers[prefix + graph.name] = answered;
    if (graph.may_be_unsupported) continue;
    EXPECT_EQ(answered.rfind("cudnn:", 0), 0U) << graph.name << ": " << answered;
  }

  EXPECT_FALSE(answers.empty());
  GoldenTable golden(fmt::format("{}/cudnn-{}.tsv", paths::cudnn_golden, cudnn_version()));
  if (std::getenv("GPUBENCH_UPDATE_GOLDEN") != nullptr) {
    golden.replace(prefix, answers);
  } else if (golden.exists()) {
    // Shapes newer than the table only have to be supported.
    const GoldenRows known = golden.rows(prefix);
    const std::size_t asked = answers.size();
    std::erase_if(answers, [&known](const auto& row) { return !known.contains(row.first); });
    EXPECT_FALSE(answers.empty()) << "the table shares no graph with the suites; rewrite it";
    for (const auto& [graph, answered] : answers) EXPECT_EQ(answered, known.at(graph)) << graph;
    if (answers.size() < asked) std::cout << asked - answers.size() << " graphs are not in the golden table\n";
  } else {
    std::cout << "no golden table for cuDNN " << cudnn_version() << ": engines and workspaces were not compared\n";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Described, SuitePlans,
    ::testing::Combine(::testing::ValuesIn(described_chips()),
                       ::testing::Values(GraphFamily::convolution, GraphFamily::attention, GraphFamily::deterministic)),
    [](const auto& made) { return std::get<0>(made.param) + "_" + std::string(name(std::get<1>(made.param))); });

}  // namespace suite_plans_test
}  // namespace gpubench::cuda
