// Suite moe: mixtures of experts: routing, token permutation, grouped products, blocks and a small model. A routing op
// assigns tokens to experts before timing, from random logits: evenly, or with skew=1 by biases of 1/8, which make some
// experts several times as popular.
#include <cmath>
#include <optional>

#include "reference/ops/grouped_gemm.h"
#include "reference/ops/routing.h"
#include "reference/ops/token_groups.h"
#include "suites/models/models.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

double tokens_of(const Case& c) { return static_cast<double>(c.dim("t")); }

std::shared_ptr<const Workload> per_token(std::string name, std::string description, PrimaryMetric metric, Grid grid,
                                          Program (*build)(const Case&, const Recipe&)) {
  return declare({{std::move(name), std::move(description), "t", metric, "tokens", CacheMode::cold},
                  std::move(grid),
                  build,
                  tokens_of});
}

// Routing. Mixtral 8x7B (arXiv 2401.04088), Qwen3-30B-A3B (arXiv 2505.09388), OLMoE-1B-7B (arXiv 2409.02060),
// DeepSeek-V3 (arXiv 2412.19437).

Point routed(std::int64_t t, std::int64_t experts, std::int64_t k, std::string label, Tier tier,
             std::vector<std::string> recipes = {}) {
  return {{{"t", t}, {"experts", experts}, {"k", k}}, std::move(label), tier, std::move(recipes)};
}

Grid normalized_routers() {
  return grid_of(
      {routed(256, 8, 2, "mixtral-8x7b", Tier::smoke, {"f32"}), routed(2048, 128, 8, "qwen3-30b-a3b", Tier::quick),
       routed(8192, 8, 2, "mixtral-8x7b", Tier::standard), routed(8192, 128, 8, "qwen3-30b-a3b", Tier::standard),
       routed(65536, 128, 8, "qwen3-30b-a3b", Tier::large)});
}
Grid plain_routers() {
  return grid_of({routed(2048, 64, 8, "olmoe-1b-7b", Tier::quick, {"f32"}),
                  routed(8192, 64, 8, "olmoe-1b-7b", Tier::standard),
                  routed(65536, 64, 8, "olmoe-1b-7b", Tier::large)});
}
Grid sigmoid_routers() {
  return grid_of({routed(256, 64, 8, "deepseek-v3, a quarter of its experts", Tier::smoke, {"f32"}),
                  routed(2048, 256, 8, "deepseek-v3", Tier::quick, {"bf16"}),
                  routed(8192, 256, 8, "deepseek-v3", Tier::standard),
                  routed(65536, 256, 8, "deepseek-v3", Tier::large)});
}

enum class Router { normalized, plain, sigmoid };

template <Router router>
Forward routing(Program& p, const Case& c, const Recipe& r) {
  const ValueId logits =
      p.add(tensor("logits", r.tensor, {c.dim("t"), c.dim("experts")}, Role::activation, Fill::normal(1.0)));
  Routing attributes{.k = c.dim("k"), .normalize = router != Router::plain};
  std::optional<ValueId> bias;
  if (router == Router::sigmoid) {
    attributes.scores = Routing::Scores::sigmoid;
    attributes.bias = true;
    attributes.scale = 2.5;
    bias = p.add(tensor("bias", r.wide, {c.dim("experts")}, Role::state, Fill::normal(0.0625)));
  }
  return {routing_forward(p, attributes, r.math, "routing", logits, bias).weights, {logits}};
}

Grid moved_tokens() {
  const auto moved = [](std::int64_t t, std::int64_t experts, std::int64_t k, std::int64_t h, std::string label,
                        Tier tier, std::vector<std::string> recipes = {}) {
    return Point{{{"t", t}, {"experts", experts}, {"k", k}, {"h", h}}, std::move(label), tier, std::move(recipes)};
  };
  return grid_of({moved(64, 8, 2, 1024, "mixtral-8x7b, a quarter of its width", Tier::smoke, {"f32"}),
                  moved(512, 128, 8, 2048, "qwen3-30b-a3b", Tier::quick, {"bf16"}),
                  moved(33, 5, 3, 77, "edge: rows that fill no pack", Tier::standard),
                  moved(4096, 8, 2, 4096, "mixtral-8x7b", Tier::standard),
                  moved(4096, 128, 8, 2048, "qwen3-30b-a3b, olmoe-1b-7b", Tier::standard),
                  moved(4096, 256, 8, 7168, "deepseek-v3", Tier::standard),
                  moved(16384, 256, 8, 7168, "deepseek-v3", Tier::large)});
}

