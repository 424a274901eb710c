// Suite transformer: training steps as a whole: a GPT-2 block and a small complete GPT-2 (Radford et al. 2019), forward
// to AdamW. Only forwards are written here; backwards come from differentiate(). On several ranks each has a batch of
// the size that the case names (weak scaling), and gradients are reduced between them.
#include <array>
#include <cmath>
#include <optional>

#include "reference/ops/attention.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/data_parallel.h"
#include "reference/ops/transform/differentiate.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

struct Gpt2Shape {
  std::int64_t batch = 1, sequence = 0, width = 0, heads = 0;
  [[nodiscard]] std::int64_t tokens() const { return batch * sequence; }
};

/// A trained tensor: the weight that ops read, and its f32 master where the recipe keeps a copy of lower precision.
struct Parameter {
  ValueId weight;
  std::optional<ValueId> master;
};

/// Appends the layers of a GPT-2 to a program and keeps track of its parameters.
class Gpt2Model {
 public:
  Gpt2Model(Program& program, const Recipe& recipe, Gpt2Shape shape)
      : program_(program), recipe_(recipe), shape_(shape) {}

  /// x: [tokens, width] -> [tokens, width]: x + attention(ln1(x)), then + mlp(ln2(.)). Names start with `prefix`.
  ValueId block(const std::string& prefix, ValueId x);
  /// tokens i32 [tokens] -> logits [tokens, vocabulary], with `layers` blocks and the embedding tied to the head.
  ValueId language_model(ValueId tokens, ValueId positions, std::int64_t layers, std::int64_t vocabulary);

  /// Appends the training of the parameters: backward from the seed, gradient norm, clip at 1, AdamW in place.
  /// `seed_gradient` empty: `value` is the loss. `also_wanted`: values whose gradient is computed too (the block's
  /// input). Returns the gradients of the parameters before the clip.
  std::vector<ValueId> train(ValueId value, std::optional<ValueId> seed_gradient,
                             const std::vector<ValueId>& also_wanted);

 private:
  ValueId matrix(const std::string& name, Shape shape, double scale);
  ValueId wide_parameter(const std::string& name, std::int64_t n, double offset);
  ValueId linear(const std::string& label, ValueId x, std::int64_t n, std::int64_t k);
  ValueId norm(const std::string& label, ValueId x);
  ValueId self_attention(const std::string& prefix, ValueId x);
  ValueId mlp(const std::string& prefix, ValueId x);
  void optimize(const std::string& label, const std::vector<Parameter>& parameters,
                const std::vector<ValueId>& gradients, bool copies, ValueId lr, ValueId step);

  Program& program_;
  const Recipe& recipe_;
  Gpt2Shape shape_;
  std::vector<Parameter> parameters_;
};

// A weight of the recipe's tensor type. Where that is narrower than f32, the filled tensor is the f32 master and the
// weight in use is its cast, made before timing: they start out consistent, as in real training.
ValueId Gpt2Model::matrix(const std::string& name, Shape shape, double scale) {
  if (recipe_.tensor == recipe_.wide) {
    const ValueId weight =
        program_.add(tensor(name, recipe_.tensor, std::move(shape), Role::parameter, Fill::normal(scale)));
    parameters_.push_back({weight, {}});
    return weight;
  }
  const ValueId master =
      program_.add(tensor(name + ".master", recipe_.wide, std::move(shape), Role::parameter, Fill::normal(scale)));
  program_.begin(Phase::setup);
  const ValueId weight = cast(program_, recipe_.tensor, name, master);
  program_.begin(Phase::timed);
  parameters_.push_back({weight, master});
  return weight;
}

// Norm parameters are f32 in every recipe: their own masters.
ValueId Gpt2Model::wide_parameter(const std::string& name, std::int64_t n, double offset) {
  const Fill fill = offset == 0.0 ? Fill::normal(0.125) : Fill::positive(offset);
  const ValueId weight = program_.add(tensor(name, recipe_.wide, {n}, Role::parameter, fill));
  parameters_.push_back({weight, {}});
  return weight;
}

ValueId Gpt2Model::linear(const std::string& label, ValueId x, std::int64_t n, std::int64_t k) {
  const ValueId w = matrix(label + ".w", {n, k}, 1.0 / std::sqrt(static_cast<double>(k)));
  const ValueId bias = matrix(label + ".b", {n}, 0.125);
  return gemm(program_, {.transpose_b = true, .bias = true}, recipe_.math, label, x, w, {.bias = bias}).c;
}

ValueId Gpt2Model::norm(const std::string& label, ValueId x) {
  const ValueId gamma = wide_parameter(label + ".gamma", shape_.width, 1.0);
  const ValueId beta = wide_parameter(label + ".beta", shape_.width, 0.0);
  return layer_norm_forward(program_, {}, recipe_.math, label, x, gamma, beta).y;
}

