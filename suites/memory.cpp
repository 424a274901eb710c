// Suite memory: the bandwidth of the memory, with which every bandwidth-bound op is compared.
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/quantize.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

Grid memory_sizes() {
  const auto point = [](std::int64_t n, std::string label, Tier tier) {
    return Point{{{"n", n}}, std::move(label), tier};
  };
  Grid grid;
  grid.points = {
      point(1 << 20, "1 Mi elements", Tier::smoke),
      point(1 << 26, "64 Mi elements", Tier::quick),
      point(1 << 30, "1 Gi elements", Tier::standard),
      point((std::int64_t{1} << 31) + 4096, "edge: beyond 32-bit indices", Tier::large),
  };
  return grid;
}

Program copy_array(const Case& c, const Recipe& r) {
  Program p;
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("n")}, Role::input, Fill::normal(1.0)));
  copy(p, "y", x);
  return p;
}

Program triad_array(const Case& c, const Recipe& r) {
  Program p;
  const ValueId b = p.add(tensor("b", r.tensor, {c.dim("n")}, Role::input, Fill::normal(1.0)));
  const ValueId x = p.add(tensor("c", r.tensor, {c.dim("n")}, Role::input, Fill::normal(1.0)));
  triad(p, 3.0, r.math, "a", b, x);
  return p;
}

// Activations to 8-bit copies, and the largest magnitude, by which the next scale is chosen.
Program quantize_array(const Case& c, const Recipe& r) {
  Program p;
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("n")}, Role::activation, Fill::normal(1.0)));
  const ValueId scale = p.add(tensor("scale", DType::f32, {1}, Role::scalar, Fill::constant(16.0)));
  quantize(p, {r.operand}, r.math, "q", x, scale);
  return p;
}

Grid quantized_sizes() {
  Grid grid = memory_sizes();
  grid.recipes = {"f8_hybrid"};
  return grid;
}

}  // namespace

Suite memory() {
  return {"memory",
          "bandwidth of the device's memory, as STREAM measures it",
          {
              declare_flat("copy", "y = x", "elements", memory_sizes(), copy_array),
              declare_flat("triad", "a = b + 3 c", "elements", memory_sizes(), triad_array),
              declare_flat("quantize", "values to 8 bits, with their largest magnitude", "elements", quantized_sizes(),
                           quantize_array),
          }};
}

}  // namespace gpubench::suites
