#include "reference/cuda/layer_norm_cudnn.h"

#include "reference/cuda/graph_plan.h"
#include "reference/cuda/layer_norm_graph.h"

namespace gpubench::cuda {
namespace {

std::vector<Plan> plans_or_none(CudnnGraph (*graph)(const OpCall&, std::span<const TensorSpec>), const OpCall& call,
                                std::span<const TensorSpec> tensors, const CudaContext& context) {
  try {
    return graph_plans(call, tensors, graph(call, tensors), context);
  } catch (const Unsupported&) {
    return {};
  }
}

}  // namespace

std::vector<Plan> cudnn_layer_norm_forward_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                                 const CudaContext& context) {
  return plans_or_none(layer_norm_forward_graph, call, tensors, context);
}
std::vector<Plan> cudnn_layer_norm_backward_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                                  const CudaContext& context) {
  return plans_or_none(layer_norm_backward_graph, call, tensors, context);
}

}  // namespace gpubench::cuda
