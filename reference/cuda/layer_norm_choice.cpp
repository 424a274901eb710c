#include "reference/cuda/layer_norm_choice.h"

#include "reference/cuda/autotune.h"
#include "reference/cuda/layer_norm.h"
#include "reference/cuda/layer_norm_cudnn.h"

namespace gpubench::cuda {
namespace {

bool asks_for_cudnn(const PlanOptions& options) { return options.pinned.starts_with("cudnn:"); }

}  // namespace

Plan choose_layer_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  if (!asks_for_cudnn(context.options)) return plan_layer_norm_forward(call, tensors, context);
  return fastest_of(call, cudnn_layer_norm_forward_plans(call, tensors, context), tensors, {}, context);
}

Plan choose_layer_norm_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  if (!asks_for_cudnn(context.options)) return plan_layer_norm_backward(call, tensors, context);
  return fastest_of(call, cudnn_layer_norm_backward_plans(call, tensors, context), tensors, {}, context);
}

}  // namespace gpubench::cuda
