#include "reference/cuda/kernel.h"

#include <fmt/format.h>

namespace gpubench::cuda {

void refuse(const OpCall& call, const std::string& why) {
  throw Unsupported(fmt::format("cuda {} '{}': {}", call.kind.name, call.label, why));
}

const CudaLaunch& own_launch(const Launch& launch) {
  const auto* own = dynamic_cast<const CudaLaunch*>(launch.get());
  if (own == nullptr) throw BackendError("cuda: the launch is empty or of another backend; expected one bound here");
  return *own;
}

void expect_row_major(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.layout.is_row_major(tensor.shape)) return;
  refuse(call, fmt::format("tensor {} has layout {}; expected row-major", tensor.to_string(),
                           tensor.layout.to_string(tensor.shape)));
}

void expect_type(const OpCall& call, const TensorSpec& tensor, DType type) {
  if (tensor.dtype != type) refuse(call, fmt::format("tensor {}; expected {}", tensor.to_string(), name(type)));
}

std::string own_implementation(const CudaContext& context) {
  return fmt::format("gpubench:sm{}", context.device.compute_capability);
}

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
  refuse(call, fmt::format("tensor {}; expected f32, f16 or bf16, not {}", tensor.to_string(), name(tensor.dtype)));
}

Element any_element(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.dtype == DType::f64) return Element::f64;
  return float_element(call, tensor);
}

void expect_same_type(const OpCall& call, const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype == b.dtype) return;
  refuse(call, fmt::format("tensors {} and {}; expected one type", a.to_string(), b.to_string()));
}

const OpImplementation& implementation_of(OpKind kind) { return find_op(op_files(), kind, "cuda"); }

}  // namespace gpubench::cuda
