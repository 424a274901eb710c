// Training steps on several ranks equal the same step on one rank, in fp64 by the textbook, to rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <string>

#include "harness/core/step_parts.h"
#include "harness/core/workload.h"
#include "harness/parity/end_to_end.h"
#include "suites/suites.h"
#include "tests/suites/workloads.h"

namespace gpubench {
namespace {

struct Model {
  std::string name;
  Dims dims;
  std::string batch;
  std::string recipe = "f32";
  std::string mode = {};
  std::string note = {};
};

struct Arrangement {
  int dp = 1;
  RankLayout ranks;
};

Program step_of(const Model& model, Dims dims, const Arrangement& arrangement) {
  Case c{"",
         model.name,
         std::move(dims),
         model.recipe,
         modes_of(arrangement.ranks),
         arrangement.dp * arrangement.ranks.ranks(),
         "of a test"};
  if (!model.mode.empty()) c.modes.push_back(model.mode);
  return widen(testing::workload_named("", model.name)->build(c));
}

constexpr int steps = 3;  // the third reads and updates weights that an earlier one left

/// Final state by source name, computed by the textbook.
class AfterSteps {
 public:
  explicit AfterSteps(const Program& program) : program_(program), machine_(program) {
    machine_.fill_sources("a key for all", 42, program);
    machine_.run();
    for (int step = 1; step < steps; ++step) machine_.run(Phase::timed, {}, {}, {});
  }

  template <class Visit>
  void each(const Visit& visit) const {
    for (int index = 0; index < static_cast<int>(program_.values().size()); ++index) {
      const Value& value = program_.value({index});
      const bool trained = value.spec.role == Role::parameter || value.spec.role == Role::state;
      if (value.source && !value.part_of && trained) visit(value.spec, machine_.view({index}));
    }
  }

