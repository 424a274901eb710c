// Suite attention: scaled dot-product attention of real models, forward and backward: causal and full, grouped-query,
// sliding windows, softcap, sinks, packed documents, and other numbers of keys than of queries.
#include "reference/ops/attention.h"

#include <algorithm>
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

// 16384 tokens of width 2048 at several sequence lengths, as FlashAttention-2 compares (Dao, arXiv 2307.08691).
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

// q, k, v as parts of one packed projection [tokens, (h + 2 kv) d], the output of a fused qkv layer.
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

template <bool causal>
Program self_attention_forward(const Case& c, const Recipe& r) {
  Program p;
  const auto [q, k, v] = packed_qkv(p, c, r);
  attention_forward(p, attributes(c, causal), r.math, "attention", q, k, v);
  return p;
}

template <bool causal>
Program self_attention_backward(const Case& c, const Recipe& r) {
  Program p;
  const auto [q, k, v] = packed_qkv(p, c, r);
  p.begin(Phase::setup);
  const AttentionForward saved = attention_forward(p, attributes(c, causal), r.math, "attention", q, k, v);
  p.begin(Phase::timed);
  const ValueId d_o = p.add(tensor("do", r.tensor, p.spec(saved.o).shape, Role::gradient, Fill::normal(1.0)));
  attention_backward(p, attributes(c, causal), r.math, "attention.backward", d_o, q, k, v, saved.o, saved.lse);
  return p;
}

// A point with further dimensions; one recipe suffices in tier smoke.
Point variant(Point of, const Dims& further) {
  of.dims.insert(of.dims.end(), further.begin(), further.end());
  if (of.tier == Tier::smoke) of.recipes = {"bf16"};
  return of;
}

// w: the most keys that a query sees; w = s: no window.
Grid window_grid() {
  return grid_of({
      variant(point(1, 4, 1, 256, 64, "mistral-7b, an eighth of its heads", Tier::smoke), {{"w", 96}}),
      variant(point(1, 8, 2, 1024, 128, "mistral-7b, an eighth in length, a quarter in heads", Tier::quick),
              {{"w", 512}}),
      variant(point(1, 32, 8, 8192, 128, "mistral-7b", Tier::standard), {{"w", 4096}}),
      variant(point(1, 32, 8, 32768, 128, "mistral-7b, its longest context", Tier::large), {{"w", 4096}}),
  });
}

// Gemma 2 alternates layers with and without a window.
Grid softcap_grid() {
  return grid_of({
      variant(point(1, 2, 1, 128, 64, "gemma2-9b, an eighth of its heads", Tier::smoke), {{"w", 128}, {"cap", 50}}),
      variant(point(1, 4, 2, 512, 256, "gemma2-9b, a sixteenth in length, a quarter in heads", Tier::quick),
              {{"w", 256}, {"cap", 50}}),
      variant(point(1, 16, 8, 8192, 256, "gemma2-9b, global layers", Tier::standard), {{"w", 8192}, {"cap", 50}}),
      variant(point(1, 16, 8, 8192, 256, "gemma2-9b, local layers", Tier::standard), {{"w", 4096}, {"cap", 50}}),
  });
}

// So does gpt-oss.
Grid sinks_grid() {
  return grid_of({
      variant(point(1, 4, 1, 256, 64, "gpt-oss-20b, a sixteenth of its heads", Tier::smoke), {{"w", 128}}),
      variant(point(1, 16, 2, 512, 64, "gpt-oss-20b, an eighth in length, a quarter in heads", Tier::quick),
              {{"w", 128}}),
      variant(point(1, 64, 8, 4096, 64, "gpt-oss-20b, full layers", Tier::standard), {{"w", 4096}}),
      variant(point(1, 64, 8, 4096, 64, "gpt-oss-20b, local layers", Tier::standard), {{"w", 128}}),
      variant(point(4, 64, 8, 4096, 64, "gpt-oss-20b, local layers", Tier::large), {{"w", 128}}),
  });
}

