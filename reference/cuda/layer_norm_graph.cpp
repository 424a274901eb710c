#include "reference/cuda/layer_norm_graph.h"

#include <fmt/format.h>

#include "reference/cuda/graph_plan.h"
#include "reference/ops/layer_norm.h"

namespace gpubench::cuda {
namespace {

// All axes but the last as one, with one stride. Throws where the outer axes are not evenly spaced.
GraphShape rows(const OpCall& call, const TensorSpec& tensor) {
  expect_strides(call, tensor);
  const int rank = tensor.shape.rank();
  const auto& strides = tensor.layout.strides;
  const std::int64_t n = tensor.shape[-1];
  bool even = n == 1 || strides.back() == 1;
  std::int64_t count = 1;
  std::int64_t stride = n;
  for (int axis = rank - 2; axis >= 0; --axis) {
    if (tensor.shape[axis] == 1) continue;
    const std::int64_t here = strides[static_cast<std::size_t>(axis)];
    if (count == 1) stride = here;
    even = even && here == stride * count;
    count *= tensor.shape[axis];
  }
  if (!even) {
    refuse(call, fmt::format("tensor {} has layout {}; expected rows at one distance, contiguous within",
                             tensor.to_string(), tensor.layout.to_string(tensor.shape)));
  }
  return {cudnn_type(tensor.dtype), {count, n, 1, 1}, {stride, 1, 1, 1}};
}

GraphShape parameter(const OpCall& call, const TensorSpec& tensor) {
  expect_strides(call, tensor);
  return dense(cudnn_type(tensor.dtype), {1, tensor.shape.elements(), 1, 1});
}

// One number per row.
GraphShape statistic(const OpCall& call, const TensorSpec& tensor) {
  expect_type(call, tensor, DType::f32);
  expect_row_major(call, tensor);
  return dense(CUDNN_DATA_FLOAT, {tensor.shape.elements(), 1, 1, 1});
}

}  // namespace

CudnnGraph layer_norm_forward_graph(const OpCall& call, std::span<const TensorSpec> tensors) {
  expect_f32_sums(call);
  CudnnGraph graph;
  CudnnGraph::NormForward norm;
  norm.x = graph.argument(0, rows(call, tensors[0]));
  norm.scale = graph.argument(1, parameter(call, tensors[1]));
  norm.bias = graph.argument(2, parameter(call, tensors[2]));
  norm.y = graph.argument(3, rows(call, tensors[3]));
  norm.mean = graph.argument(4, statistic(call, tensors[4]));
  norm.inverse_deviation = graph.argument(5, statistic(call, tensors[5]));
  norm.epsilon = graph.constant(static_cast<float>(call.attributes.as<LayerNorm>().epsilon));
  graph.layer_norm_forward(norm);
  return graph;
}

CudnnGraph layer_norm_backward_graph(const OpCall& call, std::span<const TensorSpec> tensors) {
  expect_f32_sums(call);
  CudnnGraph graph;
  CudnnGraph::NormBackward norm;
  norm.dy = graph.argument(0, rows(call, tensors[0]));
  norm.x = graph.argument(1, rows(call, tensors[1]));
  norm.scale = graph.argument(2, parameter(call, tensors[2]));
  norm.mean = graph.argument(3, statistic(call, tensors[3]));
  norm.inverse_deviation = graph.argument(4, statistic(call, tensors[4]));
  norm.dx = graph.argument(5, rows(call, tensors[5]));
  norm.dscale = graph.argument(6, parameter(call, tensors[6]));
  norm.dbias = graph.argument(7, parameter(call, tensors[7]));
  graph.layer_norm_backward(norm);
  return graph;
}

}  // namespace gpubench::cuda