ValueId Gpt2Model::self_attention(const std::string& prefix, ValueId x) {
  const auto [b, s, h, heads] = shape_;
  const std::int64_t d = h / heads;
  const ValueId qkv = linear(prefix + "qkv", x, 3 * h, h);
  TensorSpec spec = tensor("", recipe_.tensor, {b, s, heads, d}, Role::activation);
  spec.layout.strides = {s * 3 * h, 3 * h, d, 1};
  const auto part = [&](const char* name, std::int64_t first) {
    spec.name = prefix + name;
    return program_.part(qkv, spec, first);
  };
  const Attention attributes{.causal = true, .scale = 1.0 / std::sqrt(static_cast<double>(d))};
  const ValueId q = part("q", 0);
  const ValueId k = part("k", h);
  const ValueId v = part("v", 2 * h);
  const ValueId o = attention_forward(program_, attributes, recipe_.math, prefix + "attention", q, k, v).o;
  const ValueId rows = program_.part(o, tensor(prefix + "heads", recipe_.tensor, {b * s, h}, Role::activation), 0);
  return linear(prefix + "attention_out", rows, h, h);
}

ValueId Gpt2Model::mlp(const std::string& prefix, ValueId x) {
  const std::int64_t h = shape_.width;
  const ValueId w = matrix(prefix + "up.w", {4 * h, h}, 1.0 / std::sqrt(static_cast<double>(h)));
  const ValueId bias = matrix(prefix + "up.b", {4 * h}, 0.125);
  const ValueId hidden = gemm(program_, {.transpose_b = true, .bias = true, .epilogue = Gemm::Epilogue::gelu},
                              recipe_.math, prefix + "up", x, w, {.bias = bias})
                             .c;
  return linear(prefix + "down", hidden, h, 4 * h);
}

ValueId Gpt2Model::block(const std::string& prefix, ValueId x) {
  const ValueId attended = self_attention(prefix, norm(prefix + "ln1", x));
  const ValueId middle = add(program_, recipe_.math, prefix + "residual1", x, attended);
  const ValueId fed = mlp(prefix, norm(prefix + "ln2", middle));
  return add(program_, recipe_.math, prefix + "residual2", middle, fed);
}

ValueId Gpt2Model::language_model(ValueId tokens, ValueId positions, std::int64_t layers, std::int64_t vocabulary) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(shape_.width));
  const ValueId wte = matrix("wte", {vocabulary, shape_.width}, scale);
  const ValueId wpe = matrix("wpe", {shape_.sequence, shape_.width}, scale);
  const ValueId token = embedding_forward(program_, "token_embedding", wte, tokens);
  const ValueId position = embedding_forward(program_, "position_embedding", wpe, positions);
  ValueId x = add(program_, recipe_.math, "embedding", token, position);
  for (std::int64_t layer = 0; layer < layers; ++layer) x = block("block" + std::to_string(layer) + ".", x);
  return gemm(program_, {.transpose_b = true}, recipe_.math, "logits", norm("ln_f", x), wte).c;
}

void Gpt2Model::optimize(const std::string& label, const std::vector<Parameter>& parameters,
                         const std::vector<ValueId>& gradients, bool copies, ValueId lr, ValueId step) {
  std::vector<AdamWTensor> tensors;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].master.has_value() != copies) continue;
    const TensorSpec weight = program_.spec(parameters[i].weight);
    AdamWTensor t;
    t.weight = parameters[i].master.value_or(parameters[i].weight);
    t.gradient = gradients[i];
    t.m = program_.add(tensor(weight.name + ".m", recipe_.wide, weight.shape, Role::state, Fill::normal(0.0009765625)));
    t.v = program_.add(
        tensor(weight.name + ".v", recipe_.wide, weight.shape, Role::state, Fill::positive(0.0000019073486328125)));
    if (copies) t.copy = parameters[i].weight;
    tensors.push_back(t);
  }
  if (!tensors.empty()) adamw(program_, {.copies = copies}, recipe_.math, label, lr, step, tensors);
}

std::vector<ValueId> Gpt2Model::train(ValueId value, std::optional<ValueId> seed_gradient,
                                      const std::vector<ValueId>& also_wanted) {
  std::vector<ValueId> wanted = also_wanted;
  for (const Parameter& parameter : parameters_) wanted.push_back(parameter.weight);
  const auto by_value = differentiate(program_, std::array{Seed{value, seed_gradient}}, wanted);
  std::vector<ValueId> gradients;
  for (const Parameter& parameter : parameters_) gradients.push_back(by_value.at(parameter.weight));
  const ValueId norm = gradient_norm(program_, recipe_.math, "gradient_norm", gradients);
  const std::vector<ValueId> clipped = clip(program_, {.limit = 1.0}, recipe_.math, "clip", norm, gradients);
  const ValueId lr = program_.add(tensor("lr", DType::f32, {1}, Role::scalar, Fill::constant(1.0 / 2048)));
  const ValueId step = program_.add(tensor("step", DType::i32, {1}, Role::scalar, Fill::constant(10)));
  optimize("adamw", parameters_, clipped, false, lr, step);
  optimize("adamw_mixed", parameters_, clipped, true, lr, step);
  return gradients;
}