// docs: documents per sequence, of random lengths. FLOP are counted for equal lengths, which need the fewest.
Grid documents_grid() {
  return grid_of({
      variant(point(1, 4, 2, 256, 64, "llama3-8b, packed pretraining, an eighth of its heads", Tier::smoke),
              {{"docs", 3}}),
      variant(point(1, 8, 2, 1024, 128, "llama3-8b, packed pretraining, a quarter in heads", Tier::quick),
              {{"docs", 4}}),
      variant(point(1, 32, 8, 8192, 128, "llama3-8b, packed pretraining", Tier::standard), {{"docs", 8}}),
      variant(point(2, 32, 8, 8192, 128, "llama3-8b, packed pretraining, short documents", Tier::large),
              {{"docs", 64}}),
  });
}

// s queries at the last of t positions: the diagonal chunk of a context-parallel rank.
Grid chunk_grid() {
  return grid_of({
      variant(point(1, 4, 2, 64, 64, "llama3-8b, an eighth of its heads", Tier::smoke), {{"t", 192}}),
      variant(point(1, 8, 2, 256, 128, "llama3-8b, context in 4 chunks, a quarter in heads", Tier::quick),
              {{"t", 1024}}),
      variant(point(1, 32, 8, 2048, 128, "llama3-8b, context in 4 chunks", Tier::standard), {{"t", 8192}}),
  });
}

// q and k have d elements, v has "v": heads of DeepSeek-V3's latent attention, with 64 elements for positions.
Grid latent_grid() {
  return grid_of({
      variant(point(1, 8, 8, 512, 192, "deepseek-v3, an eighth in length, a sixteenth in heads", Tier::standard),
              {{"v", 128}}),
      variant(point(1, 128, 128, 4096, 192, "deepseek-v3", Tier::standard), {{"v", 128}}),
  });
}

// Pixels attending to the 77 tokens of a prompt, in Stable Diffusion XL.
Grid cross_grid() {
  return grid_of({
      variant(point(1, 10, 10, 512, 64, "stable-diffusion-xl, an eighth of its pixels", Tier::quick), {{"t", 77}}),
      variant(point(2, 10, 10, 4096, 64, "stable-diffusion-xl, 64 x 64", Tier::standard), {{"t", 77}}),
      variant(point(2, 20, 20, 1024, 64, "stable-diffusion-xl, 32 x 32", Tier::standard), {{"t", 77}}),
  });
}

std::int64_t dim_or(const Case& c, std::string_view name, std::int64_t otherwise) {
  const auto found = std::find_if(c.dims.begin(), c.dims.end(), [&](const auto& dim) { return dim.first == name; });
  return found == c.dims.end() ? otherwise : found->second;
}

// q, k and v are packed together if there are as many keys as queries; else k and v are.
enum class Variant { causal, full, sinks };
template <Variant variant>
Forward variant_of(Program& p, const Case& c, const Recipe& r) {
  const auto b = c.dim("b"), s = c.dim("s"), h = c.dim("h"), kv = c.dim("kv"), d = c.dim("d");
  const auto t = dim_or(c, "t", s), window = dim_or(c, "w", s), documents = dim_or(c, "docs", 0);
  const auto d_v = dim_or(c, "v", d);
  std::array<ValueId, 3> parts;
  if (d_v != d) {
    // One layer makes the values and the keys' first d_v elements, packed; the keys here are a copy.
    const auto heads = [&](const char* name) {
      return p.add(tensor(name, r.tensor, {b, s, h, d}, Role::input, Fill::normal(1.0)));
    };
    const ValueId packed = p.add(tensor("kv", r.tensor, {b * s, h * 2 * d_v}, Role::input, Fill::normal(1.0)));
    TensorSpec spec = tensor("v", r.tensor, {b, s, h, d_v}, Role::input);
    spec.layout.strides = {s * h * 2 * d_v, h * 2 * d_v, 2 * d_v, 1};
    parts = {heads("q"), heads("k"), p.part(packed, spec, d_v)};
  } else if (t == s) {
    parts = packed_qkv(p, c, r);
  } else {
    const ValueId packed = p.add(tensor("kv", r.tensor, {b * t, 2 * kv * d}, Role::input, Fill::normal(1.0)));
    TensorSpec spec = tensor("k", r.tensor, {b, t, kv, d}, Role::input);
    spec.layout.strides = {t * 2 * kv * d, 2 * kv * d, d, 1};
    parts = {p.add(tensor("q", r.tensor, {b, s, h, d}, Role::input, Fill::normal(1.0))), p.part(packed, spec, 0), {}};
    spec.name = "v";
    parts[2] = p.part(packed, spec, kv * d);
  }
  const auto [q, k, v] = parts;
  Forward made{{}, {q, k, v}};
  Attention attributes{variant != Variant::full, 1.0 / std::sqrt(static_cast<double>(d))};
  attributes.window = window < s ? window : 0;
  attributes.softcap = static_cast<double>(dim_or(c, "cap", 0));
  AttentionOptions options;
  if (variant == Variant::sinks) {
    options.sinks = p.add(tensor("sinks", DType::f32, {h}, Role::parameter, Fill::normal(1.0)));
    made.wanted.push_back(*options.sinks);
  }
  if (documents > 0) {
    options.documents = p.add(tensor("documents", DType::i32, {b, documents + 1}, Role::input, Fill::boundaries(s)));
  }
  made.y = attention_forward(p, attributes, r.math, "attention", q, k, v, options).o;
  return made;
}

