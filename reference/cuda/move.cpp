#include "reference/cuda/move.h"

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "reference/cuda/kernels/move.h"
#include "reference/cuda/plans.h"
#include "reference/ops/move.h"

namespace gpubench::cuda {
namespace {

/// y's axis a is x's axis permutation[a].
MoveArgs permuted(const OpCall& call, const TensorSpec& x, const TensorSpec& y, const std::vector<int>& permutation) {
  for (const TensorSpec* tensor : {&x, &y}) {
    if (tensor->layout.blocks.empty()) continue;
    refuse(call, fmt::format("tensor {} has layout {}; expected strides without blocks", tensor->to_string(),
                             tensor->layout.to_string(tensor->shape)));
  }
  if (y.shape.rank() > most_move_axes) {
    refuse(call,
           fmt::format("tensor {} has {} axes; expected at most {}", y.to_string(), y.shape.rank(), most_move_axes));
  }
  MoveArgs args;
  args.element_bytes = static_cast<int>(size_of(x.dtype));
  args.axes = y.shape.rank();
  for (int axis = 0; axis < args.axes; ++axis) {
    const auto from = static_cast<std::size_t>(permutation[static_cast<std::size_t>(axis)]);
    args.axis[axis] = {y.shape[axis], x.layout.strides[from], y.layout.strides[static_cast<std::size_t>(axis)]};
  }
  return simplified(args);
}

std::vector<int> in_order(const TensorSpec& tensor) {
  std::vector<int> axes(static_cast<std::size_t>(tensor.shape.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

}  // namespace

MoveArgs move_of(const OpCall& call, const TensorSpec& x, const TensorSpec& y) {
  return permuted(call, x, y, in_order(y));
}

Plan plan_move(const MoveArgs& args, const OpCall& call, const CudaContext& context) {
  return own_plan(call, context, args, launch_move, {{"x", to<&MoveArgs::from>}, {"y", to<&MoveArgs::to>}});
}

Plan plan_reorder(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_move(move_of(call, tensors[0], tensors[1]), call, context);
}

Plan plan_transpose(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_move(permuted(call, tensors[0], tensors[1], call.attributes.as<Transpose>().permutation), call, context);
}

}  // namespace gpubench::cuda
