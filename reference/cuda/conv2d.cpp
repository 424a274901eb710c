// Convolution and its two gradients (reference/ops/conv2d.h) as cuDNN graphs.
#include <array>

#include "reference/cuda/cudnn_plan.h"
#include "reference/cuda/plans.h"
#include "reference/ops/conv2d_batch_norm.h"

namespace gpubench::cuda {
namespace {

using Pass = CudnnGraph::ConvolutionPass;

// Positions of x, the filter and y in a call.
struct Direction {
  Pass pass;
  std::size_t x, filter, y;
};

Direction direction_of(const OpCall& call) {
  if (call.kind == conv2d_forward_kind) return {Pass::forward, 0, 1, 2};
  if (call.kind == conv2d_backward_data_kind) return {Pass::backward_data, 2, 1, 0};
  return {Pass::backward_filter, 0, 2, 1};
}

// [n, h, w, c] or [k, r, s, c] in cuDNN's axis order, channels first; the strides keep the memory layout.
GraphShape channels_first(const OpCall& call, const TensorSpec& tensor) {
  expect_strides(call, tensor);
  constexpr std::array<int, 4> order{0, 3, 1, 2};
  GraphShape shape{cudnn_type(tensor.dtype), {}, {}};
  for (const int axis : order) {
    shape.extents.push_back(tensor.shape[axis]);
    shape.strides.push_back(tensor.layout.strides[static_cast<std::size_t>(axis)]);
  }
  return shape;
}

GraphTensor add_convolution(CudnnGraph& graph, const OpCall& call, std::span<const TensorSpec> tensors) {
  const auto& attributes = call.attributes.as<Conv2d>();
  const Direction direction = direction_of(call);
  const auto argument = [&](std::size_t index) { return graph.argument(index, channels_first(call, tensors[index])); };
  const GraphTensor x = argument(direction.x);
  const GraphTensor filter = argument(direction.filter);
  const GraphTensor y = argument(direction.y);
  graph.convolution({.pass = direction.pass,
                     .stride = {attributes.stride_h, attributes.stride_w},
                     .padding = {attributes.pad_h, attributes.pad_w},
                     .dilation = {attributes.dilation_h, attributes.dilation_w},
                     .sums = cudnn_type(call.math.accumulate)},
                    x, filter, y);
  return y;
}

}  // namespace

CudnnGraph conv2d_graph(const OpCall& call, std::span<const TensorSpec> tensors) {
  CudnnGraph graph;
  (void)add_convolution(graph, call, tensors);
  return graph;
}

CudnnGraph conv2d_sums_graph(const OpCall& call, std::span<const TensorSpec> tensors) {
  expect_f32_sums(call);
  CudnnGraph graph;
  const GraphTensor y = add_convolution(graph, call, tensors);
  const std::int64_t channels = tensors[2].shape[3];
  const GraphShape of_channels{CUDNN_DATA_FLOAT, {1, channels, 1, 1}, {channels, 1, channels, channels}};
  const GraphTensor sum = graph.argument(3, of_channels);
  graph.channel_sums(y, sum, graph.argument(4, of_channels));
  return graph;
}

std::vector<Plan> convolution_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                    const CudaContext& context) {
  const std::vector<TensorSpec> own = convolution_operands(call, tensors);
  const OpCall convolution = convolution_of(call);
  return graph_plans(convolution, own, conv2d_graph(convolution, own), context);
}

std::vector<Plan> convolution_and_sums_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                             const CudaContext& context) {
  const std::vector<TensorSpec> own = convolution_operands(call, tensors);
  return graph_plans(call, tensors, conv2d_sums_graph(convolution_of(call), own), context);
}

namespace {

// NHWC, all types of cuDNN; dfilter may be f32 with narrower x and dy. Winograd and Fourier transforms are excluded:
// their errors exceed those of a sum of products.
Plan plan_conv2d(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_graph(call, tensors, conv2d_graph(call, tensors), context);
}

}  // namespace

Ops conv2d_ops() {
  return {{conv2d_backward_data_kind, plan_conv2d},
          {conv2d_backward_filter_kind, plan_conv2d},
          {conv2d_forward_kind, plan_conv2d}};
}

}  // namespace gpubench::cuda