struct Routed {
  TokenGroups groups;
  ValueId weights;
};

/// The experts of `tokens` tokens, by set-up ops.
Routed route(Program& p, const Recipe& r, std::int64_t tokens, std::int64_t experts, std::int64_t k, bool skewed) {
  p.begin(Phase::setup);
  const ValueId logits = p.add(tensor("logits", r.tensor, {tokens, experts}, Role::activation, Fill::normal(1.0)));
  Routing attributes{.k = k, .normalize = true};
  std::optional<ValueId> bias;
  if (skewed) {
    attributes.scores = Routing::Scores::sigmoid;
    attributes.bias = true;
    bias = p.add(tensor("bias", r.wide, {experts}, Role::state, Fill::normal(0.125)));
  }
  const RoutingForward routing = routing_forward(p, attributes, r.math, "routing", logits, bias);
  return {group_tokens(p, {.experts = experts}, "groups", routing.indices), routing.weights};
}

Routed route(Program& p, const Case& c, const Recipe& r) {
  return route(p, r, c.dim("t"), c.dim("experts"), c.dim("k"), false);
}

Program group(const Case& c, const Recipe& r) {
  Program p;
  p.begin(Phase::setup);
  const ValueId logits =
      p.add(tensor("logits", r.tensor, {c.dim("t"), c.dim("experts")}, Role::activation, Fill::normal(1.0)));
  const ValueId indices = routing_forward(p, {.k = c.dim("k")}, r.math, "routing", logits).indices;
  p.begin(Phase::timed);
  group_tokens(p, {.experts = c.dim("experts")}, "groups", indices);
  return p;
}

/// Appends set-up ops that route, and then the op in `phase`.
using BuildRouted = Forward (*)(Program&, const Case&, const Recipe&, Phase phase);

Forward permute(Program& p, const Case& c, const Recipe& r, Phase phase) {
  const ValueId order = route(p, c, r).groups.order;
  p.begin(phase);
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("t"), c.dim("h")}, Role::activation, Fill::normal(1.0)));
  return {permute_tokens(p, r.math, "permuted", x, order), {x}};
}

Forward unpermute(Program& p, const Case& c, const Recipe& r, Phase phase) {
  const Routed routed = route(p, c, r);
  p.begin(phase);
  const Shape rows{c.dim("t") * c.dim("k"), c.dim("h")};
  const ValueId x = p.add(tensor("x", r.tensor, rows, Role::activation, Fill::normal(1.0)));
  return {unpermute_tokens(p, r.math, "unpermuted", x, routed.groups.places, routed.weights), {x, routed.weights}};
}

template <BuildRouted build>
Program routed_forward(const Case& c, const Recipe& r) {
  Program p;
  build(p, c, r, Phase::timed);
  return p;
}
template <BuildRouted build>
Program routed_backward(const Case& c, const Recipe& r) {
  return backward_of([&](Program& p) { return build(p, c, r, Phase::setup); });
}

// Products: t tokens to k experts each, so t k rows, [inputs] to [outputs]. "gate+up" is both halves of SwiGLU in one.
// For models with expert parallelism: one rank's experts, and the tokens sent to them.