std::shared_ptr<const Workload> attention_workload(std::string name, std::string description, Grid grid,
                                                   Program (*build)(const Case&, const Recipe&)) {
  return declare({{std::move(name), std::move(description), "b", PrimaryMetric::flop_per_s, "tokens", CacheMode::cold},
                  std::move(grid),
                  build,
                  [](const Case& c) { return static_cast<double>(c.dim("b") * c.dim("s")); }});
}

}  // namespace

Suite attention() {
  return {
      "attention",
      "scaled dot-product attention, forward and backward, with its log-sum-exp",
      {
          attention_workload("causal_forward", "causal self-attention from packed qkv", causal_grid(),
                             self_attention_forward<true>),
          attention_workload("causal_backward", "its gradients dq, dk, dv", causal_grid(),
                             self_attention_backward<true>),
          attention_workload("full_forward", "unmasked self-attention from packed qkv", full_grid(),
                             self_attention_forward<false>),
          attention_workload("full_backward", "its gradients dq, dk, dv", full_grid(), self_attention_backward<false>),
          attention_workload("window_forward", "causal attention to the last w keys", window_grid(),
                             forward<variant_of<Variant::causal>>),
          attention_workload("window_backward", "its gradients dq, dk, dv", window_grid(),
                             backward<variant_of<Variant::causal>>),
          attention_workload("softcap_forward", "causal attention, scores limited to cap tanh(score / cap)",
                             softcap_grid(), forward<variant_of<Variant::causal>>),
          attention_workload("softcap_backward", "its gradients dq, dk, dv", softcap_grid(),
                             backward<variant_of<Variant::causal>>),
          attention_workload("sinks_forward", "causal attention, a learned logit per head in the denominator",
                             sinks_grid(), forward<variant_of<Variant::sinks>>),
          attention_workload("sinks_backward", "its gradients dq, dk, dv, dsinks", sinks_grid(),
                             backward<variant_of<Variant::sinks>>),
          attention_workload("documents_forward", "causal attention within documents packed into a sequence",
                             documents_grid(), forward<variant_of<Variant::causal>>),
          attention_workload("documents_backward", "its gradients dq, dk, dv", documents_grid(),
                             backward<variant_of<Variant::causal>>),
          attention_workload("chunk_forward", "causal attention of the last s of t positions", chunk_grid(),
                             forward<variant_of<Variant::causal>>),
          attention_workload("chunk_backward", "its gradients dq, dk, dv", chunk_grid(),
                             backward<variant_of<Variant::causal>>),
          attention_workload("latent_forward", "causal attention, values narrower than queries and keys", latent_grid(),
                             forward<variant_of<Variant::causal>>),
          attention_workload("latent_backward", "its gradients dq, dk, dv", latent_grid(),
                             backward<variant_of<Variant::causal>>),
          attention_workload("cross_forward", "unmasked attention of s queries to t keys", cross_grid(),
                             forward<variant_of<Variant::full>>),
          attention_workload("cross_backward", "its gradients dq, dk, dv", cross_grid(),
                             backward<variant_of<Variant::full>>),
      }};
}

}  // namespace gpubench::suites
