#include "suites/models/models.h"

#include <cmath>
#include <optional>

#include "reference/ops/grouped_gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/routing.h"
#include "reference/ops/token_groups.h"

namespace gpubench::suites {
namespace {

/// x [tokens, h] -> [tokens, h]: each token through k of `experts` SwiGLU layers of width `hidden`.
ValueId mixture(Layers& layers, const std::string& prefix, ValueId x, const Routing& routing, std::int64_t experts,
                std::int64_t hidden) {
  Program& p = layers.program();
  const Recipe& r = layers.recipe();
  const Shape shape = p.spec(x).shape;
  const std::int64_t h = shape[1], rows = shape[0] * routing.k;
  const ValueId logits = layers.linear(prefix + "router", x, experts, {.transpose_b = true});
  std::optional<ValueId> bias;  // not trained by a gradient
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

// Multi-head latent attention of DeepSeek-V2 and -V3 (arXiv 2405.04434, 2.1; arXiv 2412.19437, 2.1.1): queries, keys
// and values come from low-rank latents; extra elements of queries and keys encode positions.

constexpr Rotary neighbours{.pairing = Rotary::Pairing::interleaved};  // as in DeepSeek's code

/// q_rank, kv_rank: ranks of the latents; nope, rope: elements of a query or key without and with rotation; v: elements
/// of a value.
struct LatentAttention {
  Heads heads;
  std::int64_t q_rank, kv_rank, nope, rope, v;
  explicit LatentAttention(const Case& c)
      : heads{c.dim("b"), c.dim("s"), c.dim("heads")},
        q_rank(c.dim("q_rank")),
        kv_rank(c.dim("kv_rank")),
        nope(c.dim("nope")),
        rope(c.dim("rope")),
        v(c.dim("v")) {}
};

/// x [b s, h] -> [b s, h], causal. All heads share one rotated key; `tables`: of `rope` elements.
ValueId latent_attention(Layers& layers, const std::string& prefix, ValueId x, const LatentAttention& sizes,
                         const RotaryTables& tables) {
  Program& p = layers.program();
  const Math& math = layers.recipe().math;
  const std::int64_t b = sizes.heads.b, s = sizes.heads.s, heads = sizes.heads.heads;
  const auto nope = sizes.nope, rope = sizes.rope, d = nope + rope;
  const Shape without{b, s, heads, nope}, with{b, s, heads, rope};
  // Queries or keys [b, s, heads, nope + rope] whose first part is `unturned`, and their other part, yet to be written.
  const auto joined = [&](const std::string& name, ValueId unturned) {
    const ValueId whole = p.reserve(tensor(name, p.spec(x).dtype, {b * s, heads * d}, Role::activation));
    reorder_into(p, name + ".place", unturned, layers.columns_of(name + ".nope", whole, without, 0, d));
    return std::pair{layers.reshaped(name + ".heads", whole, {b, s, heads, d}),
                     layers.columns_of(name + ".rope", whole, with, nope, d)};
  };

  const ValueId q_latent = layers.rms_norm(prefix + "q_norm", layers.linear(prefix + "q_a", x, sizes.q_rank, no_bias));
  const ValueId q = layers.linear(prefix + "q_b", q_latent, heads * d, no_bias);
  const ValueId kv_a = layers.linear(prefix + "kv_a", x, sizes.kv_rank + rope, no_bias);
  const ValueId latent = layers.columns_of(prefix + "kv_latent", kv_a, {b * s, sizes.kv_rank}, 0);
  const ValueId shared = layers.columns_of(prefix + "k_rope", kv_a, {b, s, 1, rope}, sizes.kv_rank);
  const std::int64_t per_head = nope + sizes.v;
  const ValueId kv =
      layers.linear(prefix + "kv_b", layers.rms_norm(prefix + "kv_norm", latent), heads * per_head, no_bias);
  const ValueId v = layers.columns_of(prefix + "v", kv, {b, s, heads, sizes.v}, nope, per_head);

  const auto [query, query_rope] = joined(prefix + "query", layers.columns_of(prefix + "q_nope", q, without, 0, d));
  rotary(p, neighbours, math, prefix + "rotary_q", layers.columns_of(prefix + "q_rope", q, with, nope, d), tables,
         query_rope);
  const auto [key, key_rope] = joined(prefix + "key", layers.columns_of(prefix + "k_nope", kv, without, 0, per_head));
  const ValueId turned = rotary(p, neighbours, math, prefix + "rotary_k", shared, tables);
  repeat_rows_into(p, math, prefix + "key.repeat", turned, key_rope);
  return layers.linear(prefix + "attention_out", layers.attention(prefix, query, key, v, /*causal=*/true),
                       p.spec(x).shape[1], no_bias);
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