Grid grouped_products() {
  const auto product = [](std::int64_t t, std::int64_t experts, std::int64_t k, std::int64_t inputs,
                          std::int64_t outputs, bool skewed, std::string label, Tier tier,
                          std::vector<std::string> recipes = {}) {
    return Point{{{"t", t}, {"experts", experts}, {"k", k}, {"n", outputs}, {"h", inputs}, {"skew", skewed ? 1 : 0}},
                 std::move(label),
                 tier,
                 std::move(recipes)};
  };
  return grid_of({
      product(64, 8, 2, 256, 384, true, "qwen3-30b-a3b gate+up, small", Tier::smoke),
      product(128, 8, 2, 2048, 1536, false, "qwen3-30b-a3b gate+up, 8 of its experts", Tier::standard),
      product(128, 8, 2, 2048, 1536, true, "qwen3-30b-a3b gate+up, 8 of its experts, skewed", Tier::quick),
      product(96, 16, 2, 1024, 2048, true, "olmoe-1b-7b down, 16 of its experts", Tier::standard),
      product(4096, 8, 2, 4096, 28672, false, "mixtral-8x7b gate+up", Tier::standard),
      product(4096, 8, 2, 14336, 4096, true, "mixtral-8x7b down", Tier::standard),
      product(4096, 64, 8, 2048, 2048, true, "olmoe-1b-7b gate+up", Tier::standard),
      product(4096, 128, 8, 2048, 1536, false, "qwen3-30b-a3b gate+up", Tier::standard),
      product(4096, 128, 8, 2048, 1536, true, "qwen3-30b-a3b gate+up", Tier::standard),
      product(4096, 128, 8, 768, 2048, true, "qwen3-30b-a3b down", Tier::standard),
      product(8192, 8, 4, 7168, 4096, true, "deepseek-v3 gate+up, 8 experts of a rank", Tier::standard),
      product(8192, 8, 4, 2048, 7168, true, "deepseek-v3 down, 8 experts of a rank", Tier::standard),
      product(32768, 8, 2, 4096, 28672, true, "mixtral-8x7b gate+up", Tier::large),
      product(8192, 32, 8, 7168, 4096, true, "deepseek-v3 gate+up, 32 experts of a rank", Tier::large),
  });
}

enum class Wanted { y, data, weight };

template <Wanted wanted>
Forward grouped(Program& p, const Case& c, const Recipe& r, Phase phase) {
  const auto inputs = c.dim("h"), outputs = c.dim("n"), experts = c.dim("experts"), rows = c.dim("t") * c.dim("k");
  const ValueId sizes = route(p, r, c.dim("t"), experts, c.dim("k"), c.dim("skew") == 1).groups.sizes;
  p.begin(phase);
  const ValueId x = p.add(tensor("x", r.tensor, {rows, inputs}, Role::activation, Fill::normal(1.0)));
  const ValueId w = p.add(tensor("w", r.tensor, {experts, outputs, inputs}, Role::parameter,
                                 Fill::normal(1.0 / std::sqrt(static_cast<double>(inputs)))));
  return {grouped_gemm(p, {.transpose_b = true}, r.math, "y", x, w, sizes), {wanted == Wanted::weight ? w : x}};
}

Grid mixtral_blocks() {
  const auto point = [](std::int64_t s, std::int64_t h, std::int64_t heads, std::int64_t kv, std::int64_t f,
                        std::string label, Tier tier) {
    return Point{{{"b", 1}, {"s", s}, {"h", h}, {"heads", heads}, {"kv", kv}, {"f", f}, {"experts", 8}, {"k", 2}},
                 std::move(label),
                 tier};
  };
  return grid_of({point(256, 512, 4, 2, 448, "mixtral-8x7b block, an eighth of its width, narrow experts", Tier::quick),
                  point(4096, 4096, 32, 8, 14336, "mixtral-8x7b block", Tier::standard)});
}

Grid mixtral_models() {
  const auto point = [](std::int64_t b, std::int64_t s, std::int64_t layers, std::int64_t h, std::int64_t heads,
                        std::int64_t kv, std::int64_t f, std::int64_t experts, std::int64_t vocab, std::string label,
                        Tier tier) {
    return Point{{{"b", b},
                  {"s", s},
                  {"layers", layers},
                  {"h", h},
                  {"heads", heads},
                  {"kv", kv},
                  {"f", f},
                  {"experts", experts},
                  {"k", 2},
                  {"vocab", vocab}},
                 std::move(label),
                 tier};
  };
  return grid_of({point(2, 64, 2, 128, 4, 2, 96, 4, 512, "mixtral-8x7b, 2 small layers of 4 experts", Tier::smoke),
                  point(4, 2048, 12, 1024, 16, 4, 1792, 8, 32000, "mixtral-8x7b, 12 layers, a quarter of its width",
                        Tier::standard)});
}

Grid deepseek_layers() {
  const auto point = [](std::int64_t s, std::int64_t h, std::int64_t f, std::int64_t experts, std::int64_t k,
                        std::string label, Tier tier) {
    return Point{{{"b", 1}, {"s", s}, {"h", h}, {"f", f}, {"experts", experts}, {"k", k}}, std::move(label), tier};
  };
  return grid_of({point(128, 512, 256, 16, 4, "deepseek-v3 layer, small", Tier::quick),
                  point(4096, 7168, 2048, 16, 4, "deepseek-v3 layer, 16 of its experts", Tier::standard)});
}

