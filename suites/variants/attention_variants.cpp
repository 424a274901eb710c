// Attention, and the rotation of its queries and keys.
#include "reference/ops/attention.h"
#include "reference/ops/rotary.h"
#include "suites/variants/variants.h"

namespace gpubench::variants {
namespace {

constexpr std::int64_t width = 5;

void build_attention(VariantBuild& call) {
  const auto& attributes = call.attributes<Attention>();
  const std::int64_t b = 3, s = call.n, t = call.n + call.other("keys_more"), kv = call.other("kv_heads"),
                     heads = kv * call.other("query_heads_each");
  const ValueId q = call.in("q", {b, s, heads, width}), k = call.in("k", {b, t, kv, width});
  const ValueId v = call.in("v", {b, t, kv, width + call.other("values_wider")});
  call.wanted = {q, k, v};
  AttentionOptions options;
  if (attributes.sinks) call.wanted.push_back(*(options.sinks = call.wide("sinks", {heads})));
  if (attributes.documents) options.documents = call.source("documents", DType::i32, {b, 4}, Fill::boundaries(s));
  call.y = {attention_forward(call.p, attributes, call.r.math, call.label, q, k, v, options).o};
}

void build_merge(VariantBuild& call) {
  const auto part = [&](const std::string& name) {
    return AttentionForward{call.in(name + ".o", {3, call.n, 5, width + 1}),
                            call.wide(name + ".lse", {3, 5, call.n}, Fill::normal(4.0))};
  };
  const AttentionForward one = part("one");
  (void)attention_merge(call.p, call.r.math, call.label, one, part("other"));
}

void build_rotary(VariantBuild& call) {
  const Shape whole{3, call.n, 3, 10};
  const ValueId cos = call.wide("cos", {call.n, 3}, Fill::normal(0.5)),
                sin = call.wide("sin", {call.n, 3}, Fill::normal(0.5));
  ValueId x = call.in("x", call.other("part") != 0 ? whole : Shape{3, call.n, 3, 6});
  if (call.other("part") != 0) {
    TensorSpec spec = tensor(call.label + ".part", call.r.tensor, {3, call.n, 3, 6}, Role::activation);
    spec.layout = Layout::row_major(whole);
    x = call.p.part(x, spec, 4);
  }
  call.wanted = {x};
  call.y = {rotary(call.p, call.attributes<Rotary>(), call.r.math, call.label, x, {cos, sin})};
}

}  // namespace

std::vector<Variants> attention_variants() {
  return {
      {"attention",
       attention_forward_kind,
       {{"causal"},
        {"scale", {0.5, 0.125}},
        {"window", {0, 3, 70}},
        {"softcap", {0.0, 1.5}},
        {"sinks"},
        {"documents"},
        {"keys_more", {0, 3, -2}},
        {"kv_heads", {3, 1}},
        {"query_heads_each", {2, 1}},
        {"values_wider", {0, 3}}},
       build_attention,
       suites::training_recipes()},
      {"attention_merge", attention_merge_kind, {}, build_merge},
      {"rotary", rotary_kind, {{"pairing"}, {"inverse"}, {"part", {0, 1}}}, build_rotary},
  };
}

}  // namespace gpubench::variants
