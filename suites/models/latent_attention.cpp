#include "suites/models/latent_attention.h"

#include "reference/ops/move.h"

namespace gpubench::suites {
namespace {

constexpr Rotary neighbours{.pairing = Rotary::Pairing::interleaved};  // as DeepSeek's own code pairs them

}  // namespace

LatentAttention::LatentAttention(const Case& c)
    : heads{c.dim("b"), c.dim("s"), c.dim("heads")},
      q_rank(c.dim("q_rank")),
      kv_rank(c.dim("kv_rank")),
      nope(c.dim("nope")),
      rope(c.dim("rope")),
      v(c.dim("v")) {}

ValueId latent_attention(Layers& layers, const std::string& prefix, ValueId x, const LatentAttention& sizes,
                         const RotaryTables& tables) {
  Program& p = layers.program();
  const Math& math = layers.recipe().math;
  const std::int64_t b = sizes.heads.b, s = sizes.heads.s, heads = sizes.heads.heads;
  const auto nope = sizes.nope, rope = sizes.rope, d = nope + rope;
  const Shape without{b, s, heads, nope}, with{b, s, heads, rope};
  // Queries and keys [b, s, heads, nope + rope], of which `unturned` is the first part; the other is returned.
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

}  // namespace gpubench::suites
