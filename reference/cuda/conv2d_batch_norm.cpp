// A convolution followed by the batch norm of its product: cuDNN's graph, then own kernels.
#include "reference/ops/conv2d_batch_norm.h"

#include <algorithm>

#include "reference/cuda/autotune.h"
#include "reference/cuda/plans.h"

namespace gpubench::cuda {
namespace {

// Suffixes of implementation names: the own kernels' part.
constexpr std::string_view normalize = ":normalize", batch_norm = ":batch_norm";

/// Scratch memory with sums: [channel sums][the convolution's]; without: the larger of the two, shared.
Plan composed(const OpCall& call, const Plan& convolution, const Plan& norm, bool sums) {
  const std::size_t sum_bytes = sums ? norm->workspace_bytes() : 0;
  const std::size_t bytes = std::max(sum_bytes + convolution->workspace_bytes(), norm->workspace_bytes());
  return plan_of(
      convolution->implementation() + "+" + norm->implementation() + std::string(sums ? normalize : batch_norm), bytes,
      [call, convolution, norm, sum_bytes](std::span<const Tensor> bound, Workspace workspace) {
        std::vector<Tensor> operands = convolution_operands(call, bound);
        if (sum_bytes > 0) {
          operands.push_back({{}, workspace.data});
          operands.push_back({{}, workspace.data + sum_bytes / 2});
        }
        const Workspace rest{workspace.data + sum_bytes, workspace.bytes - sum_bytes};
        return [first = dynamic_cast<const CudaPlan&>(*convolution).bind(operands, rest),
                second = dynamic_cast<const CudaPlan&>(*norm).bind(batch_norm_operands(call, bound), workspace)](
                   cudaStream_t stream) {
          static_cast<const CudaLaunch&>(*first).enqueue(stream);
          static_cast<const CudaLaunch&>(*second).enqueue(stream);
        };
      });
}

// cuDNN's convolution with channel sums in one graph (f16, bf16 and tf32) and own kernels for the normalization, timed
// against the convolution and batch_norm_forward's kernels.
Plan plan_conv2d_batch_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                    const CudaContext& context) {
  const OpCall norm = batch_norm_of(call);
  const std::vector<TensorSpec> norm_tensors = batch_norm_operands(call, tensors);
  // A named implementation is searched among its kind; the part before "+" names the convolution.
  const std::string& named = context.options.pinned.empty() ? context.options.remembered : context.options.pinned;
  CudaContext of_convolution = context;
  of_convolution.options.pinned.clear();
  of_convolution.options.remembered = named.substr(0, named.find('+'));
  std::vector<Plan> candidates;
  if (named.empty() || named.ends_with(normalize)) {
    try {
      const Plan own = plan_batch_norm_of_sums(norm, norm_tensors, context);
      for (const Plan& plan : convolution_and_sums_plans(call, tensors, of_convolution))
        candidates.push_back(composed(call, plan, own, true));
    } catch (const Unsupported&) {
      // Without the graph, statistics are computed from the product; the implementation name shows it.
    }
  }
  if (candidates.empty() || named.empty() || named.ends_with(batch_norm)) {
    const Plan own = plan_batch_norm_forward(norm, norm_tensors, context);
    for (const Plan& plan : convolution_plans(call, tensors, of_convolution))
      candidates.push_back(composed(call, plan, own, false));
  }
  const auto at = [&](std::string_view name) {
    return static_cast<int>(Named<TensorSpec>(call, tensors).position(name).value());
  };
  const TuningData data{
      .aliases = {{at("running_mean'"), at("running_mean")}, {at("running_var'"), at("running_var")}}};
  return fastest_of(call, candidates, tensors, data, context);
}

}  // namespace

Ops conv2d_batch_norm_ops() {
  return {{conv2d_batch_norm_forward_kind, plan_conv2d_batch_norm_forward, Gain::expected}};
}

}  // namespace gpubench::cuda
