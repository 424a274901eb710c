#include "reference/cuda/kernels/elements.h"

#include <algorithm>
#include <stdexcept>

#include "reference/cuda/kernel.h"
#include "reference/ops/pointwise.h"

namespace gpubench::cuda {
namespace {

PointwiseLaunch launch_of_op(const OpCall& call) {
  std::string op(call.kind.name);
  if (call.kind == gelu_forward_kind || call.kind == gelu_backward_kind) {
    op += call.attributes.as<Gelu>().form == GeluForm::tanh ? " tanh" : " erf";
  }
  const PointwiseLaunch launch = pointwise_launch(op);
  if (launch == nullptr) throw std::logic_error("no pointwise kernel named '" + op + "'");
  return launch;
}

// All ops of reference/ops/pointwise.h. Dense tensors with equal strides, or strided rows; cast between any two types.
Plan plan_pointwise(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const std::size_t inputs = call.inputs.size();
  const auto is_whole = [&](const TensorSpec& tensor) { return tensor.shape == tensors.back().shape; };
  const bool one_run = std::all_of(tensors.begin(), tensors.end(), is_whole) && share_one_run(tensors);
  PointwiseArgs args;
  args.from = any_element(call, tensors.front());
  args.to = any_element(call, tensors.back());
  if (call.kind == scale_kind) args.factor = call.attributes.as<Scale>().factor;
  if (call.kind == triad_kind) args.factor = call.attributes.as<Triad>().factor;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (call.kind != cast_kind) expect_same_type(call, tensors.front(), tensors[i]);
    const std::int64_t elements = tensors[i].shape.elements();
    const RowView view = one_run ? RowView{1, elements, elements} : rows_of(call, tensors[i]);
    (i < inputs ? args.in_stride[i] : args.out_stride[i - inputs]) = view.stride;
    if (i < inputs && elements > 0) args.repeats[i] = tensors.back().shape.elements() / elements;
    args.rows = view.rows;
    args.columns = view.columns;
  }
  return plan_of(own_implementation(context), 0,
                 [args, inputs, launch = launch_of_op(call)](std::span<const Tensor> bound, Workspace) {
                   PointwiseArgs work = args;
                   for (std::size_t i = 0; i < inputs; ++i) work.in[i] = bound[i].data;
                   for (std::size_t i = inputs; i < bound.size(); ++i) work.out[i - inputs] = bound[i].data;
                   return [work, launch](cudaStream_t stream) {
                     launch(work, stream);
                     check_launch("the pointwise kernel");
                   };
                 });
}

}  // namespace

Ops pointwise_ops() {
  Ops ops;
  for (const OpKind& kind : pointwise_kinds) ops.push_back({kind, plan_pointwise});
  return ops;
}

}  // namespace gpubench::cuda
