// Suite norm: layer normalization alone, forward and backward, at the widths of real models.
#include "reference/ops/layer_norm.h"

#include "suites/declare.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

Grid sizes() {
  const auto point = [](std::int64_t rows, std::int64_t n, std::string label, Tier tier) {
    return Point{{{"rows", rows}, {"n", n}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = {"f32", "bf16", "f16"};  // of the activations; statistics, gamma and beta are f32
  grid.points = {
      point(512, 768, "gpt2-124m, 512 tokens", Tier::standard),
      point(8192, 768, "gpt2-124m", Tier::standard),
      point(16384, 4096, "7b models", Tier::standard),
      point(1024, 12288, "gpt3-175b: few rows, and wide", Tier::standard),
  };
  return grid;
}

struct Normalized {
  ValueId x, gamma;
  LayerNormForward forward;
};

Normalized normalize(Program& p, const Case& c, const Recipe& r) {
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("rows"), c.dim("n")}, Role::input, Fill::norm_rows(1.0)));
  const ValueId gamma = p.add(tensor("gamma", r.wide, {c.dim("n")}, Role::parameter, Fill::positive(1.0)));
  const ValueId beta = p.add(tensor("beta", r.wide, {c.dim("n")}, Role::parameter, Fill::normal(0.125)));
  return {x, gamma, layer_norm_forward(p, {}, r.math, "norm", x, gamma, beta)};
}

Program forward(const Case& c, const Recipe& r) {
  Program p;
  normalize(p, c, r);
  return p;
}

// The backward reads the statistics that a forward saved; that forward is set-up: checked, not timed.
Program backward(const Case& c, const Recipe& r) {
  Program p;
  p.begin(Phase::setup);
  const Normalized saved = normalize(p, c, r);
  p.begin(Phase::timed);
  const ValueId dy = p.add(tensor("dy", r.tensor, p.spec(saved.x).shape, Role::gradient, Fill::normal(1.0)));
  layer_norm_backward(p, {}, r.math, "norm.backward", dy, saved.x, saved.gamma, saved.forward.mean, saved.forward.rstd);
  return p;
}

std::shared_ptr<const Workload> workload(std::string name, std::string description,
                                         Program (*build)(const Case&, const Recipe&)) {
  return declare({{std::move(name), std::move(description), "rows", Headline::bytes_per_s, "rows", CacheMode::cold},
                  sizes(),
                  build,
                  [](const Case& c) { return static_cast<double>(c.dim("rows")); }});
}

}  // namespace

Suite norm() {
  return {"norm",
          "layer normalization, forward and backward",
          {
              workload("layer_norm_forward", "y, and the statistics that the backward wants", forward),
              workload("layer_norm_backward", "dx, dgamma, dbeta", backward),
          }};
}

}  // namespace gpubench::suites
