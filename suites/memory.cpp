// Suite memory: memory bandwidth, the reference for every bandwidth-bound op.
#include <optional>

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
  triad(p, {3.0}, r.math, "a", b, x);
  return p;
}

// 8-bit copies of activations, and the largest magnitude, which determines the next scale.
Program quantize_array(const Case& c, const Recipe& r) {
  Program p;
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("n")}, Role::activation, Fill::normal(1.0)));
  const ValueId scale = p.add(tensor("scale", DType::f32, {1}, Role::scalar, Fill::constant(16.0)));
  quantize(p, {r.operand}, r.math, "q", x, scale);
  return p;
}

// The scale is the tensor's own, which takes a first pass over it.
Program quantize_current(const Case& c, const Recipe& r) {
  Program p;
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("n")}, Role::activation, Fill::normal(1.0)));
  const ValueId scale = scale_from_amax(p, {r.operand}, r.math, "scale", amax(p, r.math, "amax", x));
  quantize(p, {r.operand}, r.math, "q", x, scale);
  return p;
}

Grid quantized_sizes() {
  Grid grid = memory_sizes();
  grid.recipes = {"f8_hybrid"};
  return grid;
}

template <BlockFormat format>
Program quantize_in_blocks(const Case& c, const Recipe& r) {
  Program p;
  const ValueId x = p.add(tensor("x", r.tensor, {c.dim("n")}, Role::activation, Fill::normal(1.0)));
  std::optional<ValueId> scale;
  if (format == BlockFormat::nvfp4) scale = p.add(tensor("scale", DType::f32, {1}, Role::scalar, Fill::constant(16.0)));
  quantize_blocks(p, {format, format == BlockFormat::mxfp8_e4m3}, r.math, "q", x, scale);
  return p;
}

Grid block_sizes() {
  Grid grid;
  grid.recipes = {"f32", "bf16"};
  grid.points = {
      {{{"n", 1 << 20}}, "1 Mi elements", Tier::smoke, {"bf16"}},
      {{{"n", 1 << 24}}, "16 Mi elements", Tier::quick, {"bf16"}},
      {{{"n", 1 << 28}}, "256 Mi elements", Tier::standard},
  };
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
              declare_flat("quantize_current", "values to 8 bits, scaled by their largest magnitude", "elements",
                           quantized_sizes(), quantize_current),
              declare_flat("quantize_mxfp8", "values to 8 bits, blocks of 32 with a power of two", "elements",
                           block_sizes(), quantize_in_blocks<BlockFormat::mxfp8_e4m3>),
              declare_flat("quantize_nvfp4", "values to 4 bits, blocks of 16 with a scale in 8 bits", "elements",
                           block_sizes(), quantize_in_blocks<BlockFormat::nvfp4>),
          }};
}

}  // namespace gpubench::suites
