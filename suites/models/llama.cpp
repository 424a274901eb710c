#include "suites/models/models.h"

#include <cmath>

#include "reference/ops/embedding.h"
#include "reference/ops/pointwise.h"

namespace gpubench::suites {
namespace {

class Llama {
 public:
  Llama(Layers& layers, const Case& c, const FeedForward& feed_forward)
      : layers_(layers),
        heads_{c.dim("b"), c.dim("s"), c.dim("heads")},
        kv_heads_(c.dim("kv")),
        head_width_(c.dim("h") / c.dim("heads")),
        feed_forward_(feed_forward),
        tables_(layers.rotary_tables(heads_.s, head_width_)) {}

  ValueId block(const std::string& prefix, ValueId x) {
    const ValueId attended = attention(prefix, layers_.rms_norm(prefix + "norm1", x));
    const ValueId middle = layers_.sum(prefix + "residual1", x, attended);
    const ValueId fed = feed_forward_(layers_, prefix, layers_.rms_norm(prefix + "norm2", middle));
    return layers_.sum(prefix + "residual2", middle, fed);
  }

 private:
  ValueId attention(const std::string& prefix, ValueId x) {
    const auto [b, s, heads] = heads_;
    const std::int64_t d = head_width_;
    const Cut by_heads = by_columns({heads * d, kv_heads_ * d, kv_heads_ * d});
    const ValueId qkv = layers_.linear(prefix + "qkv", x, (heads + 2 * kv_heads_) * d, no_bias, by_heads);
    const ValueId q = layers_.columns_of(prefix + "q", qkv, {b, s, heads, d}, 0);
    const ValueId k = layers_.columns_of(prefix + "k", qkv, {b, s, kv_heads_, d}, heads * d);
    const ValueId v = layers_.columns_of(prefix + "v", qkv, {b, s, kv_heads_, d}, (heads + kv_heads_) * d);
    const auto turned = [&](const char* name, ValueId of) {
      return rotary(layers_.program(), {}, layers_.recipe().math, prefix + name, of, tables_);
    };
    const ValueId turned_q = turned("rotary_q", q);
    const ValueId turned_k = turned("rotary_k", k);
    return layers_.linear(prefix + "attention_out", layers_.attention(prefix, turned_q, turned_k, v, /*causal=*/true),
                          heads * d, no_bias, by_rows);
  }

  Layers& layers_;
  Heads heads_;
  std::int64_t kv_heads_, head_width_;
  const FeedForward& feed_forward_;
  RotaryTables tables_;
};

FeedForward swiglu_of(const Case& c) {
  return [hidden = c.dim("f")](Layers& layers, const std::string& prefix, ValueId x) {
    return layers.swiglu_mlp(prefix, x, hidden);
  };
}

}  // namespace

Program llama_block_step(const Case& c, const Recipe& r) { return llama_block_step(c, r, swiglu_of(c)); }
Program llama_train_step(const Case& c, const Recipe& r) { return llama_train_step(c, r, swiglu_of(c)); }

Program llama_block_step(const Case& c, const Recipe& r, const FeedForward& feed_forward) {
  const auto forward = [&](Layers& layers, ValueId x) { return Llama(layers, c, feed_forward).block("", x); };
  return block_step(c, r, token_block(r, c.dim("b") * c.dim("s"), c.dim("h"), forward));
}

Program llama_train_step(const Case& c, const Recipe& r, const FeedForward& feed_forward) {
  return train_step(c, r, &Layers::adamw, [&](Layers& layers) {
    const std::int64_t vocabulary = c.dim("vocab");
    const ValueId tokens = layers.classes("tokens", c.dim("b") * c.dim("s"), vocabulary);
    const ValueId labels = layers.labels(c, c.dim("b") * c.dim("s"), vocabulary);
    Llama llama(layers, c, feed_forward);
    const MaybeCut cut = by_tokens(c, vocabulary);
    ValueId x = layers.embedding("embedding", tokens, vocabulary, c.dim("h"), cut);
    for (std::int64_t layer = 0; layer < c.dim("layers"); ++layer)
      x = llama.block("block" + std::to_string(layer) + ".", x);
    const ValueId read = layers.rms_norm("norm", x);
    const ValueId head = layers.matrix("head.w", {vocabulary, c.dim("h")}, 1.0 / std::sqrt(c.dim("h")), cut);
    // No recipe quantizes the head.
    const ValueId logits = gemm(layers.program(), no_bias, r.math, "head", read, head).c;
    return layers.loss(c, logits, labels);
  });
}

Point llama_point(std::int64_t b, std::int64_t s, std::int64_t layers, std::int64_t h, std::int64_t heads,
                  std::int64_t kv, std::int64_t f, std::int64_t vocab, std::string label, Tier tier) {
  return {{{"b", b}, {"s", s}, {"layers", layers}, {"h", h}, {"heads", heads}, {"kv", kv}, {"f", f}, {"vocab", vocab}},
          std::move(label),
          tier};
}

}  // namespace gpubench::suites
