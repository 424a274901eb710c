// Suite norm: row-wise ops of transformers at the widths of real models: normalization, rotary position embedding,
// gated activation, softmax; and batch normalization of convolutional networks. Forward and backward.
#include "reference/ops/norm.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/rotary.h"
#include "reference/ops/softmax.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

Grid norm_sizes() {
  return grid_of({
      // recipe: type of activations; statistics, gamma and beta are f32
      row_point(256, 768, "gpt2-124m, 256 tokens", Tier::smoke, {"f32", "bf16"}),
      row_point(2048, 768, "gpt2-124m, 2048 tokens", Tier::quick),
      row_point(512, 768, "gpt2-124m, 512 tokens", Tier::standard),
      row_point(8192, 768, "gpt2-124m", Tier::standard),
      row_point(16384, 4096, "gpt3-6.7b", Tier::standard),
      row_point(1024, 12288, "gpt3-175b: few rows, and wide", Tier::standard),
  });
}

Grid llama_rows(std::int64_t smoke_n, std::int64_t n_8b, std::int64_t n_70b) {
  return grid_of({
      row_point(64, smoke_n, "llama3-8b, 64 tokens, a narrow part", Tier::smoke, {"f32"}),
      row_point(256, n_8b, "llama3-8b, 256 tokens", Tier::quick),
      row_point(129, 77, "edge: odd rows that fill no pack", Tier::standard),
      row_point(8192, n_8b, "llama3-8b", Tier::standard),
      row_point(8192, n_70b, "llama3-70b", Tier::large),
  });
}

// Attention scores, one head after the other; router logits; a vocabulary.
Grid softmax_rows() {
  return grid_of({
      row_point(64, 512, "gpt2-124m, scores of 64 queries", Tier::smoke, {"f32"}),
      row_point(4096, 1024, "gpt2-124m, scores of 4 heads", Tier::quick),
      row_point(129, 77, "edge: odd rows that fill no pack", Tier::standard),
      row_point(12288, 1024, "gpt2-124m, scores", Tier::standard),
      row_point(8192, 128, "qwen3-30b-a3b, router", Tier::standard),
      row_point(1024, 50304, "gpt2-124m, vocabulary", Tier::standard),
      row_point(131072, 4096, "llama3-8b, scores", Tier::large),
  });
}

Forward softmax(Program& p, const Case& c, const Recipe& r) {
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("rows"), c.dim("n")}, Role::activation, Fill::normal(2.0)));
  return {softmax_forward(p, r.math, "y", x), {x}};
}

Forward layer_norm(Program& p, const Case& c, const Recipe& r) {
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("rows"), c.dim("n")}, Role::input, Fill::norm_rows(1.0)));
  const ValueId gamma = p.add(tensor("gamma", r.wide, {c.dim("n")}, Role::parameter, Fill::positive(1.0)));
  const ValueId beta = p.add(tensor("beta", r.wide, {c.dim("n")}, Role::parameter, Fill::normal(0.125)));
  return {layer_norm_forward(p, {}, r.math, "norm", x, gamma, beta).y, {x, gamma, beta}};
}

Forward rms_norm(Program& p, const Case& c, const Recipe& r) {
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("rows"), c.dim("n")}, Role::input, Fill::norm_rows(1.0)));
  const ValueId gamma = p.add(tensor("gamma", r.wide, {c.dim("n")}, Role::parameter, Fill::positive(1.0)));
  return {rms_norm_forward(p, {}, r.math, "norm", x, gamma).y, {x, gamma}};
}

Forward swiglu(Program& p, const Case& c, const Recipe& r) {
  const auto half = [&](const char* name, Fill fill) {
    return p.add(tensor(name, r.tensor, {c.dim("rows"), c.dim("n")}, Role::input, fill));
  };
  const ValueId gate = half("gate", Fill::pointwise());
  const ValueId up = half("up", Fill::normal(1.0));
  return {swiglu_forward(p, r.math, "swiglu", gate, up), {gate, up}};
}

// ResNet-50 (He et al., arXiv 1512.03385): its first stage (few channels, many pixels) and its last.
Grid images() {
  const auto image = [](std::int64_t n, std::int64_t h, std::int64_t c, std::string label, Tier tier,
                        std::vector<std::string> recipes = {}) {
    return Point{{{"n", n}, {"h", h}, {"w", h}, {"c", c}}, std::move(label), tier, std::move(recipes)};
  };
  return grid_of({
      // recipe: type of activations; statistics and per-channel tensors are f32
      image(1, 28, 64, "resnet50 conv2_x, a quarter of one image", Tier::smoke, {"f32"}),
      image(4, 56, 64, "resnet50 conv2_x", Tier::quick),
      image(2, 7, 77, "edge: channels that fill no pack", Tier::standard),
      image(32, 56, 64, "resnet50 conv2_x", Tier::standard),
      image(32, 56, 256, "resnet50 conv2_x, its wide end", Tier::standard),
      image(32, 7, 2048, "resnet50 conv5_x, its wide end", Tier::standard),
      image(256, 56, 256, "resnet50 conv2_x, its wide end", Tier::large),
  });
}

