// Steps of optimizers, the clipping of their gradients, and loss scaling.
#include <array>

#include "reference/ops/optimizer.h"
#include "suites/variants/variants.h"

namespace gpubench::variants {
namespace {

/// Three parameters: a matrix, a vector and a number.
std::array<Shape, 3> shapes_of(const VariantBuild& call) { return {Shape{5, call.n}, Shape{call.n}, Shape{1}}; }

struct Parameter {
  ValueId w, g, m;
  std::optional<ValueId> copy;
};

/// `is_first`: moments are 0, as before the first step.
std::vector<Parameter> parameters_of(VariantBuild& call, bool copies, bool is_first = false) {
  std::vector<Parameter> parameters;
  for (const Shape& shape : shapes_of(call)) {
    Parameter& one = parameters.emplace_back();
    one.w = call.wide("w", shape);
    one.g = call.in("g", shape, Fill::tiny_mix(1.0));
    one.m = call.wide("m", shape, is_first ? Fill::constant(0.0) : Fill::normal(0.5));
    if (copies) one.copy = call.in("copy", shape);
  }
  return parameters;
}

std::vector<AdamWTensor> tensors_of_adamw(VariantBuild& call, bool copies) {
  const bool is_first = call.other("step") == 1;
  std::vector<AdamWTensor> tensors;
  for (const Parameter& one : parameters_of(call, copies, is_first)) {
    const ValueId v = call.wide("v", call.p.spec(one.w).shape, is_first ? Fill::constant(0.0) : Fill::positive(0.25));
    tensors.push_back({one.w, one.g, one.m, v, one.copy});
  }
  return tensors;
}

std::vector<SgdTensor> with_momentum(const std::vector<Parameter>& parameters) {
  std::vector<SgdTensor> tensors;
  for (const Parameter& one : parameters) tensors.push_back({one.w, one.g, one.m, one.copy});
  return tensors;
}

ValueId number(VariantBuild& call, const char* name, double value) {
  return call.wide(name, {1}, Fill::constant(value));
}

std::optional<ValueId> found_inf(VariantBuild& call, bool skips) {
  if (!skips) return std::nullopt;
  return number(call, "found_inf", static_cast<double>(call.other("found")));
}

ValueId step_of(VariantBuild& call) {
  return call.source("step", DType::i32, {1}, Fill::constant(static_cast<double>(call.other("step"))));
}

void build_adamw(VariantBuild& call) {
  const auto& attributes = call.attributes<AdamW>();
  const std::vector<AdamWTensor> tensors = tensors_of_adamw(call, attributes.copies);
  const ValueId lr = number(call, "lr", 0x1p-10), step = step_of(call);
  adamw(call.p, attributes, call.r.math, call.label, lr, step, tensors, found_inf(call, attributes.skips));
}

void build_clip_adamw(VariantBuild& call) {
  const auto& attributes = call.attributes<ClipAdamW>();
  const std::vector<AdamWTensor> tensors = tensors_of_adamw(call, attributes.adamw.copies);
  const ValueId norm = number(call, "norm", 4.0), lr = number(call, "lr", 0x1p-10), step = step_of(call);
  clip_adamw(call.p, attributes, call.r.math, call.label, norm, lr, step, tensors,
             found_inf(call, attributes.adamw.skips));
}

void build_lion(VariantBuild& call) {
  const auto& attributes = call.attributes<Lion>();
  const std::vector<SgdTensor> tensors = with_momentum(parameters_of(call, attributes.copies));
  const ValueId lr = number(call, "lr", 0x1p-10);
  lion(call.p, attributes, call.r.math, call.label, lr, tensors, found_inf(call, attributes.skips));
}

void build_sgd(VariantBuild& call) {
  const auto& attributes = call.attributes<Sgd>();
  const std::vector<SgdTensor> tensors = with_momentum(parameters_of(call, attributes.copies));
  const ValueId lr = number(call, "lr", 0x1p-10);
  sgd(call.p, attributes, call.r.math, call.label, lr, tensors, found_inf(call, attributes.skips));
}

std::vector<ValueId> gradients_of(VariantBuild& call) {
  std::vector<ValueId> gradients;
  for (const Shape& shape : shapes_of(call)) gradients.push_back(call.in("g", shape));
  return gradients;
}

void build_clip(VariantBuild& call) {
  const std::vector<ValueId> gradients = gradients_of(call);
  const ValueId norm = gradient_norm(call.p, call.r.math, call.label + ".norm", gradients);
  (void)clip(call.p, call.attributes<Clip>(), call.r.math, call.label, norm, gradients);
}

void build_unscale(VariantBuild& call) {
  const ValueId scale = number(call, "scale", 768.0);
  (void)unscale(call.p, call.r.math, call.label, scale, gradients_of(call));
}

void build_update_scale(VariantBuild& call) {
  const ValueId scale = number(call, "scale", 768.0);
  const ValueId tracker =
      call.source("tracker", DType::i32, {1}, Fill::constant(static_cast<double>(call.other("tracker"))));
  update_scale(call.p, call.attributes<UpdateScale>(), call.label, scale, tracker, *found_inf(call, true));
}

}  // namespace

std::vector<Variants> optimizer_variants() {
  const Factor copies{"copies"}, skips{"skips"}, found{"found", {0, 1}}, step{"step", {1, 1000}};
  const Factor decay{"weight_decay", {0.0, 0.125}};
  const Factor first{"beta1", {0.9, 0.8}}, second{"beta2", {0.999, 0.99}}, epsilon{"epsilon", {1e-8, 0x1p-6}};
  const std::vector<Factor> adamw_factors{first, second, epsilon, decay, copies, skips, {"l2"}, found, step};
  std::vector<Factor> clip_factors = adamw_factors;
  clip_factors.push_back({"limit", {1.0, 8.0}});
  return {
      {"adamw", adamw_kind, adamw_factors, build_adamw},
      {"clip_adamw", clip_adamw_kind, clip_factors, build_clip_adamw},
      {"lion", lion_kind, {first, second, decay, copies, skips, found}, build_lion},
      {"sgd", sgd_kind, {{"momentum", {0.9, 0.0}}, decay, {"nesterov"}, copies, skips, found}, build_sgd},
      {"clip", clip_kind, {{"limit", {1.0, 1e3}}}, build_clip},
      {"unscale", unscale_kind, {}, build_unscale},
      {"update_scale",
       update_scale_kind,
       {{"growth", {2.0, 1.5}}, {"backoff", {0.5, 0.75}}, {"interval", {2000, 5}}, {"tracker", {3, 4}}, found},
       build_update_scale},
  };
}

}  // namespace gpubench::variants
