#include "suites/models/models.h"

#include <array>

#include "reference/ops/embedding.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"

namespace gpubench::suites {
namespace {

constexpr double dit_epsilon = 1e-6;
constexpr std::int64_t timestep_features = 256;

class Dit {
 public:
  /// `conditioning` [n, h]
  Dit(Layers& layers, const Heads& heads, ValueId conditioning)
      : layers_(layers), p_(layers.program()), heads_(heads), conditioning_(conditioning) {
    const std::int64_t h = p_.spec(conditioning).shape[1];
    const auto constant = [&](const char* name, double value) {
      return p_.add(tensor(name, layers.recipe().wide, {h}, Role::input, Fill::constant(value)));
    };
    ones_ = constant("ones", 1.0);
    zeros_ = constant("zeros", 0.0);
  }

  /// x [n s, h] -> [n s, h]
  ValueId block(const std::string& prefix, ValueId x) {
    const auto [shift1, scale1, gate1, shift2, scale2, gate2] = modulation<6>(prefix);
    const ValueId attended = layers_.self_attention(prefix, modulated(prefix + "ln1", x, scale1, shift1), heads_,
                                                    /*causal=*/false);
    const ValueId middle = layers_.sum(prefix + "residual1", x, gated(prefix + "gate1", attended, gate1));
    const std::int64_t h = p_.spec(x).shape[1];
    const ValueId fed =
        layers_.gelu_mlp(prefix, modulated(prefix + "ln2", middle, scale2, shift2), 4 * h, GeluForm::tanh);
    return layers_.sum(prefix + "residual2", middle, gated(prefix + "gate2", fed, gate2));
  }

  /// x [n s, h] -> [n s, outputs]
  ValueId head(ValueId x, std::int64_t outputs) {
    const auto [shift, scale] = modulation<2>("head.");
    return layers_.linear("head", modulated("ln", x, scale, shift), outputs);
  }

 private:
  /// Vectors of the conditioning, [n, h] each. Not initialized to zero as in the paper, which would hide errors.
  template <std::size_t count>
  std::array<ValueId, count> modulation(const std::string& prefix) {
    const auto& math = layers_.recipe().math;
    const Shape shape = p_.spec(conditioning_).shape;
    const ValueId active = silu_forward(p_, math, prefix + "silu", conditioning_);
    const ValueId all = layers_.linear(prefix + "modulation", active, static_cast<std::int64_t>(count) * shape[1]);
    std::array<ValueId, count> vectors;
    for (std::size_t i = 0; i < count; ++i) {
      vectors[i] = layers_.columns_of(prefix + "modulation" + std::to_string(i), all, shape,
                                      static_cast<std::int64_t>(i) * shape[1]);
    }
    return vectors;
  }

  ValueId modulated(const std::string& label, ValueId x, ValueId scale, ValueId shift) {
    const auto& math = layers_.recipe().math;
    const ValueId y = layer_norm_forward(p_, {.epsilon = dit_epsilon}, math, label, x, ones_, zeros_).y;
    return modulate_forward(p_, math, label + ".modulated", y, scale, shift);
  }

  ValueId gated(const std::string& label, ValueId x, ValueId gate) {
    return multiply(p_, layers_.recipe().math, label, x, gate);
  }

  Layers& layers_;
  Program& p_;
  Heads heads_;
  ValueId conditioning_, ones_, zeros_;
};

/// [n, h]: the embedded time step, whose sines and cosines are inputs, and the embedded class, one of `classes` or
/// none.
ValueId conditioning(Layers& layers, std::int64_t n, std::int64_t h, std::int64_t classes) {
  const Recipe& r = layers.recipe();
  const ValueId features =
      layers.batch(tensor("timestep", r.tensor, {n, timestep_features}, Role::input, Fill::normal(0.5)));
  const ValueId hidden = layers.linear("timestep.up", features, h);
  const ValueId active = silu_forward(layers.program(), r.math, "timestep.silu", hidden);
  const ValueId label = layers.embedding("class_embedding", layers.classes("labels", n, classes + 1), classes + 1, h);
  return layers.sum("conditioning", layers.linear("timestep.down", active, h), label);
}

}  // namespace

Program dit_block_step(const Case& c, const Recipe& r) {
  const Heads heads{c.dim("n"), c.dim("s"), c.dim("heads")};
  const auto forward = [&](Layers& layers, ValueId x) {
    const ValueId given =
        layers.batch(tensor("conditioning", r.tensor, {heads.b, c.dim("h")}, Role::input, Fill::normal(1.0)));
    return Dit(layers, heads, given).block("", x);
  };
  return block_step(c, r, token_block(r, heads.b * heads.s, c.dim("h"), forward));
}

Program dit_train_step(const Case& c, const Recipe& r) {
  return train_step(c, r, &Layers::adamw, [&](Layers& layers) -> Objective {
    Program& p = layers.program();
    const std::int64_t n = c.dim("n"), size = c.dim("image"), channels = c.dim("channels"), patch = c.dim("patch"),
                       h = c.dim("h"), s = (size / patch) * (size / patch), outputs = patch * patch * 2 * channels;
    const ValueId latent =
        layers.batch(tensor("latent", r.tensor, {n, size, size, channels}, Role::input, Fill::normal(1.0)));
    const ValueId noise = layers.batch(tensor("noise", r.tensor, {n * s, outputs}, Role::input, Fill::normal(1.0)));
    Dit dit(layers, {n, s, c.dim("heads")}, conditioning(layers, n, h, c.dim("classes")));
    const ValueId table = p.add(tensor("positions", r.tensor, {s, h}, Role::input, Fill::normal(0.5)));
    const ValueId position = embedding_forward(p, "position_rows", table, layers.sequence("position", n * s, s));
    ValueId x = layers.sum("embedding", layers.linear("patch_embedding", layers.patches(latent, patch), h), position);
    for (std::int64_t layer = 0; layer < c.dim("layers"); ++layer)
      x = dit.block("block" + std::to_string(layer) + ".", x);
    const ValueId predicted = dit.head(x, outputs);
    // Computes the gradient of the mean squared error, and the root of the sum of squares, not the error itself.
    const ValueId error = triad(p, {-1.0}, r.math, "error", predicted, noise);
    gradient_norm(p, r.math, "error_norm", std::array{error});
    return {predicted, scale(p, {2.0 / static_cast<double>(n * s * outputs)}, r.math, "loss.backward", error)};
  });
}

}  // namespace gpubench::suites
