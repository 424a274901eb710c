#include "suites/models/models.h"

#include <cmath>

#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"

namespace gpubench::suites {
namespace {

constexpr double bert_epsilon = 1e-12;
constexpr std::int64_t tokens_per_masked = 7;
constexpr std::int64_t segments = 2;

ValueId bert_block(Layers& layers, const Heads& heads, const std::string& prefix, ValueId x) {
  const std::int64_t h = layers.program().spec(x).shape[1];
  const ValueId attended = layers.self_attention(prefix, x, heads, /*causal=*/false);
  const ValueId middle = layers.layer_norm(prefix + "ln1", layers.sum(prefix + "residual1", x, attended), bert_epsilon);
  const ValueId fed = layers.gelu_mlp(prefix, middle, 4 * h, GeluForm::erf);
  return layers.layer_norm(prefix + "ln2", layers.sum(prefix + "residual2", middle, fed), bert_epsilon);
}

}  // namespace

Program bert_train_step(const Case& c, const Recipe& r) {
  return train_step(c, r, &Layers::adamw, [&](Layers& layers) {
    Program& p = layers.program();
    const Heads heads{c.dim("b"), c.dim("s"), c.dim("heads")};
    const std::int64_t n = heads.b * heads.s, h = c.dim("h"), vocabulary = c.dim("vocab"),
                       masked = n / tokens_per_masked;
    const ValueId tokens = layers.classes("tokens", n, vocabulary);
    const ValueId segment = layers.classes("segments", n, segments);
    const ValueId labels = layers.classes("labels", masked, vocabulary);
    const MaybeCut cut = by_tokens(c, vocabulary);
    const ValueId wte = layers.matrix("wte", {vocabulary, h}, 1.0 / std::sqrt(static_cast<double>(h)), cut);
    const ValueId token = embedding_forward(p, "token_embedding", wte, tokens);
    const ValueId position =
        layers.embedding("position_embedding", layers.sequence("positions", n, heads.s), heads.s, h);
    const ValueId placed = layers.sum("placed", token, position);
    const ValueId all = layers.sum("embedding", placed, layers.embedding("segment_embedding", segment, segments, h));
    ValueId x = layers.layer_norm("ln", all, bert_epsilon);
    for (std::int64_t layer = 0; layer < c.dim("layers"); ++layer)
      x = bert_block(layers, heads, "block" + std::to_string(layer) + ".", x);
    const ValueId which = layers.sequence("masked", masked, masked, tokens_per_masked);
    const ValueId hidden = layers.linear(
        "transform", embedding_forward(p, "masked_rows", x, which), h,
        {.transpose_b = true, .bias = true, .epilogue = Gemm::Epilogue::gelu, .gelu_form = GeluForm::erf});
    const ValueId read = layers.layer_norm("transform.ln", hidden, bert_epsilon);
    const ValueId bias = layers.matrix("logits.b", {vocabulary}, 0.125, cut);
    const ValueId logits = gemm(p, {.transpose_b = true, .bias = true}, r.math, "logits", read, wte, {.bias = bias}).c;
    return cross_entropy_forward(p, r.math, "loss", logits, labels).loss;
  });
}

}  // namespace gpubench::suites
