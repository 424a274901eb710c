#include "harness/hardware/gpu_recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/core/recipe.h"

namespace gpubench {
namespace {

constexpr int eight_bit_products = 89;
constexpr int bf16_and_tf32_products = 80;

bool is_eight_bit(DType type) { return type == DType::f8_e4m3 || type == DType::f8_e5m2; }

int least_capability(const Recipe& recipe) {
  if (is_eight_bit(recipe.operand) || is_eight_bit(recipe.gradient_operand)) return eight_bit_products;
  const bool bf16 = recipe.tensor == DType::bf16 || recipe.operand == DType::bf16;
  return bf16 || recipe.math.inputs == Math::Inputs::tf32 ? bf16_and_tf32_products : 0;
}

std::string version(int capability) { return fmt::format("{}.{}", capability / 10, capability % 10); }

}  // namespace

std::vector<GpuRecipe> gpu_recipes() {
  std::vector<GpuRecipe> all;
  for (const Recipe& recipe : recipes()) all.push_back({std::string(recipe.name), least_capability(recipe)});
  return all;
}

std::vector<std::string> recipes_of_gpu(int capability) {
  std::vector<std::string> names;
  for (const GpuRecipe& recipe : gpu_recipes()) {
    if (capability == 0 || recipe.least_capability <= capability) names.push_back(recipe.name);
  }
  return names;
}

std::string recipes_lacking(int capability) {
  if (capability == 0) return {};
  std::map<int, std::string> lacking;  // by what they need
  for (const GpuRecipe& recipe : gpu_recipes()) {
    if (recipe.least_capability <= capability) continue;
    std::string& names = lacking[recipe.least_capability];
    names += (names.empty() ? "" : ", ") + recipe.name;
  }
  std::string text;
  for (const auto& [needed, names] : lacking) {
    const bool one = names.find(',') == std::string::npos;
    text += fmt::format("{} need{} compute capability {}; ", names, one ? "s" : "", version(needed));
  }
  return text.empty() ? text : text + "this device has " + version(capability);
}

}  // namespace gpubench
