#include "harness/core/row_view.h"

#include <algorithm>

namespace gpubench {

std::optional<RowView> row_view(const TensorSpec& tensor) {
  const int rank = tensor.shape.rank();
  const std::span<const std::int64_t> strides(tensor.layout.strides);
  if (!tensor.layout.blocks.empty() || bits_of(tensor.dtype) < 8) return std::nullopt;
  RowView view;
  if (rank == 0) return view;
  view.columns = tensor.shape[-1];
  view.stride = view.columns;
  if (view.columns > 1 && strides[static_cast<std::size_t>(rank - 1)] != 1) return std::nullopt;
  for (int axis = rank - 2; axis >= 0; --axis) {
    const std::int64_t extent = tensor.shape[axis];
    const std::int64_t stride = strides[static_cast<std::size_t>(axis)];
    if (extent == 1) continue;
    if (view.rows == 1) view.stride = stride;
    if (stride != view.stride * view.rows && extent > 0) return std::nullopt;
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

}  // namespace gpubench
