#include "suites/gpt2_model.h"

#include <array>
#include <cmath>

#include "reference/ops/attention.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/differentiate.h"

namespace gpubench::suites {

// A weight of the recipe's tensor type. Where that is narrower than f32, the filled tensor is the f32 master and the
// weight in use is its cast, made before timing: they start out consistent, as in a real training.
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

}  // namespace gpubench::suites