Grid deepseek_blocks() {
  const auto point = [](std::int64_t s, std::int64_t h, std::int64_t heads, std::int64_t q_rank, std::int64_t kv_rank,
                        std::int64_t f, std::int64_t experts, std::int64_t k, std::string label, Tier tier) {
    return Point{{{"b", 1},
                  {"s", s},
                  {"h", h},
                  {"heads", heads},
                  {"q_rank", q_rank},
                  {"kv_rank", kv_rank},
                  {"nope", 128},
                  {"rope", 64},
                  {"v", 128},
                  {"f", f},
                  {"experts", experts},
                  {"k", k}},
                 std::move(label),
                 tier};
  };
  return grid_of(
      {point(256, 512, 8, 192, 128, 256, 16, 4, "deepseek-v3 block, small", Tier::quick),
       point(4096, 7168, 128, 1536, 512, 2048, 16, 4, "deepseek-v3 block, 16 of its experts", Tier::standard)});
}

}  // namespace

Suite moe() {
  constexpr auto bytes = PrimaryMetric::bytes_per_s, flop = PrimaryMetric::flop_per_s;
  const auto normalized = normalized_routers(), plain = plain_routers(), sigmoid = sigmoid_routers();
  return {"moe",
          "mixtures of experts: routing, moves of tokens, grouped products, blocks and a whole model",
          {
              per_token("routing_forward", "the k largest of a softmax, their weights normalized", bytes, normalized,
                        forward<routing<Router::normalized>>),
              per_token("routing_backward", "its gradient", bytes, normalized, backward<routing<Router::normalized>>),
              per_token("plain_routing_forward", "the same with the softmax as weights", bytes, plain,
                        forward<routing<Router::plain>>),
              per_token("plain_routing_backward", "its gradient", bytes, plain, backward<routing<Router::plain>>),
              per_token("sigmoid_routing_forward", "the k largest of biased sigmoids, their weights normalized", bytes,
                        sigmoid, forward<routing<Router::sigmoid>>),
              per_token("sigmoid_routing_backward", "its gradient", bytes, sigmoid, backward<routing<Router::sigmoid>>),
              per_token("group_tokens", "tokens sorted by expert, and how many each has", bytes, normalized, group),
              per_token("permute_forward", "rows of tokens to the places of their experts", bytes, moved_tokens(),
                        routed_forward<permute>),
              per_token("permute_backward", "its gradient: a token's rows summed", bytes, moved_tokens(),
                        routed_backward<permute>),
              per_token("unpermute_forward", "a token's rows back, weighted and summed", bytes, moved_tokens(),
                        routed_forward<unpermute>),
              per_token("unpermute_backward", "the gradients of rows and weights", bytes, moved_tokens(),
                        routed_backward<unpermute>),
              per_token("grouped_gemm_forward", "every expert's rows times its weight", flop, grouped_products(),
                        routed_forward<grouped<Wanted::y>>),
              per_token("grouped_gemm_backward_data", "the gradient of the rows", flop, grouped_products(),
                        routed_backward<grouped<Wanted::data>>),
              per_token("grouped_gemm_backward_weight", "the gradient of every expert's weight", flop,
                        grouped_products(), routed_backward<grouped<Wanted::weight>>),
              declare_step("mixtral_block", "one Mixtral block: forward, backward, AdamW step", "tokens", {"b", "s"},
                           mixtral_blocks(), mixtral_block_step, {.tensors = true, .experts = true, .sequences = true}),
              declare_step("deepseek_layer", "one DeepSeek-V3 layer of experts: forward, backward, AdamW step",
                           "tokens", {"b", "s"}, deepseek_layers(), deepseek_layer_step, {.experts = true}),
              declare_step("deepseek_block", "one block of DeepSeek-V3: forward, backward, AdamW step", "tokens",
                           {"b", "s"}, deepseek_blocks(), deepseek_block_step, {.experts = true, .sequences = true}),
              declare_step("mixtral_train_step", "a whole Mixtral training step: embedding to AdamW", "tokens",
                           {"b", "s"}, mixtral_models(), mixtral_train_step,
                           {.tensors = true, .experts = true, .sequences = true, .blocks = true}),
          }};
}

}  // namespace gpubench::suites
