#include "reference/cuda/graph_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "reference/cuda/autotune.h"
#include "reference/cuda/cudnn_plan.h"

namespace gpubench::cuda {
namespace {

// Heuristics list dozens of engines for a convolution; the fastest has a low rank.
constexpr std::size_t most_candidates = 12;

Plan plan_from(const CudnnPlan& plan) {
  return plan_of(plan.implementation(), plan.workspace_bytes(),
                 [plan](std::span<const Tensor> bound, Workspace workspace) {
                   std::vector<std::byte*> addresses;
                   for (const Tensor& tensor : bound) addresses.push_back(tensor.data);
                   return plan.bind(addresses, workspace.data);
                 });
}

std::size_t left_beside(std::span<const TensorSpec> tensors, const DeviceTraits& device) {
  std::int64_t bytes = device.memory_bytes;
  for (const TensorSpec& tensor : tensors) bytes -= tensor.bytes();
  return static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
}

}  // namespace

void expect_f32_sums(const OpCall& call) {
  if (call.math.accumulate == DType::f32) return;
  refuse(call, fmt::format("sums in {}; expected f32 on cuDNN", name(call.math.accumulate)));
}

void expect_strides(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.layout.blocks.empty()) return;
  refuse(call, fmt::format("tensor {} has layout {}; expected strides", tensor.to_string(),
                           tensor.layout.to_string(tensor.shape)));
}

std::vector<Plan> graph_plans(const OpCall& call, std::span<const TensorSpec> tensors, CudnnGraph graph,
                              const CudaContext& context) {
  const CudnnSearch search{.numerics = CudnnNumerics::of(call.math, tensors[0].dtype, context.deterministic),
                           .most = most_candidates,
                           .workspace_limit = left_beside(tensors, context.device)};
  std::vector<Plan> plans;
  try {
    for (const CudnnPlan& plan :
         cudnn_plans(context.cudnn, std::make_shared<const CudnnGraph>(std::move(graph)), search)) {
      plans.push_back(plan_from(plan));
    }
  } catch (const Unsupported& e) {
    refuse(call, e.what());
  }
  return plans;
}

Plan plan_graph(const OpCall& call, std::span<const TensorSpec> tensors, CudnnGraph graph, const CudaContext& context) {
  return fastest_of(call, graph_plans(call, tensors, std::move(graph), context), tensors, {}, context);
}

}  // namespace gpubench::cuda
