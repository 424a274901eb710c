#include "suites/models/layers.h"

#include <array>
#include <cmath>
#include <utility>

#include "harness/core/step_parts.h"
#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/quantize.h"
#include "reference/ops/transform/batches.h"
#include "reference/ops/transform/checkpoint.h"
#include "reference/ops/transform/differentiate.h"
#include "reference/ops/transform/partition.h"
#include "reference/ops/transform/pipeline.h"
#include "suites/suites.h"

namespace gpubench::suites {

ValueId Layers::batch(TensorSpec spec) {
  spec.placement = Placement::shard(0);
  return program_.add(std::move(spec));
}

ValueId Layers::classes(const std::string& name, std::int64_t n, std::int64_t classes) {
  return batch(tensor(name, DType::i32, {n}, Role::input, Fill::integers(0, classes - 1)));
}

ValueId Layers::labels(const Case& c, std::int64_t n, std::int64_t classes) {
  if (!c.has_mode(masked_mode)) return this->classes("labels", n, classes);
  return batch(
      tensor("labels", DType::i32, {n}, Role::input, Fill::masked(0, classes - 1, CrossEntropy{}.ignore_index)));
}

ValueId Layers::loss(const Case& c, ValueId logits, ValueId labels) {
  return cross_entropy_forward(program_, recipe_.math, "loss", logits, labels, {.ignores = c.has_mode(masked_mode)})
      .loss;
}

ValueId Layers::sequence(const std::string& name, std::int64_t n, std::int64_t period, std::int64_t step) {
  by_position_.insert(name);
  const Fill fill{Fill::Kind::sequence, static_cast<double>(step), 0, (period - 1) * step};
  return program_.add(tensor(name, DType::i32, {n}, Role::input, fill));
}

ValueId Layers::source(TensorSpec spec, const MaybeCut& cut, bool is_experts) {
  if (cut) (is_experts ? expert_cuts_ : cuts_)[spec.name] = *cut;
  trained_.insert(spec.name);
  return program_.add(std::move(spec));
}

Cuts Layers::weight_cuts(const Program& step, int ranks) const {
  Cuts cuts;
  for (const Value& value : step.values()) {
    const std::string_view name = value.spec.global_name();
    if (value.source && !value.part_of && trained_.contains(name) && value.spec.shape[0] % ranks == 0)
      cuts[std::string(name)] = Cut{0};
  }
  return cuts;
}

ValueId Layers::matrix(const std::string& name, Shape shape, double scale, const MaybeCut& cut) {
  return weight(name, std::move(shape), scale, cut, false);
}

ValueId Layers::experts(const std::string& name, Shape shape, double scale) {
  return weight(name, std::move(shape), scale, Cut{0}, true);
}

ValueId Layers::weight(const std::string& name, Shape shape, double scale, const MaybeCut& cut, bool is_experts) {
  const Fill fill = Fill::normal(scale);
  if (recipe_.tensor == recipe_.wide) {
    const ValueId weight =
        source(tensor(name, recipe_.tensor, std::move(shape), Role::parameter, fill), cut, is_experts);
    parameters_.push_back({weight, {}, cut, is_experts});
    return weight;
  }
  const ValueId master =
      source(tensor(name + ".master", recipe_.wide, std::move(shape), Role::parameter, fill), cut, is_experts);
  program_.begin(Phase::setup);
  const ValueId weight = cast(program_, recipe_.tensor, name, master);
  program_.begin(Phase::timed);
  parameters_.push_back({weight, master, cut, is_experts});
  return weight;
}

ValueId Layers::wide_parameter(const std::string& name, std::int64_t n, double offset) {
  const Fill fill = offset == 0.0 ? Fill::normal(0.125) : Fill::positive(offset);
  const ValueId weight = source(tensor(name, recipe_.wide, {n}, Role::parameter, fill), {});
  parameters_.push_back({weight, {}, {}});
  return weight;
}

ValueId Layers::linear(const std::string& label, ValueId x, std::int64_t n, const Gemm& attributes,
                       const MaybeCut& cut) {
  const std::int64_t k = program_.spec(x).shape[-1];
  const ValueId w = matrix(label + ".w", {n, k}, 1.0 / std::sqrt(static_cast<double>(k)), cut);
  const bool cuts_columns = cut && cut->axis == 0;
  GemmOperands operands;
  if (attributes.bias) operands.bias = matrix(label + ".b", {n}, 0.125, cuts_columns ? cut : MaybeCut{});
  if (!recipe_.quantizes()) return gemm(program_, attributes, recipe_.math, label, x, w, operands).c;
  const Quantized narrow_x = quantize_by_amax(program_, recipe_.operand, recipe_.math, label + ".x.f8", x);
  const Quantized narrow_w = quantize_by_amax(program_, recipe_.operand, recipe_.math, label + ".w.f8", w);
  Gemm scaled = attributes;
  scaled.scaled = true;
  operands.scale_a = narrow_x.inverse;
  operands.scale_b = narrow_w.inverse;
  return gemm(program_, scaled, recipe_.math, label, narrow_x.values, narrow_w.values, operands).c;
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

ValueId Layers::patches(ValueId image, std::int64_t patch) {
  const Shape shape = program_.spec(image).shape;
  const std::int64_t n = shape[0], down = shape[1] / patch, across = shape[2] / patch, c = shape[3];
  const ValueId cut = reshaped("cut", image, {n, down, patch, across, patch, c});
  const ValueId turned = transpose(program_, {{0, 1, 3, 2, 4, 5}}, "patches", cut);
  return reshaped("patch_rows", turned, {n * down * across, patch * patch * c});
}

ValueId Layers::reshaped(const std::string& name, ValueId x, Shape shape) {
  const TensorSpec& spec = program_.spec(x);
  return program_.part(x, tensor(name, spec.dtype, std::move(shape), spec.role), 0);
}

ValueId Layers::columns_of(const std::string& name, ValueId x, const Shape& shape, std::int64_t first,
                           std::int64_t per_head) {
  const std::int64_t width = program_.spec(x).shape[-1];
  TensorSpec spec = tensor(name, program_.spec(x).dtype, shape, Role::activation);
  if (shape.rank() == 2) {
    spec.layout.strides = {width, 1};
  } else {
    spec.layout.strides = {shape[1] * width, width, per_head == 0 ? shape[3] : per_head, 1};
  }
  return program_.part(x, std::move(spec), first);
}

ValueId Layers::attention(const std::string& prefix, ValueId q, ValueId k, ValueId v, bool causal) {
  const Shape shape = program_.spec(q).shape;
  const Attention attributes{.causal = causal, .scale = 1.0 / std::sqrt(static_cast<double>(shape[3]))};
  const ValueId o = attention_forward(program_, attributes, recipe_.math, prefix + "attention", q, k, v).o;
  return reshaped(prefix + "heads", o, {shape[0] * shape[1], shape[2] * program_.spec(o).shape[3]});
}

ValueId Layers::self_attention(const std::string& prefix, ValueId x, const Heads& heads, bool causal) {
  const std::int64_t h = program_.spec(x).shape[-1];
  const Shape shape{heads.b, heads.s, heads.heads, h / heads.heads};
  const ValueId qkv = linear(prefix + "qkv", x, 3 * h, with_bias, by_columns({h, h, h}));
  const ValueId q = columns_of(prefix + "q", qkv, shape, 0);
  const ValueId k = columns_of(prefix + "k", qkv, shape, h);
  const ValueId v = columns_of(prefix + "v", qkv, shape, 2 * h);
  return linear(prefix + "attention_out", attention(prefix, q, k, v, causal), h, with_bias, by_rows);
}

ValueId Layers::relu(const std::string& label, ValueId x) { return relu_forward(program_, recipe_.math, label, x); }

ValueId Layers::conv_norm(const std::string& label, ValueId x, std::int64_t k, std::int64_t r, std::int64_t stride) {
  const std::int64_t c = program_.spec(x).shape[3];
  const double scale = std::sqrt(2.0 / static_cast<double>(r * r * c));  // He et al., arXiv 1502.01852
  const ValueId filter = matrix(label + ".filter", {k, r, r, c}, scale);
  const Conv2d attributes{.stride_h = stride, .stride_w = stride, .pad_h = r / 2, .pad_w = r / 2};
  const ValueId y = conv2d_forward(program_, attributes, recipe_.math, label, x, filter);
  const ValueId gamma = wide_parameter(label + ".gamma", k, 1.0);
  const ValueId beta = wide_parameter(label + ".beta", k, 0.0);
  const auto running = [&](const char* name, const Fill& fill) {
    return program_.add(tensor(label + name, recipe_.wide, {k}, Role::state, fill));
  };
  const ValueId mean = running(".running_mean", Fill::normal(0.125));
  const ValueId var = running(".running_var", Fill::positive(1.0));
  return batch_norm_forward(program_, {}, recipe_.math, label + ".norm", y, {gamma, beta, mean, var}).y;
}

ValueId Layers::gelu_mlp(const std::string& prefix, ValueId x, std::int64_t hidden, GeluForm form) {
  const std::int64_t h = program_.spec(x).shape[1];
  const Gemm with_gelu{.transpose_b = true, .bias = true, .epilogue = Gemm::Epilogue::gelu, .gelu_form = form};
  return linear(prefix + "down", linear(prefix + "up", x, hidden, with_gelu, by_columns()), h, with_bias, by_rows);
}

RotaryTables Layers::rotary_tables(std::int64_t s, std::int64_t head_width) {
  const auto table = [&](const char* name) {
    by_position_.insert(name);
    return program_.add(tensor(name, recipe_.wide, {s, head_width / 2}, Role::input, Fill::normal(0.5)));
  };
  const ValueId cos = table("cos");
  return {cos, table("sin")};
}

ValueId Layers::swiglu_mlp(const std::string& prefix, ValueId x, std::int64_t hidden) {
  const Shape shape = program_.spec(x).shape;
  const ValueId both = linear(prefix + "gate_up", x, 2 * hidden, no_bias, by_columns({hidden, hidden}));
  const ValueId gate = columns_of(prefix + "gate", both, {shape[0], hidden}, 0);
  const ValueId up = columns_of(prefix + "up", both, {shape[0], hidden}, hidden);
  return linear(prefix + "down", swiglu_forward(program_, recipe_.math, prefix + "swiglu", gate, up), shape[1], no_bias,
                by_rows);
}

ValueId Layers::embedding(const std::string& label, ValueId indices, std::int64_t count, std::int64_t width,
                          const MaybeCut& cut) {
  const ValueId table = matrix(label + ".table", {count, width}, 1.0 / std::sqrt(static_cast<double>(width)), cut);
  return embedding_forward(program_, label, table, indices);
}

std::vector<ValueId> Layers::backward(ValueId value, std::optional<ValueId> seed_gradient,
                                      const std::vector<ValueId>& further_values) {
  std::vector<ValueId> wanted = further_values;
  for (const Parameter& parameter : parameters_) wanted.push_back(parameter.weight);
  const auto by_value =
      differentiate(program_, std::array{Seed{value, seed_gradient}}, wanted, recipe_.gradient_operand);
  std::vector<ValueId> gradients;
  for (const Parameter& parameter : parameters_) gradients.push_back(by_value.at(parameter.weight));
  return gradients;
}

std::optional<ValueId> Layers::loss_scale() {
  if (recipe_.tensor != DType::f16) return {};
  return program_.add(tensor("loss_scale", recipe_.wide, {1}, Role::state, Fill::constant(1024)));
}

void Layers::update(Optimizer optimizer, const std::vector<ValueId>& gradients, std::optional<ValueId> scale) {
  if (!scale) {
    (this->*optimizer)(gradients);
    return;
  }
  const Unscale unscaled = unscale(program_, recipe_.math, "unscale", *scale, gradients);
  found_inf_ = unscaled.found_inf;
  (this->*optimizer)(unscaled.gradients);
  const ValueId tracker = program_.add(tensor("loss_scale.tracker", DType::i32, {1}, Role::state, Fill::constant(10)));
  update_scale(program_, {}, "update_scale", *scale, tracker, unscaled.found_inf);
}

void Layers::adamw(const std::vector<ValueId>& gradients) {
  const ValueId norm = gradient_norm(program_, recipe_.math, "gradient_norm", gradients);
  const std::vector<ValueId> clipped = clip(program_, {.limit = 1.0}, recipe_.math, "clip", norm, gradients);
  const ValueId lr = program_.add(tensor("lr", DType::f32, {1}, Role::scalar, Fill::constant(1.0 / 2048)));
  const ValueId step = program_.add(tensor("step", DType::i32, {1}, Role::scalar, Fill::constant(10)));
  adamw("adamw", clipped, false, lr, step);
  adamw("adamw_mixed", clipped, true, lr, step);
}

ValueId Layers::moment(const Parameter& parameter, const char* suffix, const Fill& fill) {
  const TensorSpec weight = program_.spec(parameter.weight);
  return source(tensor(weight.name + suffix, recipe_.wide, weight.shape, Role::state, fill), parameter.cut,
                parameter.is_experts);
}

void Layers::adamw(const std::string& label, const std::vector<ValueId>& gradients, bool copies, ValueId lr,
                   ValueId step) {
  std::vector<AdamWTensor> tensors;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (parameter.master.has_value() != copies) continue;
    AdamWTensor t;
    t.weight = parameter.master.value_or(parameter.weight);
    t.gradient = gradients[i];
    t.m = moment(parameter, ".m", Fill::normal(0.0009765625));
    t.v = moment(parameter, ".v", Fill::positive(0.0000019073486328125));
    if (copies) t.copy = parameter.weight;
    tensors.push_back(t);
  }
  if (tensors.empty()) return;
  gpubench::adamw(program_, {.copies = copies}, recipe_.math, label, lr, step, tensors, found_inf_);
}

void Layers::sgd(const std::vector<ValueId>& gradients) {
  const ValueId lr = program_.add(tensor("lr", DType::f32, {1}, Role::scalar, Fill::constant(0.125)));
  sgd("sgd", gradients, false, lr);
  sgd("sgd_mixed", gradients, true, lr);
}

void Layers::sgd(const std::string& label, const std::vector<ValueId>& gradients, bool copies, ValueId lr) {
  std::vector<SgdTensor> tensors;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (parameter.master.has_value() != copies) continue;
    SgdTensor t;
    t.weight = parameter.master.value_or(parameter.weight);
    t.gradient = gradients[i];
    t.m = moment(parameter, ".m", Fill::normal(0.0009765625));
    if (copies) t.copy = parameter.weight;
    tensors.push_back(t);
  }
  if (tensors.empty()) return;
  gpubench::sgd(program_, {.weight_decay = 1e-4, .copies = copies}, recipe_.math, label, lr, tensors, found_inf_);
}

