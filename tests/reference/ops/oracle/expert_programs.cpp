// Softmax and what mixtures of experts are made of, for the oracle.
#include <optional>
#include <string>

#include "reference/ops/grouped_gemm.h"
#include "reference/ops/routing.h"
#include "reference/ops/softmax.h"
#include "reference/ops/token_groups.h"
#include "tests/reference/ops/oracle/programs.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace {

ValueId experts_data(Program& p, const std::string& name, const Shape& shape, double scale = 1.0) {
  return p.add(tensor(name, DType::f32, shape, Role::input, Fill::normal(scale)));
}

// A layer of experts: routed, grouped, multiplied, weighted and summed up.
void add_mixture(OraclePrograms& all, const std::string& name, const Routing& routing, const TokenGrouping& grouping,
                 bool transpose_b, bool weighted_before) {
  add_differentiated(all, "mixture " + name, [&](Program& p) -> OracleForward {
    constexpr std::int64_t tokens = 9, h = 5, n = 4;
    const std::int64_t all_experts = grouping.experts + 2 * grouping.first;
    const ValueId logits = experts_data(p, "logits", {tokens, all_experts}, 2.0), x = experts_data(p, "x", {tokens, h});
    std::optional<ValueId> bias;
    if (routing.bias) bias = experts_data(p, "bias", {all_experts});
    const RoutingForward routed = routing_forward(p, routing, f32_math, "routing", logits, bias);
    const TokenGroups groups = group_tokens(p, grouping, "groups", routed.indices);
    const std::optional<ValueId> weights = routed.weights;
    const ValueId rows = permute_tokens(p, f32_math, "rows", x, groups.order, weighted_before ? weights : std::nullopt);
    const ValueId w = experts_data(p, "w", transpose_b ? Shape{grouping.experts, n, h} : Shape{grouping.experts, h, n});
    const ValueId made = grouped_gemm(p, {transpose_b}, f32_math, "made", rows, w, groups.sizes);
    const ValueId y = unpermute_tokens(p, f32_math, "y", made, groups.places, weighted_before ? std::nullopt : weights);
    return {{y}, {logits, x, w}};
  });
}

}  // namespace

void add_expert_programs(OraclePrograms& all) {
  for (const Shape& shape : {Shape{3, 7}, Shape{2, 3, 5}, Shape{4, 1}}) {
    add_differentiated(all, "softmax " + shape.to_string(), [&](Program& p) -> OracleForward {
      const ValueId x = experts_data(p, "x", shape, 2.0);
      return {{softmax_forward(p, f32_math, "y", x)}, {x}};
    });
  }
  using Scores = Routing::Scores;
  add_mixture(all, "as Switch", {.k = 1}, {.experts = 4}, false, false);
  add_mixture(all, "as Mixtral", {.k = 2, .normalize = true}, {.experts = 6}, true, false);
  add_mixture(all, "as DeepSeek-V3", {.k = 3, .scores = Scores::sigmoid, .normalize = true, .bias = true, .scale = 2.5},
              {.experts = 8}, true, true);
  add_mixture(all, "of sigmoids, experts of one rank", {.k = 4, .scores = Scores::sigmoid}, {.experts = 3, .first = 2},
              false, true);
}

}  // namespace gpubench::testing
