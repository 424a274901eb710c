#include "suites/models/layers.h"

#include <array>
#include <cmath>
#include <utility>

#include "reference/ops/attention.h"
#include "reference/ops/embedding.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/data_parallel.h"
#include "reference/ops/transform/differentiate.h"

namespace gpubench::suites {

ValueId Layers::batch(TensorSpec spec) {
  spec.placement = Placement::shard(0);
  return program_.add(std::move(spec));
}

ValueId Layers::classes(const std::string& name, std::int64_t n, std::int64_t classes) {
  return batch(tensor(name, DType::i32, {n}, Role::input, Fill::integers(0, classes - 1)));
}

ValueId Layers::positions(const std::string& name, std::int64_t n, std::int64_t period) {
  return program_.add(tensor(name, DType::i32, {n}, Role::input, Fill::sequence(0, period - 1)));
}

ValueId Layers::matrix(const std::string& name, Shape shape, double scale) {
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

ValueId Layers::wide_parameter(const std::string& name, std::int64_t n, double offset) {
  const Fill fill = offset == 0.0 ? Fill::normal(0.125) : Fill::positive(offset);
  const ValueId weight = program_.add(tensor(name, recipe_.wide, {n}, Role::parameter, fill));
  parameters_.push_back({weight, {}});
  return weight;
}

ValueId Layers::linear(const std::string& label, ValueId x, std::int64_t n, const Gemm& attributes) {
  const std::int64_t k = program_.spec(x).shape[-1];
  const ValueId w = matrix(label + ".w", {n, k}, 1.0 / std::sqrt(static_cast<double>(k)));
  GemmOperands operands;
  if (attributes.bias) operands.bias = matrix(label + ".b", {n}, 0.125);
  return gemm(program_, attributes, recipe_.math, label, x, w, operands).c;
}

ValueId Layers::layer_norm(const std::string& label, ValueId x, double epsilon) {
  const std::int64_t n = program_.spec(x).shape[-1];
  const ValueId gamma = wide_parameter(label + ".gamma", n, 1.0);
  const ValueId beta = wide_parameter(label + ".beta", n, 0.0);
  return layer_norm_forward(program_, {.epsilon = epsilon}, recipe_.math, label, x, gamma, beta).y;
}

ValueId Layers::rms_norm(const std::string& label, ValueId x) {
  const ValueId gamma = wide_parameter(label + ".gamma", program_.spec(x).shape[-1], 1.0);
  return rms_norm_forward(program_, {}, recipe_.math, label, x, gamma).y;
}

ValueId Layers::sum(const std::string& label, ValueId a, ValueId b) { return add(program_, recipe_.math, label, a, b); }

ValueId Layers::reshaped(const std::string& name, ValueId x, Shape shape) {
  const TensorSpec& spec = program_.spec(x);
  return program_.part(x, tensor(name, spec.dtype, std::move(shape), spec.role), 0);
}

ValueId Layers::columns_of(const std::string& name, ValueId x, const Shape& shape, std::int64_t first) {
  const std::int64_t width = program_.spec(x).shape[-1];
  TensorSpec spec = tensor(name, program_.spec(x).dtype, shape, Role::activation);
  if (shape.rank() == 2) {
    spec.layout.strides = {width, 1};
  } else {
    spec.layout.strides = {shape[1] * width, width, shape[3], 1};
  }
  return program_.part(x, std::move(spec), first);
}

ValueId Layers::attention(const std::string& prefix, ValueId q, ValueId k, ValueId v, bool causal) {
  const Shape shape = program_.spec(q).shape;
  const Attention attributes{.causal = causal, .scale = 1.0 / std::sqrt(static_cast<double>(shape[3]))};
  const ValueId o = attention_forward(program_, attributes, recipe_.math, prefix + "attention", q, k, v).o;
  return reshaped(prefix + "heads", o, {shape[0] * shape[1], shape[2] * shape[3]});
}

ValueId Layers::self_attention(const std::string& prefix, ValueId x, const Heads& heads, bool causal) {
  const std::int64_t h = program_.spec(x).shape[-1];
  const Shape shape{heads.b, heads.s, heads.heads, h / heads.heads};
  const ValueId qkv = linear(prefix + "qkv", x, 3 * h);
  const ValueId q = columns_of(prefix + "q", qkv, shape, 0);
  const ValueId k = columns_of(prefix + "k", qkv, shape, h);
  const ValueId v = columns_of(prefix + "v", qkv, shape, 2 * h);
  return linear(prefix + "attention_out", attention(prefix, q, k, v, causal), h);
}

RotaryTables Layers::rotary_tables(std::int64_t s, std::int64_t head_width) {
  const auto table = [&](const char* name) {
    return program_.add(tensor(name, recipe_.wide, {s, head_width / 2}, Role::input, Fill::normal(0.5)));
  };
  const ValueId cos = table("cos");
  return {cos, table("sin")};
}

ValueId Layers::swiglu_mlp(const std::string& prefix, ValueId x, std::int64_t hidden) {
  const Shape shape = program_.spec(x).shape;
  const ValueId both = linear(prefix + "gate_up", x, 2 * hidden, {.transpose_b = true});
  const ValueId gate = columns_of(prefix + "gate", both, {shape[0], hidden}, 0);
  const ValueId up = columns_of(prefix + "up", both, {shape[0], hidden}, hidden);
  return linear(prefix + "down", swiglu_forward(program_, recipe_.math, prefix + "swiglu", gate, up), shape[1],
                {.transpose_b = true});
}

ValueId Layers::embedding(const std::string& label, ValueId indices, std::int64_t count, std::int64_t width) {
  const ValueId table = matrix(label + ".table", {count, width}, 1.0 / std::sqrt(static_cast<double>(width)));
  return embedding_forward(program_, label, table, indices);
}

std::vector<ValueId> Layers::backward(ValueId value, std::optional<ValueId> seed_gradient,
                                      const std::vector<ValueId>& also_wanted) {
  std::vector<ValueId> wanted = also_wanted;
  for (const Parameter& parameter : parameters_) wanted.push_back(parameter.weight);
  const auto by_value = differentiate(program_, std::array{Seed{value, seed_gradient}}, wanted);
  std::vector<ValueId> gradients;
  for (const Parameter& parameter : parameters_) gradients.push_back(by_value.at(parameter.weight));
  return gradients;
}

void Layers::adamw(const std::vector<ValueId>& gradients) {
  const ValueId norm = gradient_norm(program_, recipe_.math, "gradient_norm", gradients);
  const std::vector<ValueId> clipped = clip(program_, {.limit = 1.0}, recipe_.math, "clip", norm, gradients);
  const ValueId lr = program_.add(tensor("lr", DType::f32, {1}, Role::scalar, Fill::constant(1.0 / 2048)));
  const ValueId step = program_.add(tensor("step", DType::i32, {1}, Role::scalar, Fill::constant(10)));
  adamw("adamw", clipped, false, lr, step);
  adamw("adamw_mixed", clipped, true, lr, step);
}

void Layers::adamw(const std::string& label, const std::vector<ValueId>& gradients, bool copies, ValueId lr,
                   ValueId step) {
  std::vector<AdamWTensor> tensors;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].master.has_value() != copies) continue;
    const TensorSpec weight = program_.spec(parameters_[i].weight);
    AdamWTensor t;
    t.weight = parameters_[i].master.value_or(parameters_[i].weight);
    t.gradient = gradients[i];
    t.m = program_.add(tensor(weight.name + ".m", recipe_.wide, weight.shape, Role::state, Fill::normal(0.0009765625)));
    t.v = program_.add(
        tensor(weight.name + ".v", recipe_.wide, weight.shape, Role::state, Fill::positive(0.0000019073486328125)));
    if (copies) t.copy = parameters_[i].weight;
    tensors.push_back(t);
  }
  if (!tensors.empty()) gpubench::adamw(program_, {.copies = copies}, recipe_.math, label, lr, step, tensors);
}

Program block_step(const Case& c, const Recipe& r, const Shape& x_shape, Optimizer optimizer,
                   const std::function<ValueId(Layers&, ValueId x)>& forward) {
  Program p;
  Layers layers(p, r);
  const ValueId x = layers.batch(tensor("x", r.tensor, x_shape, Role::input, Fill::norm_rows(1.0)));
  const ValueId dy = layers.batch(tensor("dy", r.tensor, x_shape, Role::gradient, Fill::normal(0.03125)));
  const std::vector<ValueId> gradients = layers.backward(forward(layers, x), dy, {x});
  (layers.*optimizer)(gradients);
  return data_parallel(p, {.ranks = c.ranks, .reduction = Reduction::sum, .math = r.math}, gradients);
}

Program train_step(const Case& c, const Recipe& r, Optimizer optimizer,
                   const std::function<ValueId(Layers&)>& forward) {
  Program p;
  Layers layers(p, r);
  const std::vector<ValueId> gradients = layers.backward(forward(layers));
  (layers.*optimizer)(gradients);
  return data_parallel(p, {.ranks = c.ranks, .math = r.math}, gradients);
}

}  // namespace gpubench::suites
