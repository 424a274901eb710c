// Sizes and FLOP of known models, compared with published values.
#include "harness/predict/transformer_model.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace gpubench {
namespace {

const TransformerModel& known(std::string_view name) { return *find_model(name); }

// Sources: Llama 3 (arXiv 2407.21783 and its model cards), Mixtral (arXiv 2401.04088), Grok-1, Nemotron-4.
TEST(TransformerModel, HasThePublishedNumberOfParameters) {
  const std::vector<std::pair<std::string_view, double>> published{
      {"gpt2-124m", 124.4e6}, {"gpt3-175b", 174.6e9},    {"llama2-7b", 6.738e9},   {"llama2-70b", 68.98e9},
      {"llama3-8b", 8.030e9}, {"llama3-70b", 70.55e9},   {"llama3-405b", 405.9e9}, {"mixtral-8x7b", 46.70e9},
      {"grok-1", 314e9},      {"nemotron4-15b", 15.6e9}, {"nemotron4-340b", 341e9}};
  EXPECT_EQ(published.size(), transformer_models().size());
  for (const auto& [name, parameters] : published)
    EXPECT_NEAR(known(name).parameters() / parameters, 1.0, 0.006) << name;
}

// 6 N and causal attention: 803.3 MFLOP, less 4.7 for the learned positions, which are only looked up.
TEST(TransformerModel, ATokenOfGpt2Takes799MFlop) {
  EXPECT_NEAR(known("gpt2-124m").flop_per_token(1024), 803.3e6 - 6.0 * 1024.0 * 768.0, 1e-3 * 803.3e6);
}

// Two of eight experts and attention: 12.9e9 parameters (Mixtral's paper), less the embedding, which is only looked up.
TEST(TransformerModel, ATokenMeetsTheExpertsThatItIsRoutedTo) {
  const double weights = 6.0 * (12.88e9 - 32000.0 * 4096.0), attention = 6.0 * 32.0 * 4096.0 * 4096.0;
  EXPECT_NEAR(known("mixtral-8x7b").flop_per_token(4096), weights + attention, 1e-3 * weights);
  EXPECT_EQ(known("llama3-8b").expert_parameters(), 0.0);
}

TEST(TransformerModel, IsFoundByItsNameAlone) { EXPECT_EQ(find_model("llama3"), nullptr); }

}  // namespace
}  // namespace gpubench
