#include "harness/core/tuning_cache.h"

namespace gpubench {
namespace {

std::string math_text(const Math& math) {
  std::string text = "sums " + std::string(name(math.accumulate));
  if (math.inputs == Math::Inputs::tf32) text += ", tf32";
  if (math.inputs == Math::Inputs::emulated) text += ", emulated";
  if (math.inputs == Math::Inputs::bf16) text += ", bf16 inputs";
  if (math.inputs == Math::Inputs::two_bf16) text += ", two bf16";
  if (math.fast_accumulation) text += ", fast accumulation";
  if (math.split_k_in_output) text += ", split k in output";
  if (math.approximate_tanh) text += ", approximate tanh";
  return text;
}

std::string tensor_text(const TensorSpec& tensor) {
  std::string text = std::string(name(tensor.dtype)) + tensor.shape.to_string();
  if (!tensor.layout.is_row_major(tensor.shape)) text += tensor.layout.to_string(tensor.shape);
  for (const AxisSpread& spread : tensor.placement.spread)
    text += spread.kind == AxisSpread::Kind::partial ? "partial" : "shard(" + std::to_string(spread.tensor_axis) + ")";
  if (tensor.placement.memory != Memory::device) text += "in(" + std::string(name(tensor.placement.memory)) + ")";
  return text;
}

}  // namespace

std::string choice_key(const OpCall& call, std::span<const TensorSpec> tensors) {
  std::string key(call.kind.name);
  if (const std::string attributes = call.attributes.to_string(); !attributes.empty()) key += " " + attributes;
  key += "; " + math_text(call.math) + ";";
  for (const TensorSpec& tensor : tensors) key += " " + tensor_text(tensor);
  return key;
}

}  // namespace gpubench
