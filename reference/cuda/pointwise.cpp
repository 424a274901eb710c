#include "reference/cuda/pointwise.h"

#include "reference/cuda/kernels/pointwise.h"
#include "reference/cuda/row_view.h"
#include "reference/ops/elementwise.h"
#include "reference/ops/gelu.h"

namespace gpubench::cuda {
namespace {

/// Inputs a and perhaps b, output y, of one shape.
Plan plan_pointwise(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context, PointwiseOp op,
                    double factor = 1.0) {
  const bool has_b = tensors.size() == 3;
  const bool one_run = share_one_run(tensors);
  const auto view = [&](const TensorSpec& tensor) {
    const std::int64_t elements = tensor.shape.elements();
    return one_run ? RowView{1, elements, elements} : rows_of(call, tensor);
  };
  PointwiseArgs args;
  args.op = op;
  args.factor = factor;
  args.from = any_element(call, tensors[0]);
  args.to = any_element(call, tensors.back());
  if (op != PointwiseOp::cast) {
    for (const TensorSpec& tensor : tensors) expect_same_type(call, tensors[0], tensor);
  }
  const RowView y = view(tensors.back());
  args.rows = y.rows;
  args.columns = y.columns;
  args.y_stride = y.stride;
  args.a_stride = view(tensors[0]).stride;
  if (has_b) args.b_stride = view(tensors[1]).stride;
  return plan_of(own_implementation(context), 0, [args, has_b](std::span<const Tensor> bound, Workspace) {
    PointwiseArgs work = args;
    work.a = bound.front().data;
    work.b = has_b ? bound[1].data : nullptr;
    work.y = bound.back().data;
    return [work](cudaStream_t stream) {
      launch_pointwise(work, stream);
      check_launch("the pointwise kernel");
    };
  });
}

bool is_tanh(const OpCall& call) { return call.attributes.as<Gelu>().form == GeluForm::tanh; }

}  // namespace

Plan plan_triad(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_pointwise(call, tensors, context, PointwiseOp::triad, call.attributes.as<Triad>().factor);
}

Plan plan_scale(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_pointwise(call, tensors, context, PointwiseOp::scale, call.attributes.as<Scale>().factor);
}

Plan plan_add(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_pointwise(call, tensors, context, PointwiseOp::add);
}

Plan plan_cast(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_pointwise(call, tensors, context, PointwiseOp::cast);
}

Plan plan_gelu_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_pointwise(call, tensors, context, is_tanh(call) ? PointwiseOp::gelu_tanh : PointwiseOp::gelu_erf);
}

Plan plan_gelu_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_pointwise(call, tensors, context,
                        is_tanh(call) ? PointwiseOp::gelu_tanh_backward : PointwiseOp::gelu_erf_backward);
}

}  // namespace gpubench::cuda
