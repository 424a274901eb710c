#include "reference/cuda/plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

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
  if (y.shape.rank() > max_move_axes) {
    refuse(call,
           fmt::format("tensor {} has {} axes; expected at most {}", y.to_string(), y.shape.rank(), max_move_axes));
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

/// CUDA's copy. The driver stages copies of pageable memory through its own buffers, with work on the host; a graph
/// would take another path than programs do, if it can be captured at all.
class Transfer final : public CudaLaunch {
 public:
  Transfer(std::byte* to, const std::byte* from, std::size_t bytes, bool capturable)
      : to_(to), from_(from), bytes_(bytes), capturable_(capturable) {}
  void enqueue(cudaStream_t stream) const override {
    check(cudaMemcpyAsync(to_, from_, bytes_, cudaMemcpyDefault, stream), "copying between memories");
  }
  [[nodiscard]] bool is_capturable() const override { return capturable_; }

 private:
  std::byte* to_;
  const std::byte* from_;
  std::size_t bytes_;
  bool capturable_;
};

}  // namespace

MoveArgs move_of(const OpCall& call, const TensorSpec& x, const TensorSpec& y) {
  return permuted(call, x, y, in_order(y));
}

Plan plan_move(const MoveArgs& args, const OpCall& call, const CudaContext& context) {
  return own_plan(call, context, args, launch_move, {{"x", to<&MoveArgs::from>}, {"y", to<&MoveArgs::to>}});
}

namespace {

// Any type and strides, as plan_copy on the device.
Plan plan_reorder(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_move(move_of(call, tensors[0], tensors[1]), call, context);
}

Plan plan_repeat_rows(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const RowView x = rows_of(call, tensors[0]), y = rows_of(call, tensors[1]);
  const std::int64_t count = y.rows / x.rows;
  MoveArgs args;
  args.element_bytes = static_cast<int>(size_of(tensors[0].dtype));
  args.axes = 3;
  args.axis[0] = {x.rows, x.stride, count * y.stride};
  args.axis[1] = {count, 0, y.stride};
  args.axis[2] = {x.columns, 1, 1};
  return plan_move(simplified(args), call, context);
}

Plan plan_transpose(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_move(permuted(call, tensors[0], tensors[1], call.attributes.as<Transpose>().permutation), call, context);
}

// On the device an own kernel: any type and strides without blocks, at most 8 axes after joining neighbours. Else
// CUDA's copy, for dense tensors of one layout.
Plan plan_copy(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const auto on_device = [](const TensorSpec& tensor) { return tensor.placement.memory == Memory::device; };
  if (std::all_of(tensors.begin(), tensors.end(), on_device))
    return plan_move(move_of(call, tensors[0], tensors[1]), call, context);
  const TensorSpec& x = tensors[0];
  const TensorSpec& y = tensors[1];
  if (x.layout != y.layout || x.dtype != y.dtype || !is_dense(x)) {
    refuse(call, fmt::format("tensors {} and {} in different memories; expected the same dense layout and type",
                             x.to_string(), y.to_string()));
  }
  const auto is_pageable = [](const TensorSpec& tensor) { return tensor.placement.memory == Memory::pageable_host; };
  const bool capturable = std::none_of(tensors.begin(), tensors.end(), is_pageable);
  return plan_bound_by<CudaPlan>(
      capturable ? "cuda:memcpy" : "cuda:memcpy,by stream", 0,
      [bytes = static_cast<std::size_t>(x.bytes()), capturable](std::span<const Tensor> bound, Workspace) -> Launch {
        return std::make_shared<Transfer>(bound[1].data, bound[0].data, bytes, capturable);
      });
}

}  // namespace

Ops move_ops() {
  return {{copy_kind, plan_copy},
          {reorder_kind, plan_reorder},
          {repeat_rows_kind, plan_repeat_rows},
          {transpose_kind, plan_transpose}};
}

}  // namespace gpubench::cuda
