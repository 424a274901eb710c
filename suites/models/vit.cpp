#include "suites/models/models.h"

#include <cmath>

#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/move.h"

namespace gpubench::suites {
namespace {

constexpr double vit_epsilon = 1e-6;

// Prepends the class token [1, h] to each image's patches: [n tokens, h] -> [n (1 + tokens), h].
ValueId with_class_token(Layers& layers, ValueId patches, std::int64_t n) {
  Program& p = layers.program();
  const TensorSpec rows = p.spec(patches);
  const std::int64_t h = rows.shape[1], tokens = rows.shape[0] / n;
  const ValueId token = layers.embedding("class_token", layers.sequence("first", n, 1), 1, h);
  const ValueId all = p.reserve(tensor("tokens", rows.dtype, {n * (1 + tokens), h}, Role::activation));
  const auto place = [&](const char* name, ValueId x, std::int64_t count, std::int64_t first) {
    TensorSpec spec = tensor(std::string(name) + ".placed", rows.dtype, {n, count, h}, Role::activation);
    spec.layout.strides = {(1 + tokens) * h, h, 1};
    const ValueId from = layers.reshaped(std::string(name) + ".rows", x, {n, count, h});
    reorder_into(p, std::string("place.") + name, from, p.part(all, std::move(spec), first * h));
  };
  place("class", token, 1, 0);
  place("patches", patches, tokens, 1);
  return all;
}

ValueId vit_block(Layers& layers, const Heads& heads, const std::string& prefix, ValueId x) {
  const std::int64_t h = layers.program().spec(x).shape[1];
  const ValueId normed = layers.layer_norm(prefix + "ln1", x, vit_epsilon);
  const ValueId middle =
      layers.sum(prefix + "residual1", x, layers.self_attention(prefix, normed, heads, /*causal=*/false));
  const ValueId fed =
      layers.gelu_mlp(prefix, layers.layer_norm(prefix + "ln2", middle, vit_epsilon), 4 * h, GeluForm::erf);
  return layers.sum(prefix + "residual2", middle, fed);
}

}  // namespace

Program vit_train_step(const Case& c, const Recipe& r) {
  return train_step(c, r, &Layers::adamw, [&](Layers& layers) {
    Program& p = layers.program();
    const std::int64_t n = c.dim("n"), size = c.dim("image"), patch = c.dim("patch"), h = c.dim("h");
    const std::int64_t s = 1 + (size / patch) * (size / patch);
    const ValueId image = layers.batch(tensor("image", r.tensor, {n, size, size, 3}, Role::input, Fill::normal(1.0)));
    const ValueId labels = layers.classes("labels", n, c.dim("classes"));
    // Equals the paper's convolution, whose stride is its window.
    const ValueId patches = layers.linear("patch_embedding", layers.patches(image, patch), h);
    const ValueId tokens = with_class_token(layers, patches, n);
    const ValueId position = layers.embedding("position_embedding", layers.sequence("positions", n * s, s), s, h);
    ValueId x = layers.sum("embedding", tokens, position);
    for (std::int64_t layer = 0; layer < c.dim("layers"); ++layer)
      x = vit_block(layers, {n, s, c.dim("heads")}, "block" + std::to_string(layer) + ".", x);
    // The head reads each image's class token only.
    const ValueId read = embedding_forward(p, "class_rows", x, layers.sequence("class_at", n, n, s));
    const ValueId logits = layers.linear("head", layers.layer_norm("ln", read, vit_epsilon), c.dim("classes"));
    return cross_entropy_forward(p, r.math, "loss", logits, labels).loss;
  });
}

}  // namespace gpubench::suites