Block token_block(const Recipe& r, std::int64_t tokens, std::int64_t width,
                  std::function<ValueId(Layers&, ValueId x)> forward) {
  const Shape shape{tokens, width};
  return {tensor("x", r.tensor, shape, Role::input, Fill::norm_rows(1.0)), shape, &Layers::adamw, std::move(forward)};
}

namespace {

/// One rank's step on one micro-batch, extended by the case's recomputation, micro-batches and ranks.
Program whole_step(const Case& c, Layers& layers, const std::vector<ValueId>& gradients, Reduction reduction) {
  const Recipe& r = layers.recipe();
  const Program step = c.has_mode(recompute_mode)
                           ? checkpoint(layers.program(), every_nth_block(1, [](const OpCall&) { return true; }))
                           : layers.program();
  const Accumulated all = accumulate(step, {static_cast<int>(micro_batches(c)), reduction, r.wide, r.math}, gradients);
  const RankLayout parallel = c.parallel();
  if (c.ranks % parallel.ranks() != 0)
    throw ProgramError(std::to_string(c.ranks) + " ranks cannot form groups of " + std::to_string(parallel.ranks()) +
                       " that share their tensors");
  const PartitionedStep in_tensors =
      tensor_parallel(all.program, {parallel.tp, parallel.scatters_tokens, r.math}, layers.cuts(), all.gradients);
  const PartitionedStep in_experts =
      expert_parallel(in_tensors.program, {parallel.ep, reduction, r.math}, layers.expert_cuts(), in_tensors.gradients);
  const PartitionedStep shared =
      fully_sharded(in_experts.program, {parallel.fsdp, reduction, r.math},
                    layers.weight_cuts(in_experts.program, parallel.fsdp), in_experts.gradients);
  const PartitionedStep staged =
      pipeline_parallel(shared.program, {parallel.pp, parallel.vp, r.math}, shared.gradients);
  const PartitionedStep in_parts = context_parallel(staged.program,
                                                    {.ranks = parallel.cp,
                                                     .tokens = parallel.cp > 1 ? c.dim("s") : 0,
                                                     .ring = parallel.passes_keys,
                                                     .by_position = layers.by_position(),
                                                     .reduction = reduction,
                                                     .math = r.math},
                                                    staged.gradients);
  return weigh_losses(
      data_parallel(in_parts.program, {.ranks = c.ranks / parallel.ranks(), .reduction = reduction, .math = r.math},
                    in_parts.gradients),
      r.math, r.wide);
}

}  // namespace

Program block_step(const Case& c, const Recipe& r, const Block& block) {
  Program p;
  Layers layers(p, r);
  const ValueId x = layers.batch(block.x);
  const ValueId dy = layers.batch(tensor("dy", r.tensor, block.y, Role::gradient, Fill::normal(0.03125)));
  const std::vector<ValueId> gradients = layers.backward(block.forward(layers, x), dy, {x});
  layers.update(block.optimizer, gradients, layers.loss_scale());  // the incoming dy is of a scaled loss
  return whole_step(c, layers, gradients, Reduction::sum);
}

Program train_step(const Case& c, const Recipe& r, Optimizer optimizer,
                   const std::function<Objective(Layers&)>& forward) {
  Program p;
  Layers layers(p, r);
  const Objective objective = forward(layers);
  // The scale seeds the backward; a given gradient is not scaled.
  const std::optional<ValueId> scale = objective.gradient ? std::nullopt : layers.loss_scale();
  const std::vector<ValueId> gradients =
      layers.backward(objective.value, objective.gradient ? objective.gradient : scale);
  layers.update(optimizer, gradients, scale);
  return whole_step(c, layers, gradients, Reduction::average);
}

}  // namespace gpubench::suites
