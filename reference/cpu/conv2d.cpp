#include "reference/cpu/kernel.h"

#include <vector>

#include "reference/cpu/onednn.h"
#include "reference/ops/conv2d.h"

namespace gpubench::cpu {
namespace {

using Pass = ConvolutionRequest::Pass;

// Calls visit() for source, filter and destination; each pass has the gradient of one or two of them.
template <class T, class Visit>
void in_library_order(const OpCall& call, std::span<const T> tensors, const Visit& visit) {
  Named<T>(call, tensors).each({"x", "dx", "filter", "dfilter", "y", "dy"}, visit);
}

// [n, h, w, c] as oneDNN counts it: n, c, h, w.
MemoryShape image(const OpCall& call, const TensorSpec& tensor) { return memory_shape(call, tensor, {0, 3, 1, 2}); }

// [k, r, s, c / groups] as oneDNN counts it: (groups, k / groups,) c / groups, r, s.
MemoryShape filter_shape(const OpCall& call, const TensorSpec& tensor, std::int64_t groups) {
  MemoryShape shape = memory_shape(call, tensor, {0, 3, 1, 2});
  if (groups == 1) return shape;
  const std::int64_t k = shape.extents[0] / groups;
  const std::int64_t k_stride = tensor.layout.strides[0];
  shape.extents[0] = k;
  shape.strides[0] = k_stride;
  shape.extents.insert(shape.extents.begin(), groups);
  shape.strides.insert(shape.strides.begin(), k * k_stride);
  return with_plain_strides(std::move(shape));
}

Plan plan_conv2d(Pass pass, const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  for (const TensorSpec& tensor : tensors) expect_f32_or_bf16(call, tensor);
  expect_f32_sums(call);
  const Conv2d& attributes = call.attributes.as<Conv2d>();
  std::vector<const TensorSpec*> specs;
  in_library_order(call, tensors, [&](const TensorSpec& spec) { specs.push_back(&spec); });
  ConvolutionRequest request;
  request.pass = pass;
  request.source = image(call, *specs[0]);
  request.filter = filter_shape(call, *specs[1], attributes.groups);
  request.destination = image(call, *specs[2]);
  request.stride = {attributes.stride_h, attributes.stride_w};
  request.padding = {attributes.pad_h, attributes.pad_w};
  request.dilation = {attributes.dilation_h, attributes.dilation_w};

  const OneDnnWork work = convolution_work(context.onednn, request);
  return plan_of(work.implementation(), work.workspace_bytes(),
                 [work, call](std::span<const Tensor> bound, Workspace workspace) {
                   std::vector<std::byte*> operands;
                   in_library_order(call, bound, [&](const Tensor& tensor) { operands.push_back(tensor.data); });
                   return work.bind(operands, workspace.data);
                 });
}

}  // namespace

Plan plan_conv2d_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return plan_conv2d(Pass::forward, call, tensors, context);
}
Plan plan_conv2d_backward_data(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return plan_conv2d(Pass::backward_data, call, tensors, context);
}
Plan plan_conv2d_backward_filter(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return plan_conv2d(Pass::backward_filter, call, tensors, context);
}

}  // namespace gpubench::cpu
