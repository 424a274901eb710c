#include "suites/models/gpt2.h"

#include <cmath>

#include "reference/ops/attention.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "suites/models/layers.h"

namespace gpubench::suites {
namespace {

struct Gpt2Shape {
  std::int64_t batch = 1, sequence = 0, width = 0, heads = 0;
  [[nodiscard]] std::int64_t tokens() const { return batch * sequence; }
};

Gpt2Shape shape_of(const Case& c) { return {c.dim("b"), c.dim("s"), c.dim("h"), c.dim("heads")}; }

ValueId self_attention(Layers& layers, const Gpt2Shape& shape, const std::string& prefix, ValueId x) {
  const auto [b, s, h, heads] = shape;
  const std::int64_t d = h / heads;
  const ValueId qkv = layers.linear(prefix + "qkv", x, 3 * h);
  const ValueId q = layers.heads_of(prefix + "q", qkv, {b, s, heads, d}, 0);
  const ValueId k = layers.heads_of(prefix + "k", qkv, {b, s, heads, d}, h);
  const ValueId v = layers.heads_of(prefix + "v", qkv, {b, s, heads, d}, 2 * h);
  const Attention attributes{.causal = true, .scale = 1.0 / std::sqrt(static_cast<double>(d))};
  const ValueId o =
      attention_forward(layers.program(), attributes, layers.recipe().math, prefix + "attention", q, k, v).o;
  return layers.linear(prefix + "attention_out", layers.reshaped(prefix + "heads", o, {b * s, h}), h);
}

ValueId block(Layers& layers, const Gpt2Shape& shape, const std::string& prefix, ValueId x) {
  const std::int64_t h = shape.width;
  const ValueId attended = self_attention(layers, shape, prefix, layers.layer_norm(prefix + "ln1", x));
  const ValueId middle = layers.sum(prefix + "residual1", x, attended);
  const ValueId hidden = layers.linear(prefix + "up", layers.layer_norm(prefix + "ln2", middle), 4 * h,
                                       {.transpose_b = true, .bias = true, .epilogue = Gemm::Epilogue::gelu});
  return layers.sum(prefix + "residual2", middle, layers.linear(prefix + "down", hidden, h));
}

}  // namespace

Program gpt2_block_step(const Case& c, const Recipe& r) {
  const Gpt2Shape shape = shape_of(c);
  return block_step(c, r, {shape.tokens(), shape.width}, &Layers::adamw,
                    [&](Layers& layers, ValueId x) { return block(layers, shape, "", x); });
}

Program gpt2_train_step(const Case& c, const Recipe& r) {
  const Gpt2Shape shape = shape_of(c);
  const std::int64_t vocabulary = c.dim("vocab");
  return train_step(c, r, &Layers::adamw, [&](Layers& layers) {
    Program& p = layers.program();
    const ValueId tokens = layers.classes("tokens", shape.tokens(), vocabulary);
    const ValueId labels = layers.classes("labels", shape.tokens(), vocabulary);
    const ValueId positions = layers.positions("positions", shape.tokens(), shape.sequence);
    const double scale = 1.0 / std::sqrt(static_cast<double>(shape.width));
    const ValueId wte = layers.matrix("wte", {vocabulary, shape.width}, scale);
    const ValueId wpe = layers.matrix("wpe", {shape.sequence, shape.width}, scale);
    const ValueId token = embedding_forward(p, "token_embedding", wte, tokens);
    const ValueId position = embedding_forward(p, "position_embedding", wpe, positions);
    ValueId x = layers.sum("embedding", token, position);
    for (std::int64_t layer = 0; layer < c.dim("layers"); ++layer)
      x = block(layers, shape, "block" + std::to_string(layer) + ".", x);
    const ValueId logits = gemm(p, {.transpose_b = true}, r.math, "logits", layers.layer_norm("ln_f", x), wte).c;
    return cross_entropy_forward(p, r.math, "loss", logits, labels).loss;
  });
}

}  // namespace gpubench::suites