 private:
  const Program& program_;
  TextbookMachine machine_;
};

/// The model's dims are those of the whole batch.
void expect_parts_of_one_rank(const Model& model, const Arrangement& arrangement) {
  const Program one = step_of(model, model.dims, {});
  Dims of_each = model.dims;
  for (auto& [axis, extent] : of_each) {
    if (axis == model.batch) extent /= arrangement.dp * arrangement.ranks.fsdp * arrangement.ranks.ep;
  }
  const Program many = step_of(model, of_each, arrangement);
  const AfterSteps alone(one), shared(many);
  std::map<std::string, std::vector<double>, std::less<>> expected;
  alone.each([&](const TensorSpec& spec, const TensorView& view) {
    view.read(0, expected[spec.name] = std::vector<double>(static_cast<std::size_t>(spec.shape.elements())));
  });
  std::map<std::string, std::int64_t, std::less<>> seen;
  shared.each([&](const TensorSpec& spec, const TensorView& view) {
    const auto found = expected.find(spec.global_name());
    ASSERT_NE(found, expected.end()) << spec.name;
    seen[found->first] += spec.shape.elements();
    double worst = 0.0;
    for (std::int64_t i = 0; i < spec.shape.elements(); ++i) {
      const double want = found->second.at(static_cast<std::size_t>(global_index(spec, i)));
      const double off = std::fabs(view[i] - want) / (std::fabs(want) + 1e-3);
      worst = off <= worst ? worst : off;  // also keeps NaN
    }
    EXPECT_LE(worst, 1e-9) << spec.to_string();
  });
  for (const auto& [tensor, values] : expected)
    EXPECT_GE(seen[tensor], static_cast<std::int64_t>(values.size())) << tensor;
}

std::string to_string(const Arrangement& arrangement) {
  std::string text = "dp=" + std::to_string(arrangement.dp);
  for (const std::string& mode : modes_of(arrangement.ranks)) text += " " + mode;
  return text;
}

class ParallelSteps : public ::testing::TestWithParam<Model> {};

TEST_P(ParallelSteps, TrainAsOnOneRankHoweverTheRanksShareThem) {
  for (const int dp : {1, 2}) {
    for (const int tp : {1, 2, 4}) {
      for (const bool scatters : {false, true}) {
        const Arrangement arrangement{dp, {tp, scatters && tp > 1}};
        if (dp * tp == 1 || (scatters && tp == 1)) continue;
        SCOPED_TRACE(to_string(arrangement));
        expect_parts_of_one_rank(GetParam(), arrangement);
      }
    }
  }
}

TEST_P(ParallelSteps, TrainAsOnOneRankWhereEachKeepsPartsOfTheWeights) {
  for (const int dp : {1, 2}) {
    for (const int fsdp : {2, 4}) {
      const Arrangement arrangement{dp, {.fsdp = fsdp}};
      Model model = GetParam();
      for (auto& [axis, extent] : model.dims) {
        if (axis == model.batch) extent *= dp * fsdp / 2;
      }
      SCOPED_TRACE(to_string(arrangement));
      expect_parts_of_one_rank(model, arrangement);
    }
  }
}

TEST_P(ParallelSteps, TrainAsOnOneRankWhereEachKeepsPartsOfItsPartsOfTheWeights) {
  Model model = GetParam();
  for (auto& [axis, extent] : model.dims) {
    if (axis == model.batch) extent *= 2;
  }
  for (const Arrangement& arrangement : {Arrangement{1, {.tp = 2, .fsdp = 2}},
                                         {1, {.tp = 2, .scatters_tokens = true, .fsdp = 4}},
                                         {2, {.tp = 4, .scatters_tokens = true, .fsdp = 2}}}) {
    SCOPED_TRACE(to_string(arrangement));
    expect_parts_of_one_rank(model, arrangement);
  }
}

// Up to 13 s per model.
TEST_P(ParallelSteps, TrainAsOnOneRankWhereEachHasSomeLayers) {
  Model model = GetParam();
  const auto layers = std::ranges::find(model.dims, "layers", &Dims::value_type::first);
  if (layers == model.dims.end()) GTEST_SKIP() << "a block has none";
  layers->second = 4;
  const auto expect_parts = [&](const Arrangement& arrangement) {
    SCOPED_TRACE(to_string(arrangement));
    expect_parts_of_one_rank(model, arrangement);
  };
  expect_parts({1, {.pp = 2}});
  model.dims.emplace_back("micro", 3);
  for (const RankLayout& layout :
       {RankLayout{.pp = 4}, {.pp = 2, .vp = 2}, {.tp = 2, .scatters_tokens = true, .pp = 2}, {.fsdp = 2, .pp = 2}})
    expect_parts({1, layout});
  expect_parts({2, {.tp = 2, .pp = 2, .vp = 2}});
}

// Up to 9 s per model.
TEST_P(ParallelSteps, TrainAsOnOneRankWhereEachHasPartsOfTheSequences) {
  Model model = GetParam();
  if (!testing::workload_named("", model.name)->info().shares_sequences) GTEST_SKIP() << "its tokens look at others";
  const auto expect_parts = [&](const Arrangement& arrangement) {
    SCOPED_TRACE(to_string(arrangement));
    expect_parts_of_one_rank(model, arrangement);
  };
  expect_parts({1, {.cp = 2}});
  expect_parts({2, {.cp = 2, .passes_keys = true}});
  for (auto& [axis, extent] : model.dims) {
    if (axis == "b") extent *= 2;
  }
  const auto layers = std::ranges::find(model.dims, "layers", &Dims::value_type::first);
  if (layers != model.dims.end()) {
    layers->second = 2;
    model.dims.emplace_back("micro", 2);
    expect_parts({1, {.cp = 2, .pp = 2}});
  }
  for (const RankLayout& layout : {RankLayout{.cp = 4},
                                   {.cp = 4, .passes_keys = true},
                                   {.tp = 2, .scatters_tokens = true, .cp = 2},
                                   {.fsdp = 2, .cp = 2}})
    expect_parts({1, layout});
  if (model.dims.back().first == "k") expect_parts({1, {.ep = 2, .cp = 2}});
  expect_parts({2, {.tp = 2, .cp = 2, .passes_keys = true}});
}

class ParallelExperts : public ::testing::TestWithParam<Model> {};

TEST_P(ParallelExperts, TrainAsOnOneRankWhereEachHasSomeOfThem) {
  for (const int dp : {1, 2}) {
    for (const RankLayout& layout :
         {RankLayout{.ep = 2}, {.ep = 4}, {.ep = 2, .pp = 2}, {.tp = 2, .ep = 2}, {.fsdp = 2, .ep = 2}}) {
      const Arrangement arrangement{dp, layout};
      Model model = GetParam();
      const bool shares_tensors = testing::workload_named("", model.name)->info().shares_tensors;
      const bool has_layers = std::ranges::find(model.dims, "layers", &Dims::value_type::first) != model.dims.end();
      if ((layout.pp > 1 && !has_layers) || (layout.tp > 1 && !shares_tensors)) continue;
      for (auto& [axis, extent] : model.dims) {
        if (axis == model.batch) extent *= dp * layout.ep * layout.fsdp;
      }
      SCOPED_TRACE(to_string(arrangement));
      expect_parts_of_one_rank(model, arrangement);
    }
  }
}

Dims transformer(std::int64_t layers, std::initializer_list<Dims::value_type> more) {
  Dims dims{{"b", 2}, {"s", 8}, {"layers", layers}, {"h", 32}, {"heads", 4}};
  dims.insert(dims.end(), more);
  return dims;
}

INSTANTIATE_TEST_SUITE_P(
    Of, ParallelSteps,
    ::testing::Values(
        Model{"gpt2_train_step", transformer(2, {{"vocab", 24}}), "b"},
        Model{"gpt2_train_step", transformer(1, {{"vocab", 24}}), "b", "bf16", {}, "_with_masters"},
        Model{"gpt2_train_step", transformer(1, {{"vocab", 24}}), "b", "f16", "loss_scaling", "_with_a_loss_scale"},
        Model{"gpt2_train_step", transformer(2, {{"vocab", 24}}), "b", "f32", suites::masked_mode, "_of_some_labels"},
        Model{"gpt2_train_step", transformer(1, {{"vocab", 24}}), "b", "f8_hybrid", {}, "_in_8_bits"},
        Model{"gpt2_block", {{"b", 2}, {"s", 8}, {"h", 32}, {"heads", 4}}, "b"},
        Model{"llama_train_step", transformer(1, {{"kv", 4}, {"f", 24}, {"vocab", 24}}), "b"},
        Model{"llama_block", {{"b", 2}, {"s", 8}, {"h", 32}, {"heads", 8}, {"kv", 4}, {"f", 24}}, "b"},
        // Every seventh token is predicted, in each half of the batch.
        Model{"bert_train_step", {{"b", 2}, {"s", 14}, {"layers", 1}, {"h", 32}, {"heads", 4}, {"vocab", 24}}, "b"},
        Model{"mixtral_block",
              {{"b", 2}, {"s", 8}, {"h", 32}, {"heads", 4}, {"kv", 4}, {"f", 16}, {"experts", 4}, {"k", 2}},
              "b"},
        Model{"vit_train_step",
              {{"n", 2}, {"image", 32}, {"patch", 16}, {"layers", 1}, {"h", 32}, {"heads", 4}, {"classes", 10}},
              "n"}),
    [](const auto& model) { return model.param.name + model.param.note; });

Dims in_two_micro_batches(Dims dims) {
  dims.emplace_back("micro", 2);
  return dims;
}

const Dims mixtral{{"b", 1},  {"s", 8},  {"layers", 2},  {"h", 16}, {"heads", 2},
                   {"kv", 2}, {"f", 12}, {"experts", 4}, {"k", 2},  {"vocab", 24}};
INSTANTIATE_TEST_SUITE_P(
    Of, ParallelExperts,
    ::testing::Values(
        Model{"mixtral_train_step", mixtral, "b"},
        Model{"mixtral_train_step", in_two_micro_batches(mixtral), "b", "bf16", {}, "_of_two_micro_batches"},
        Model{"mixtral_train_step", mixtral, "b", "bf16", recompute_mode, "_run_again"},
        Model{"mixtral_train_step", mixtral, "b", "f16", "loss_scaling", "_with_a_loss_scale"},
        Model{"mixtral_train_step", in_two_micro_batches(mixtral), "b", "f32", suites::masked_mode, "_of_some_labels"},
        Model{"mixtral_block",
              {{"b", 1}, {"s", 8}, {"h", 16}, {"heads", 2}, {"kv", 2}, {"f", 12}, {"experts", 8}, {"k", 3}},
              "b"},
        Model{"deepseek_layer", {{"b", 1}, {"s", 8}, {"h", 16}, {"f", 12}, {"experts", 4}, {"k", 2}}, "b"},
        Model{"deepseek_block",
              {{"b", 1},
               {"s", 8},
               {"h", 24},
               {"heads", 3},
               {"q_rank", 10},
               {"kv_rank", 8},
               {"nope", 6},
               {"rope", 4},
               {"v", 5},
               {"f", 20},
               {"experts", 4},
               {"k", 2}},
              "b"}),
    [](const auto& model) { return model.param.name + model.param.note; });

}  // namespace
}  // namespace gpubench
