#include "reference/ops/routing.h"

#include <fmt/format.h>

#include <limits>

#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/tokens.h"

namespace gpubench::cuda {
namespace {

RoutingArgs routing_args(const OpCall& call, std::span<const TensorSpec> tensors) {
  const TensorSpec& logits = tensors[0];
  const Routing& routing = call.attributes.as<Routing>();
  for (const TensorSpec& tensor : tensors) expect_row_major(call, tensor);
  if (routing.k > max_routed || logits.shape[1] > std::numeric_limits<std::int32_t>::max())
    refuse(call, fmt::format("{} of {} experts; expected at most {}", routing.k, logits.shape[1], max_routed));
  RoutingArgs args{any_element(call, logits), routing.scores == Routing::Scores::softmax, routing.normalize,
                   routing.scale};
  args.tokens = logits.shape[0];
  args.experts = static_cast<int>(logits.shape[1]);
  args.k = static_cast<int>(routing.k);
  return args;
}

// Row-major; up to 32 experts per token.
Plan plan_routing_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  using Args = RoutingArgs;
  return own_plan(call, context, routing_args(call, tensors), launch_routing_forward,
                  {{"logits", to<&Args::logits>},
                   {"bias", to<&Args::bias>},
                   {"indices", to<&Args::indices>},
                   {"weights", to<&Args::weights>}});
}

Plan plan_routing_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  using Args = RoutingArgs;
  return own_plan(call, context, routing_args(call, tensors), launch_routing_backward,
                  {{"logits", to<&Args::logits>},
                   {"indices", to<&Args::indices>},
                   {"dweights", to<&Args::dweights>},
                   {"dlogits", to<&Args::dlogits>}});
}

}  // namespace

Ops routing_ops() {
  return {{routing_backward_kind, plan_routing_backward}, {routing_forward_kind, plan_routing_forward}};
}

}  // namespace gpubench::cuda
