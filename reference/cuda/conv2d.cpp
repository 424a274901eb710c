#include "reference/cuda/plans.h"

#include "reference/cuda/conv2d_graph.h"
#include "reference/cuda/graph_plan.h"

namespace gpubench::cuda {

Plan plan_conv2d_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_graph(call, tensors, conv2d_graph(call, tensors), context);
}
Plan plan_conv2d_backward_data(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_graph(call, tensors, conv2d_graph(call, tensors), context);
}
Plan plan_conv2d_backward_filter(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  return plan_graph(call, tensors, conv2d_graph(call, tensors), context);
}

}  // namespace gpubench::cuda
