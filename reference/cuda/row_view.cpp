#include "reference/cuda/row_view.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpubench::cuda {

Rows rows_of(const OpCall& call, const TensorSpec& tensor) {
  const int rank = tensor.shape.rank();
  const std::span<const std::int64_t> strides(tensor.layout.strides);
  const auto refuse_layout = [&] {
    refuse(call, fmt::format("tensor {} has layout {}; expected a contiguous last axis and evenly spaced rows",
                             tensor.to_string(), tensor.layout.to_string(tensor.shape)));
  };
  if (!tensor.layout.blocks.empty()) refuse_layout();
  Rows view;
  if (rank == 0) return view;
  view.columns = tensor.shape[-1];
  view.stride = view.columns;
  if (view.columns > 1 && strides[static_cast<std::size_t>(rank - 1)] != 1) refuse_layout();
  for (int axis = rank - 2; axis >= 0; --axis) {
    const std::int64_t extent = tensor.shape[axis];
    const std::int64_t stride = strides[static_cast<std::size_t>(axis)];
    if (extent == 1) continue;
    if (view.rows == 1) view.stride = stride;
    if (stride != view.stride * view.rows && extent > 0) refuse_layout();
    view.rows *= extent;
  }
  return view;
}

bool is_dense(const TensorSpec& tensor) { return tensor.layout.span_elements(tensor.shape) == tensor.shape.elements(); }

bool share_one_run(std::span<const TensorSpec> tensors) {
  return std::ranges::all_of(tensors, [&](const TensorSpec& tensor) {
    const bool same_order =
        tensor.layout == tensors.front().layout ||
        (tensor.layout.is_row_major(tensor.shape) && tensors.front().layout.is_row_major(tensors.front().shape));
    return same_order && is_dense(tensor);
  });
}

Element float_element(const OpCall& call, const TensorSpec& tensor) {
  switch (tensor.dtype) {
    case DType::f32: return Element::f32;
    case DType::f16: return Element::f16;
    case DType::bf16: return Element::bf16;
    default:
      refuse(call, fmt::format("tensor {}: own kernels have f32, f16 and bf16 here, not {}", tensor.to_string(),
                               name(tensor.dtype)));
  }
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
