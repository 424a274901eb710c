// Suite optimizer: global gradient norm, clip, and optimizers in place with f32 master weights.
#include "reference/ops/optimizer.h"

#include <array>

#include "suites/suites.h"

namespace gpubench::suites {
namespace {

Grid optimizer_sizes(std::int64_t parameters, std::string model) {
  const auto point = [](std::int64_t n, std::string label, Tier tier) {
    return Point{{{"n", n}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = {"f32", "bf16", "f16"};  // type of gradients; masters and moments are f32
  grid.points = {
      point(1 << 20, "1 Mi parameters", Tier::smoke),
      point(1 << 23, "8 Mi parameters", Tier::quick),
      point(parameters, std::move(model), Tier::standard),
      point(1 << 30, "1 Gi parameters", Tier::large),
  };
  return grid;
}

// One AdamW step over n parameters. In mixed precision the gradient has the tensor type, and the optimizer also writes
// the new weights in that type.
Program adam_family_step(const Case& c, const Recipe& r, AdamW attributes) {
  const Shape shape{c.dim("n")};
  const bool copies = r.tensor != r.wide;
  Program p;
  const ValueId lr = p.add(tensor("lr", DType::f32, {1}, Role::scalar, Fill::constant(1.0 / 1024)));
  const ValueId step = p.add(tensor("step", DType::i32, {1}, Role::scalar, Fill::constant(10)));
  AdamWTensor t;
  t.weight = p.add(tensor("w", r.wide, shape, Role::parameter, Fill::normal(0.25)));
  t.gradient = p.add(tensor("g", r.tensor, shape, Role::gradient, Fill::tiny_mix(0.0625)));
  t.m = p.add(tensor("m", r.wide, shape, Role::state, Fill::normal(0.0625)));
  t.v = p.add(tensor("v", r.wide, shape, Role::state, Fill::positive(0.00390625)));
  if (copies) t.copy = p.add(tensor("w_copy", r.tensor, shape, Role::parameter, Fill::normal(0.25)));
  attributes.copies = copies;
  adamw(p, attributes, r.math, "adamw", lr, step, std::array{t});
  return p;
}

Program adamw_step(const Case& c, const Recipe& r) { return adam_family_step(c, r, {}); }
Program adam_step(const Case& c, const Recipe& r) { return adam_family_step(c, r, {.l2 = true}); }

SgdTensor with_moment(Program& p, const Case& c, const Recipe& r) {
  const Shape shape{c.dim("n")};
  SgdTensor t;
  t.weight = p.add(tensor("w", r.wide, shape, Role::parameter, Fill::normal(0.25)));
  t.gradient = p.add(tensor("g", r.tensor, shape, Role::gradient, Fill::normal(0.0625)));
  t.m = p.add(tensor("m", r.wide, shape, Role::state, Fill::normal(0.0625)));
  if (r.tensor != r.wide) t.copy = p.add(tensor("w_copy", r.tensor, shape, Role::parameter, Fill::normal(0.25)));
  return t;
}

// SGD as in ResNet-50's recipe (Goyal et al., arXiv 1706.02677): momentum 0.9, weight decay 1e-4.
Program sgd_step(const Case& c, const Recipe& r) {
  Program p;
  const ValueId lr = p.add(tensor("lr", DType::f32, {1}, Role::scalar, Fill::constant(0.125)));
  const SgdTensor t = with_moment(p, c, r);
  sgd(p, {.weight_decay = 1e-4, .copies = t.copy.has_value()}, r.math, "sgd", lr, std::array{t});
  return p;
}

// Lion with the settings for language models: arXiv 2302.06675, table 12.
Program lion_step(const Case& c, const Recipe& r) {
  Program p;
  const ValueId lr = p.add(tensor("lr", DType::f32, {1}, Role::scalar, Fill::constant(1.0 / 8192)));
  const SgdTensor t = with_moment(p, c, r);
  lion(p, {.weight_decay = 1.0, .copies = t.copy.has_value()}, r.math, "lion", lr, std::array{t});
  return p;
}

// Gradients of a scaled loss; those of 16 bits become f32.
Program unscale_step(const Case& c, const Recipe& r) {
  Program p;
  const ValueId g = p.add(tensor("g", r.tensor, {c.dim("n")}, Role::gradient, Fill::normal(64.0)));
  const ValueId scale = p.add(tensor("scale", DType::f32, {1}, Role::scalar, Fill::constant(65536)));
  (void)unscale(p, r.math, "unscale", scale, std::array{g});
  return p;
}

Program norm(const Case& c, const Recipe& r) {
  Program p;
  const ValueId g = p.add(tensor("g", r.tensor, {c.dim("n")}, Role::gradient, Fill::normal(0.0625)));
  gradient_norm(p, r.math, "norm", std::array{g});
  return p;
}

Program clip_step(const Case& c, const Recipe& r) {
  Program p;
  const ValueId g = p.add(tensor("g", r.tensor, {c.dim("n")}, Role::gradient, Fill::normal(0.0625)));
  const ValueId n = p.add(tensor("norm", DType::f32, {1}, Role::scalar, Fill::constant(4.0)));
  clip(p, {.limit = 1.0}, r.math, "clip", n, std::array{g});
  return p;
}

}  // namespace

Suite optimizer() {
  const Grid transformer = optimizer_sizes(124439808, "gpt2-124m");
  return {
      "optimizer",
      "AdamW, Adam, Lion, SGD, gradient norm, clip and unscale over flat parameters",
      {
          declare_flat("adamw", "one AdamW step in place, f32 master weights", "parameters", transformer, adamw_step),
          declare_flat("adam_l2", "one Adam step: the weight decay is added to the gradient", "parameters", transformer,
                       adam_step),
          declare_flat("lion", "one Lion step in place, f32 master weights", "parameters", transformer, lion_step),
          declare_flat("unscale", "gradients of a scaled loss, and whether one is infinite or NaN", "parameters",
                       optimizer_sizes(25557032, "resnet50"), unscale_step),
          declare_flat("sgd", "one SGD step with momentum in place, f32 master weights", "parameters",
                       optimizer_sizes(25557032, "resnet50"), sgd_step),
          declare_flat("gradient_norm", "2-norm of all gradients", "parameters", transformer, norm),
          declare_flat("clip", "gradients scaled to a norm limit, in place", "parameters", transformer, clip_step),
      }};
}

}  // namespace gpubench::suites
