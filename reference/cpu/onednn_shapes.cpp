#include "reference/cpu/onednn.h"

#include <algorithm>

namespace gpubench::cpu {

MemoryShape with_plain_strides(MemoryShape shape) {
  const std::size_t rank = shape.extents.size();
  std::int64_t outermost = 1;
  bool dense_axis = false;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (shape.extents[axis] <= 1) continue;
    outermost = std::max(outermost, shape.extents[axis] * shape.strides[axis]);
    dense_axis = dense_axis || shape.strides[axis] == 1;
  }
  for (std::size_t axis = rank; axis-- > 0;) {
    if (shape.extents[axis] > 1) continue;
    shape.strides[axis] = dense_axis ? outermost : 1;
    dense_axis = true;
  }
  return shape;
}

MemoryShape memory_shape(const OpCall& call, const TensorSpec& tensor, const std::vector<int>& order) {
  if (!tensor.layout.blocks.empty()) refuse_layout(call, tensor, "plain strides");
  MemoryShape shape;
  shape.dtype = tensor.dtype;
  for (const int axis : order) {
    shape.extents.push_back(tensor.shape[axis]);
    shape.strides.push_back(tensor.layout.strides[static_cast<std::size_t>(axis)]);
  }
  return with_plain_strides(std::move(shape));
}

}  // namespace gpubench::cpu
