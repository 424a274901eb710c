#include "reference/cuda/row_view.h"

#include <fmt/format.h>

namespace gpubench::cuda {

RowView rows_of(const OpCall& call, const TensorSpec& tensor) {
  if (const std::optional<RowView> view = row_view(tensor)) return *view;
  refuse(call, fmt::format("tensor {} has layout {}; expected a contiguous last axis and evenly spaced rows",
                           tensor.to_string(), tensor.layout.to_string(tensor.shape)));
}

std::optional<Element> element_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return Element::f64;
    case DType::f32: return Element::f32;
    case DType::f16: return Element::f16;
    case DType::bf16: return Element::bf16;
    default: return std::nullopt;
  }
}

Element float_element(const OpCall& call, const TensorSpec& tensor) {
  const std::optional<Element> element = element_of(tensor.dtype);
  if (element && *element != Element::f64) return *element;
  refuse(call, fmt::format("tensor {}: own kernels have f32, f16 and bf16 here, not {}", tensor.to_string(),
                           name(tensor.dtype)));
}

Element any_element(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.dtype == DType::f64) return Element::f64;
  return float_element(call, tensor);
}

void expect_same_type(const OpCall& call, const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype == b.dtype) return;
  refuse(call, fmt::format("tensors {} and {}; expected one type", a.to_string(), b.to_string()));
}

}  // namespace gpubench::cuda
