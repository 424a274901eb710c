// Suite attention: scaled dot-product attention of real models, forward and backward, causal and full, grouped-query.
#include "reference/ops/attention.h"

#include <array>
#include <cmath>

#include "suites/suites.h"

namespace gpubench::suites {
namespace {

std::vector<std::string> attention_recipes() { return {"f32", "bf16", "f16"}; }

Point point(std::int64_t b, std::int64_t h, std::int64_t kv, std::int64_t s, std::int64_t d, std::string label,
            Tier tier) {
  return {{{"b", b}, {"h", h}, {"kv", kv}, {"s", s}, {"d", d}}, std::move(label), tier};
}

// 16384 tokens of width 2048 in shorter and longer sequences, the comparison of FlashAttention-2 (Dao, arXiv
// 2307.08691).
void add_sweep(Grid& grid) {
  for (const std::int64_t d : {64, 128}) {
    for (const std::int64_t s : {512, 1024, 2048, 4096, 8192, 16384}) {
      const bool typical = d == 128 && (s == 2048 || s == 8192);
      grid.points.push_back(point(16384 / s, 2048 / d, 2048 / d, s, d, "flash-attention sweep, 16 Ki tokens",
                                  typical ? Tier::standard : Tier::large));
    }
  }
}

Grid causal_grid() {
  Grid grid;
  grid.recipes = attention_recipes();
  grid.points = {
      point(1, 4, 4, 256, 64, "gpt2-124m, a third of its heads", Tier::smoke),
      point(1, 8, 2, 128, 128, "llama3-8b, a quarter of its heads", Tier::smoke),
      point(1, 12, 12, 1024, 64, "gpt2-124m", Tier::quick),
      point(1, 8, 2, 1024, 128, "llama3-8b, a quarter of its heads", Tier::quick),
      point(1, 2, 1, 129, 64, "edge: odd length", Tier::quick),
      point(4, 12, 12, 1024, 64, "gpt2-124m", Tier::standard),
      point(1, 32, 32, 4096, 128, "llama2-7b", Tier::standard),
      point(1, 32, 8, 8192, 128, "llama3-8b", Tier::standard),
      point(1, 96, 96, 2048, 128, "gpt3-175b", Tier::standard),
      point(1, 64, 8, 4096, 128, "llama2-70b", Tier::standard),
      point(1, 32, 32, 2048, 96, "phi-3", Tier::standard),
      point(1, 64, 8, 8192, 128, "llama3-70b", Tier::large),
      point(1, 48, 8, 4096, 128, "mixtral-8x22b", Tier::large),
  };
  add_sweep(grid);
  return grid;
}

Grid full_grid() {
  Grid grid;
  grid.recipes = attention_recipes();
  grid.points = {
      point(4, 16, 16, 384, 64, "bert-large", Tier::quick),
      point(32, 16, 16, 512, 64, "bert-large", Tier::standard),
  };
  add_sweep(grid);
  return grid;
}

// q, k, v as parts of one packed projection [tokens, (h + 2 kv) d], as a fused qkv layer leaves them.
std::array<ValueId, 3> packed_qkv(Program& p, const Case& c, const Recipe& r) {
  const auto b = c.dim("b"), s = c.dim("s"), h = c.dim("h"), kv = c.dim("kv"), d = c.dim("d");
  const std::int64_t width = (h + 2 * kv) * d;
  const ValueId qkv = p.add(tensor("qkv", r.tensor, {b * s, width}, Role::input, Fill::normal(1.0)));
  const auto part = [&](const char* name, std::int64_t heads, std::int64_t first) {
    TensorSpec spec = tensor(name, r.tensor, {b, s, heads, d}, Role::input);
    spec.layout.strides = {s * width, width, d, 1};
    return p.part(qkv, spec, first);
  };
  return {part("q", h, 0), part("k", kv, h * d), part("v", kv, (h + kv) * d)};
}

Attention attributes(const Case& c, bool causal) { return {causal, 1.0 / std::sqrt(static_cast<double>(c.dim("d")))}; }

Program attention_step_forward(const Case& c, const Recipe& r, bool causal) {
  Program p;
  const auto [q, k, v] = packed_qkv(p, c, r);
  attention_forward(p, attributes(c, causal), r.math, "attention", q, k, v);
  return p;
}

// The backward reads what a forward saved; that forward is set-up, checked but not timed.
Program attention_step_backward(const Case& c, const Recipe& r, bool causal) {
  Program p;
  const auto [q, k, v] = packed_qkv(p, c, r);
  p.begin(Phase::setup);
  const AttentionForward saved = attention_forward(p, attributes(c, causal), r.math, "attention", q, k, v);
  p.begin(Phase::timed);
  const ValueId d_o = p.add(tensor("do", r.tensor, p.spec(saved.o).shape, Role::gradient, Fill::normal(1.0)));
  attention_backward(p, attributes(c, causal), r.math, "attention.backward", d_o, q, k, v, saved.o, saved.lse);
  return p;
}

std::shared_ptr<const Workload> attention_workload(std::string name, std::string description, Grid grid, bool causal,
                                                   Program (*build)(const Case&, const Recipe&, bool)) {
  return declare({{std::move(name), std::move(description), "b", PrimaryMetric::flop_per_s, "tokens", CacheMode::cold},
                  std::move(grid),
                  [=](const Case& c, const Recipe& r) { return build(c, r, causal); },
                  [](const Case& c) { return static_cast<double>(c.dim("b") * c.dim("s")); }});
}

}  // namespace

Suite attention() {
  return {
      "attention",
      "scaled dot-product attention, forward and backward, with its log-sum-exp",
      {
          attention_workload("causal_forward", "causal self-attention from packed qkv", causal_grid(), true,
                             attention_step_forward),
          attention_workload("causal_backward", "its gradients dq, dk, dv", causal_grid(), true,
                             attention_step_backward),
          attention_workload("full_forward", "unmasked self-attention from packed qkv", full_grid(), false,
                             attention_step_forward),
          attention_workload("full_backward", "its gradients dq, dk, dv", full_grid(), false, attention_step_backward),
      }};
}

}  // namespace gpubench::suites
