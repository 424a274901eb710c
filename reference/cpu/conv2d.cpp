#include "reference/cpu/plans.h"

#include <fmt/core.h>

#include <array>

#include "reference/cpu/memory_shapes.h"
#include "reference/cpu/onednn.h"
#include "reference/ops/conv2d.h"

namespace gpubench::cpu {
namespace {

using Pass = ConvolutionRequest::Pass;

// Positions of source, filter and destination among the call's tensors (inputs, then the output).
std::array<int, 3> positions(Pass pass) {
  switch (pass) {
    case Pass::forward: return {0, 1, 2};          // x, filter -> y
    case Pass::backward_data: return {2, 1, 0};    // dy, filter -> dx
    case Pass::backward_filter: return {0, 2, 1};  // x, dy -> dfilter
  }
  return {};
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

void expect_types(const OpCall& call, std::span<const TensorSpec> tensors) {
  for (const TensorSpec& tensor : tensors) {
    if (tensor.dtype == DType::f32 || tensor.dtype == DType::bf16) continue;
    refuse(call, fmt::format("tensor {}; expected f32 or bf16", tensor.to_string()));
  }
  if (call.math.accumulate != DType::f32) {
    refuse(call, fmt::format("sums in {}; expected f32", name(call.math.accumulate)));
  }
}

Plan plan_conv2d(Pass pass, const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  expect_types(call, tensors);
  const Conv2d& attributes = call.attributes.as<Conv2d>();
  const std::array<int, 3> order = positions(pass);
  const auto at = [&](int which) -> const TensorSpec& {
    return tensors[static_cast<std::size_t>(order[static_cast<std::size_t>(which)])];
  };
  ConvolutionRequest request;
  request.pass = pass;
  request.source = image(call, at(0));
  request.filter = filter_shape(call, at(1), attributes.groups);
  request.destination = image(call, at(2));
  request.stride = {attributes.stride_h, attributes.stride_w};
  request.padding = {attributes.pad_h, attributes.pad_w};
  request.dilation = {attributes.dilation_h, attributes.dilation_w};

  const OneDnnWork work = convolution_work(context.onednn, request);
  return plan_of(work.implementation(), work.workspace_bytes(),
                 [work, order](std::span<const Tensor> bound, Workspace workspace) {
                   std::array<std::byte*, 3> operands{};
                   for (std::size_t i = 0; i < 3; ++i) operands[i] = bound[static_cast<std::size_t>(order[i])].data;
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
