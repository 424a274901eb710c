#include "suites/models/models.h"

#include <cmath>

#include "reference/ops/embedding.h"

namespace gpubench::suites {
namespace {

Heads heads_of(const Case& c) { return {c.dim("b"), c.dim("s"), c.dim("heads")}; }

ValueId gpt2_block(Layers& layers, const Heads& heads, const std::string& prefix, ValueId x) {
  const std::int64_t h = layers.program().spec(x).shape[-1];
  const ValueId attended = layers.self_attention(prefix, layers.layer_norm(prefix + "ln1", x), heads, /*causal=*/true);
  const ValueId middle = layers.sum(prefix + "residual1", x, attended);
  const ValueId fed = layers.gelu_mlp(prefix, layers.layer_norm(prefix + "ln2", middle), 4 * h, GeluForm::tanh);
  return layers.sum(prefix + "residual2", middle, fed);
}

}  // namespace

Program gpt2_block_step(const Case& c, const Recipe& r) {
  const auto forward = [&](Layers& layers, ValueId x) { return gpt2_block(layers, heads_of(c), "", x); };
  return block_step(c, r, token_block(r, c.dim("b") * c.dim("s"), c.dim("h"), forward));
}

Program gpt2_train_step(const Case& c, const Recipe& r) {
  const std::int64_t tokens_of_batch = c.dim("b") * c.dim("s"), width = c.dim("h"), vocabulary = c.dim("vocab");
  return train_step(c, r, &Layers::adamw, [&](Layers& layers) {
    Program& p = layers.program();
    const ValueId tokens = layers.classes("tokens", tokens_of_batch, vocabulary);
    const ValueId labels = layers.labels(c, tokens_of_batch, vocabulary);
    const std::int64_t all_positions = c.dim("s") * c.parallel().cp;
    const ValueId positions = layers.sequence("positions", tokens_of_batch, all_positions);
    const double scale = 1.0 / std::sqrt(static_cast<double>(width));
    const ValueId wte = layers.matrix("wte", {vocabulary, width}, scale, by_tokens(c, vocabulary));
    const ValueId wpe = layers.matrix("wpe", {all_positions, width}, scale);
    const ValueId token = embedding_forward(p, "token_embedding", wte, tokens);
    const ValueId position = embedding_forward(p, "position_embedding", wpe, positions);
    ValueId x = layers.sum("embedding", token, position);
    for (std::int64_t layer = 0; layer < c.dim("layers"); ++layer)
      x = gpt2_block(layers, heads_of(c), "block" + std::to_string(layer) + ".", x);
    const ValueId logits = gemm(p, {.transpose_b = true}, r.math, "logits", layers.layer_norm("ln_f", x), wte).c;
    return layers.loss(c, logits, labels);
  });
}

Point gpt2_point(std::int64_t b, std::int64_t s, std::int64_t layers, std::int64_t h, std::int64_t heads,
                 std::int64_t vocab, std::string label, Tier tier) {
  return {
      {{"b", b}, {"s", s}, {"layers", layers}, {"h", h}, {"heads", heads}, {"vocab", vocab}}, std::move(label), tier};
}

}  // namespace gpubench::suites
