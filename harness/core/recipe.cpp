#include "harness/core/recipe.h"

#include <array>

#include "harness/core/error.h"

namespace gpubench {
namespace {

// Matrix products read tensors unchanged.
constexpr Recipe uniform(std::string_view name, DType tensor, DType wide, const Math& math) {
  return {name, tensor, wide, tensor, tensor, math};
}

}  // namespace

std::span<const Recipe> recipes() {
  static constexpr std::array<Recipe, 10> all{{
      uniform("f64", DType::f64, DType::f64, Math{.accumulate = DType::f64}),
      uniform("f32", DType::f32, DType::f32, Math{}),
      uniform("tf32", DType::f32, DType::f32, Math{.inputs = Math::Inputs::tf32}),
      uniform("bf16", DType::bf16, DType::f32, Math{}),
      uniform("f16", DType::f16, DType::f32, Math{}),
      uniform("bf16_approx_tanh", DType::bf16, DType::f32, Math{.approximate_tanh = true}),
      {"f8_hybrid", DType::bf16, DType::f32, DType::f8_e4m3, DType::f8_e5m2, Math{}},
      {"f8_hybrid_fast", DType::bf16, DType::f32, DType::f8_e4m3, DType::f8_e5m2, Math{.fast_accumulation = true}},
      {"mxfp8", DType::bf16, DType::f32, DType::f8_e4m3, DType::f8_e4m3, Math{}, 32},
      {"nvfp4", DType::bf16, DType::f32, DType::f4_e2m1, DType::f4_e2m1, Math{}, 16},
  }};
  return all;
}

const Recipe& recipe(std::string_view name) {
  std::string known;
  for (const Recipe& candidate : recipes()) {
    if (candidate.name == name) return candidate;
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
  }
  throw UsageError("precision '" + std::string(name) + "' is not known; known: " + known);
}

}  // namespace gpubench
