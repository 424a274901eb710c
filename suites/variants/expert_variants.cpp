// Mixtures of experts: routing, grouping, and the products of groups.
#include "reference/ops/grouped_gemm.h"
#include "reference/ops/routing.h"
#include "reference/ops/token_groups.h"
#include "suites/variants/variants.h"

namespace gpubench::variants {
namespace {

constexpr std::int64_t tokens = 9;

void build_routing(VariantBuild& call) {
  const auto& attributes = call.attributes<Routing>();
  const ValueId logits = call.in("logits", {tokens, call.n}, Fill::normal(2.0));
  std::optional<ValueId> bias;
  if (attributes.bias) bias = call.wide("bias", {call.n});
  call.y = {routing_forward(call.p, attributes, call.r.math, call.label, logits, bias).weights};
  call.wanted = {logits};
}

/// A layer of experts on tokens [9, n] whose choice is given: grouped, multiplied, weighted and summed up.
void build_experts(VariantBuild& call) {
  Program& p = call.p;
  const Math& math = call.r.math;
  const auto& grouping = call.attributes<TokenGrouping>();
  const std::int64_t k = 3, h = call.n, width = call.n - 2, all_experts = grouping.experts + 2 * grouping.first;
  const bool transposed = call.other("transpose_b") != 0, weighted_before = call.other("weighted_before") != 0;
  const ValueId indices = call.integers("indices", {tokens, k}, 0, all_experts - 1);
  const ValueId weights = call.wide("weights", {tokens, k}), x = call.in("x", {tokens, h});
  const ValueId w = call.in("w", transposed ? Shape{grouping.experts, width, h} : Shape{grouping.experts, h, width},
                            Fill::normal(0.25));
  const TokenGroups groups = group_tokens(p, grouping, call.label, indices);
  const auto given = [&](bool here) { return here ? std::optional(weights) : std::nullopt; };
  const ValueId sorted = permute_tokens(p, math, call.label + ".permute", x, groups.order, given(weighted_before));
  const ValueId made = grouped_gemm(p, {transposed}, math, call.label + ".gemm", sorted, w, groups.sizes);
  call.y = {unpermute_tokens(p, math, call.label + ".unpermute", made, groups.places, given(!weighted_before))};
  call.wanted = {x, w, weights};
}

}  // namespace

std::vector<Variants> expert_variants() {
  return {
      {"routing",
       routing_forward_kind,
       {{"k", {1, 2, 5}}, {"scores"}, {"normalize"}, {"bias"}, {"scale", {1.0, 2.5}}},
       build_routing},
      {"experts",
       group_tokens_kind,
       {{"experts", {6, 3}}, {"first", {0, 2}}, {"transpose_b", {0, 1}}, {"weighted_before", {0, 1}}},
       build_experts,
       suites::training_recipes()},
  };
}

}  // namespace gpubench::variants
