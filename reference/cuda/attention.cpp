#include "reference/cuda/plans.h"

#include <fmt/format.h>

#include "reference/cuda/attention_graph.h"
#include "reference/cuda/cudnn.h"
#include "reference/cuda/graph_plan.h"

namespace gpubench::cuda {
namespace {

// cuDNN's own front end does not hand graphs like these to earlier versions: it pads lengths that are no multiple of
// 128 up to 9.15, masks with the lowest finite number before 9.10, and zeroes the sum of dq before 9.6.
constexpr std::size_t first_version = 91600;

void expect_version(const OpCall& call) {
  if (cudnnGetVersion() >= first_version) return;
  refuse(call, fmt::format("cuDNN {}; expected 9.16 or newer for fused attention", cudnn_version()));
}

}  // namespace

Plan plan_attention_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  expect_version(call);
  return plan_graph(call, tensors, attention_forward_graph(call, tensors), context);
}

Plan plan_attention_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  expect_version(call);
  return plan_graph(call, tensors, attention_backward_graph(call, tensors, context.options.deterministic), context);
}

}  // namespace gpubench::cuda
