#include "suites/variants/variants.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "reference/ops/collective.h"
#include "reference/ops/definition.h"
#include "reference/ops/transform/fuse.h"

namespace gpubench::variants {
namespace variants_test {

constexpr std::int64_t extents = 129;

/// Attributes that an op has with its family and does not read.
const std::map<std::string_view, std::set<std::string_view>> unread{
    {"cross_entropy_combine", {"first", "classes", "scaled"}},
    {"cross_entropy_forward", {"first", "classes", "scaled"}},
    {"cross_entropy_forward_backward", {"first", "classes"}},
    {"cross_entropy_partial", {"given_count", "scaled"}},
    {"gemm_gelu_bias_gradient", {"beta", "bias", "scaled", "blocks", "epilogue"}},
    {"gemm_weight_bias_gradient", {"beta", "bias", "scaled", "blocks", "epilogue", "gelu_form"}},
    {"max_pool_backward", {"counts_padding"}},
    {"max_pool_forward", {"counts_padding"}},
    {"routing_backward", {"bias"}},
};

TEST(Variants, ReachEveryOpAndSwitchEveryAttribute) {
  std::map<std::string_view, std::map<std::string_view, std::set<std::string>>> seen;  // op, attribute: values
  const auto look_at = [&](const Program& program) {
    for (const OpCall& call : program.ops()) {
      auto& attributes = seen[call.kind.name];
      for (const Attribute& attribute : call.attributes.list()) {
        const bool* const on = std::get_if<bool>(&attribute.value);
        attributes[attribute.name].insert(on != nullptr ? (*on ? "true" : "false") : value_text(attribute.value));
      }
    }
  };
  for (const Variants& one : all_variants()) {
    for (const std::string& name : one.recipes) {
      look_at(program_of(one, extents, recipe(name)).program);
    }
  }
  for (const Variants& one : collective_variants()) {
    for (const int ranks : {2, 3}) look_at(program_of(one, extents, recipe("f32"), ranks).program);
  }
  const std::set<std::string_view> without_attributes{"dispatch_tokens",
                                                      "return_tokens"};  // suite collectives has them
  for (const OpDefinition* definition : definitions()) {
    const OpKind kind = definition->kind();
    if (without_attributes.contains(kind.name)) continue;
    EXPECT_TRUE(seen.contains(kind.name)) << kind.name;
    const auto of_family = unread.find(kind.name);
    for (const auto& [attribute, values] : seen[kind.name]) {
      if (of_family != unread.end() && of_family->second.contains(attribute)) continue;
      EXPECT_GE(values.size(), 2U) << kind.name << " " << attribute;
    }
  }
}

/// Whether an extent of a tensor of the call is a power of two; those of at most two elements have no others.
bool has_a_power_of_two(const Program& program, const OpCall& call) {
  std::vector<ValueId> ids(call.inputs);
  ids.insert(ids.end(), call.outputs.begin(), call.outputs.end());
  return std::ranges::any_of(ids, [&](ValueId id) {
    const Shape& shape = program.spec(id).shape;
    return shape.elements() > 2 && std::ranges::any_of(shape.extents(), [](std::int64_t extent) {
             return std::has_single_bit(static_cast<std::uint64_t>(extent));
           });
  });
}

TEST(Variants, TryEveryOpWithExtentsOffEveryPowerOfTwo) {
  std::set<std::string_view> tried;
  for (const Variants& one : all_variants()) {
    const Program program = program_of(one, 7, recipe(one.recipes.front())).program;
    for (const OpCall& call : program.ops()) {
      if (!has_a_power_of_two(program, call)) tried.insert(call.kind.name);
    }
  }
  for (const OpDefinition* definition : definitions()) {
    if (is_collective(definition->kind())) continue;
    EXPECT_TRUE(tried.contains(definition->kind().name)) << definition->kind().name;
  }
}

TEST(Variants, WhatBuildersRefuseIsListed) {
  std::map<std::string, std::vector<std::string>> refused;
  for (const Variants& one : all_variants()) {
    std::vector<std::string> pairs = refused_pairs(one, recipe(one.recipes.front()));
    if (!pairs.empty()) refused[one.name] = std::move(pairs);
  }
  const std::vector<std::string> of_pools{"window_h=2 with pad_h=2", "window_w=2 with pad_w=3",
                                          "window_w=3 with pad_w=3"};
  const std::vector<std::string> of_tables{"first=2 with vocabulary=0"};
  const std::map<std::string, std::vector<std::string>> expected{
      {"attention",
       {"causal=full with window=3", "causal=full with window=70", "documents with keys_more=3",
        "documents with keys_more=-2"}},
      {"average_pool", of_pools},
      {"batch_norm_relu_backward", {"dy2 with no dr"}},
      {"conv2d_batch_norm", {"no relu with r"}},
      {"cross_entropy", {"no ignores with given_count", "no ignores with labels=0"}},
      {"cross_entropy_parts",
       {"no ignores with given_count", "no ignores with labels=0", "from=2 with elsewhere=0",
        "from=4 with elsewhere=0"}},
      {"embedding", of_tables},
      {"embedding_backward_add", of_tables},
      {"gemm",
       {"beta=1 with epilogue=gelu_gradient", "beta=-1.5 with epilogue=gelu_gradient",
        "bias with epilogue=gelu_gradient"}},
      {"gemm_weight_bias_gradient",
       {"no transpose_a with transpose_b", "no transpose_a with bias_gradient=a", "transpose_b with bias_gradient=b"}},
      {"max_pool", of_pools},
  };
  EXPECT_EQ(refused, expected);
}

TEST(Variants, HaveAtMostSixValuesPerAttribute) {
  for (const Variants& one : all_variants()) {
    for (const Factor& factor : one.factors) EXPECT_LE(factor.values.size(), 6U) << one.name << " " << factor.name;
  }
}

}  // namespace variants_test
}  // namespace gpubench::variants
