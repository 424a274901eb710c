#include "suites/models/mixture.h"

#include <cmath>
#include <optional>

#include "reference/ops/grouped_gemm.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/routing.h"
#include "reference/ops/token_groups.h"
#include "suites/models/latent_attention.h"
#include "suites/models/llama.h"

namespace gpubench::suites {
namespace {

/// x [tokens, h] -> [tokens, h]: each token through k SwiGLU layers of width `hidden` out of `experts`.
ValueId mixture(Layers& layers, const std::string& prefix, ValueId x, const Routing& routing, std::int64_t experts,
                std::int64_t hidden) {
  Program& p = layers.program();
  const Recipe& r = layers.recipe();
  const Shape shape = p.spec(x).shape;
  const std::int64_t h = shape[1], rows = shape[0] * routing.k;
  const ValueId logits = layers.linear(prefix + "router", x, experts, {.transpose_b = true});
  std::optional<ValueId> bias;  // which no gradient trains
  if (routing.bias) bias = p.add(tensor(prefix + "router.bias", r.wide, {experts}, Role::state, Fill::normal(0.0625)));
  const RoutingForward routed = routing_forward(p, routing, r.math, prefix + "routing", logits, bias);
  const TokenGroups groups = group_tokens(p, {.experts = experts}, prefix + "groups", routed.indices);
  const auto grouped = [&](const char* name, ValueId of, std::int64_t n, std::int64_t k) {
    const ValueId w = layers.experts(prefix + name + ".w", {experts, n, k}, 1.0 / std::sqrt(static_cast<double>(k)));
    return grouped_gemm(p, {.transpose_b = true}, r.math, prefix + name, of, w, groups.sizes);
  };
  const ValueId permuted = permute_tokens(p, r.math, prefix + "permuted", x, groups.order);
  const ValueId both = grouped("experts.gate_up", permuted, 2 * hidden, h);
  const ValueId gate = layers.columns_of(prefix + "experts.gate", both, {rows, hidden}, 0);
  const ValueId up = layers.columns_of(prefix + "experts.up", both, {rows, hidden}, hidden);
  const ValueId inner = swiglu_forward(p, r.math, prefix + "experts.swiglu", gate, up);
  const ValueId down = grouped("experts.down", inner, h, hidden);
  return unpermute_tokens(p, r.math, prefix + "unpermuted", down, groups.places, routed.weights);
}

FeedForward mixtral_experts(const Case& c) {
  return [&c](Layers& layers, const std::string& prefix, ValueId x) {
    return mixture(layers, prefix, x, {.k = c.dim("k"), .normalize = true}, c.dim("experts"), c.dim("f"));
  };
}

ValueId deepseek_experts(Layers& layers, const Case& c, ValueId x) {
  const Routing routing{
      .k = c.dim("k"), .scores = Routing::Scores::sigmoid, .normalize = true, .bias = true, .scale = 2.5};
  const ValueId routed = mixture(layers, "", x, routing, c.dim("experts"), c.dim("f"));
  const ValueId shared = layers.swiglu_mlp("shared.", x, c.dim("f"));
  return layers.sum("sum", shared, routed);
}

}  // namespace

Program mixtral_block_step(const Case& c, const Recipe& r) { return llama_block_step(c, r, mixtral_experts(c)); }
Program mixtral_train_step(const Case& c, const Recipe& r) { return llama_train_step(c, r, mixtral_experts(c)); }

Program deepseek_layer_step(const Case& c, const Recipe& r) {
  const auto forward = [&](Layers& layers, ValueId x) {
    return layers.sum("residual", x, deepseek_experts(layers, c, layers.rms_norm("norm", x)));
  };
  return block_step(c, r, token_block(r, c.dim("b") * c.dim("s"), c.dim("h"), forward));
}

Program deepseek_block_step(const Case& c, const Recipe& r) {
  const auto forward = [&](Layers& layers, ValueId x) {
    const LatentAttention sizes(c);
    const RotaryTables tables = layers.rotary_tables(sizes.heads.s, sizes.rope);
    const ValueId attended = latent_attention(layers, "", layers.rms_norm("norm1", x), sizes, tables);
    const ValueId middle = layers.sum("residual1", x, attended);
    return layers.sum("residual2", middle, deepseek_experts(layers, c, layers.rms_norm("norm2", middle)));
  };
  return block_step(c, r, token_block(r, c.dim("b") * c.dim("s"), c.dim("h"), forward));
}

}  // namespace gpubench::suites
