#include "harness/core/recipe.h"

#include <array>

#include "harness/core/error.h"

namespace gpubench {

std::span<const Recipe> recipes() {
  static constexpr std::array<Recipe, 2> all{{
      {"f32", DType::f32, DType::f32, Math{}},
      {"bf16", DType::bf16, DType::f32, Math{}},
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