Forward batch_norm(Program& p, const Case& c, const Recipe& r) {
  const ValueId x =
      p.add(tensor("x", r.tensor, {c.dim("n"), c.dim("h"), c.dim("w"), c.dim("c")}, Role::input, Fill::normal(1.0)));
  const auto of_channels = [&](const char* name, Role role, Fill fill) {
    return p.add(tensor(name, r.wide, {c.dim("c")}, role, fill));
  };
  const BatchNormChannels channels{of_channels("gamma", Role::parameter, Fill::positive(1.0)),
                                   of_channels("beta", Role::parameter, Fill::normal(0.125)),
                                   of_channels("running_mean", Role::state, Fill::normal(0.125)),
                                   of_channels("running_var", Role::state, Fill::positive(1.0))};
  return {batch_norm_forward(p, {}, r.math, "norm", x, channels).y, {x, channels.gamma, channels.beta}};
}

std::shared_ptr<const Workload> batch_norm_workload(std::string name, std::string description,
                                                    Program (*build)(const Case&, const Recipe&)) {
  return declare({{std::move(name), std::move(description), "n", PrimaryMetric::bytes_per_s, "images", CacheMode::cold},
                  images(),
                  build,
                  [](const Case& c) { return static_cast<double>(c.dim("n")); }});
}

Grid heads() {
  const auto heads_of = [](std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d, std::string label, Tier tier,
                           std::vector<std::string> recipes = {}) {
    return Point{{{"b", b}, {"s", s}, {"h", h}, {"d", d}}, std::move(label), tier, std::move(recipes)};
  };
  return grid_of({
      // recipe: type of x; cosines and sines are f32
      heads_of(1, 64, 32, 128, "llama2-7b, 64 tokens", Tier::smoke, {"f32"}),
      heads_of(1, 512, 32, 128, "llama2-7b, 512 tokens", Tier::quick),
      heads_of(2, 129, 3, 6, "edge: odd length, pairs that fill no pack", Tier::standard),
      heads_of(1, 4096, 32, 128, "llama2-7b, queries or keys", Tier::standard),
      heads_of(1, 8192, 32, 128, "llama3-8b, queries", Tier::standard),
      heads_of(1, 8192, 8, 128, "llama3-8b, keys: grouped-query", Tier::standard),
      heads_of(1, 8192, 64, 128, "llama3-70b, queries", Tier::large),
      heads_of(1, 4096, 128, 64, "deepseek-v3, the turned part of its queries", Tier::large),
  });
}

// Random tables: the op accepts any, and they are portable, unlike std::cos. At 0.5, x keeps about its magnitude.
Program turn(const Case& c, const Recipe& r, const Rotary& attributes, Role role) {
  const auto b = c.dim("b"), s = c.dim("s"), h = c.dim("h"), d = c.dim("d");
  Program p;
  const ValueId x = p.add(tensor(role == Role::gradient ? "dy" : "x", r.tensor, {b, s, h, d}, role, Fill::normal(1.0)));
  const auto table = [&](const char* name) {
    return p.add(tensor(name, r.wide, {s, d / 2}, Role::input, Fill::normal(0.5)));
  };
  const ValueId cos = table("cos");
  rotary(p, attributes, r.math, "rotary", x, {cos, table("sin")});
  return p;
}

Program rotary_half_forward(const Case& c, const Recipe& r) { return turn(c, r, {}, Role::activation); }
Program rotary_half_backward(const Case& c, const Recipe& r) { return turn(c, r, {.inverse = true}, Role::gradient); }
Program rotary_interleaved_forward(const Case& c, const Recipe& r) {
  return turn(c, r, {.pairing = Rotary::Pairing::interleaved}, Role::activation);
}

std::shared_ptr<const Workload> rotary_workload(std::string name, std::string description,
                                                Program (*build)(const Case&, const Recipe&)) {
  return declare({{std::move(name), std::move(description), "b", PrimaryMetric::bytes_per_s, "tokens", CacheMode::cold},
                  heads(),
                  build,
                  [](const Case& c) { return static_cast<double>(c.dim("b") * c.dim("s")); }});
}

}  // namespace

Suite norm() {
  const Grid rms = llama_rows(512, 4096, 8192);
  const Grid gated = llama_rows(1792, 14336, 28672);
  return {
      "norm",
      "normalization, softmax, rotary position embedding and SwiGLU, forward and backward",
      {
          declare_rows("layer_norm_forward", "y, and statistics for the backward", norm_sizes(), forward<layer_norm>),
          declare_rows("layer_norm_backward", "dx, dgamma, dbeta", norm_sizes(), backward<layer_norm>),
          declare_rows("rms_norm_forward", "y and rstd", rms, forward<rms_norm>),
          declare_rows("rms_norm_backward", "dx, dgamma", rms, backward<rms_norm>),
          batch_norm_workload("batch_norm_forward", "y, statistics for the backward, running averages",
                              forward<batch_norm>),
          batch_norm_workload("batch_norm_backward", "dx, dgamma, dbeta", backward<batch_norm>),
          rotary_workload("rotary_forward", "pairs half a head apart are rotated (GPT-NeoX, Llama)",
                          rotary_half_forward),
          rotary_workload("rotary_backward", "their gradient: the inverse rotation", rotary_half_backward),
          rotary_workload("rotary_interleaved_forward", "pairs of neighbours are rotated (the paper, GPT-J)",
                          rotary_interleaved_forward),
          declare_rows("swiglu_forward", "silu(gate) up", gated, forward<swiglu>),
          declare_rows("swiglu_backward", "dgate and dup", gated, backward<swiglu>),
          declare_rows("softmax_forward", "exp(x) over the row's sum", softmax_rows(), forward<softmax>),
          declare_rows("softmax_backward", "its gradient, from y", softmax_rows(), backward<softmax>),
      }};
}

}  // namespace gpubench::suites