// The workloads.

Gpt2Shape shape_of(const Case& c) { return {c.dim("b"), c.dim("s"), c.dim("h"), c.dim("heads")}; }

double tokens_of(const Case& c) { return static_cast<double>(c.dim("b") * c.dim("s") * c.ranks); }

/// A source sharded over the ranks.
ValueId add_part(Program& p, TensorSpec spec) {
  spec.placement = Placement::shard(0);
  return p.add(std::move(spec));
}

Program block_step(const Case& c, const Recipe& r) {
  const Gpt2Shape shape = shape_of(c);
  Program p;
  const ValueId x =
      add_part(p, tensor("x", r.tensor, {shape.tokens(), shape.width}, Role::input, Fill::norm_rows(1.0)));
  const ValueId dy =
      add_part(p, tensor("dy", r.tensor, {shape.tokens(), shape.width}, Role::gradient, Fill::normal(0.03125)));
  Gpt2Model model(p, r, shape);
  const ValueId y = model.block("", x);
  const std::vector<ValueId> gradients = model.train(y, dy, {x});
  return data_parallel(p, {.ranks = c.ranks, .reduction = Reduction::sum, .math = r.math}, gradients);
}

Program train_step(const Case& c, const Recipe& r) {
  const Gpt2Shape shape = shape_of(c);
  const std::int64_t vocabulary = c.dim("vocab");
  Program p;
  const ValueId tokens =
      add_part(p, tensor("tokens", DType::i32, {shape.tokens()}, Role::input, Fill::integers(0, vocabulary - 1)));
  const ValueId labels =
      add_part(p, tensor("labels", DType::i32, {shape.tokens()}, Role::input, Fill::integers(0, vocabulary - 1)));
  const ValueId positions =
      p.add(tensor("positions", DType::i32, {shape.tokens()}, Role::input, Fill::sequence(0, shape.sequence - 1)));
  Gpt2Model model(p, r, shape);
  const ValueId logits = model.language_model(tokens, positions, c.dim("layers"), vocabulary);
  const ValueId loss = cross_entropy_forward(p, r.math, "loss", logits, labels).loss;
  const std::vector<ValueId> gradients = model.train(loss, {}, {});
  return data_parallel(p, {.ranks = c.ranks, .math = r.math}, gradients);
}

Grid blocks() {
  const auto point = [](std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t heads, std::string label,
                        Tier tier) {
    return Point{{{"b", b}, {"s", s}, {"h", h}, {"heads", heads}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = training_recipes();
  grid.points = {
      point(1, 256, 256, 4, "gpt2 block, a third of the width", Tier::smoke),
      point(1, 512, 768, 12, "gpt2-124m block", Tier::quick),
      point(4, 1024, 768, 12, "gpt2-124m block", Tier::standard),
      point(4, 1024, 1600, 25, "gpt2-1558m block", Tier::large),
      point(1, 2048, 12288, 96, "gpt3-175b block", Tier::large),
  };
  return grid;
}

Grid models() {
  const auto point = [](std::int64_t b, std::int64_t s, std::int64_t layers, std::int64_t h, std::int64_t heads,
                        std::int64_t vocab, std::string label, Tier tier) {
    return Point{
        {{"b", b}, {"s", s}, {"layers", layers}, {"h", h}, {"heads", heads}, {"vocab", vocab}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = training_recipes();
  grid.points = {
      point(2, 64, 2, 128, 4, 512, "2-layer gpt2", Tier::smoke),
      point(4, 128, 4, 256, 4, 2048, "4-layer gpt2", Tier::quick),
      point(4, 1024, 12, 768, 12, 50304, "gpt2-124m", Tier::standard),
      point(16, 1024, 12, 768, 12, 50304, "gpt2-124m", Tier::large),
      point(4, 1024, 24, 1024, 16, 50304, "gpt2-350m", Tier::large),
  };
  return grid;
}

WorkloadInfo step(std::string name, std::string description) {
  WorkloadInfo info{std::move(name), std::move(description), "b", PrimaryMetric::items_per_s,
                    "tokens",        CacheMode::step};
  info.most_ranks = 64;
  return info;
}

}  // namespace

Suite transformer() {
  return {"transformer",
          "whole training steps of transformers: forward, backward, clip, AdamW",
          {
              declare({step("gpt2_block", "one GPT-2 block: forward, backward, AdamW step"), blocks(), block_step,
                       tokens_of}),
              declare({step("gpt2_train_step", "a whole GPT-2 training step: embedding to AdamW"), models(), train_step,
                       tokens_of}),
          }};
}

}  // namespace gpubench::suites
