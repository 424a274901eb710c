#include "reference/ops/token_groups.h"

#include <fmt/format.h>

#include <limits>

#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/tokens.h"

namespace gpubench::cuda {
namespace {

/// Extents. `permutes`: x has a row per token; else a row per place.
TokenRowsArgs token_rows(const OpCall& call, std::span<const TensorSpec> tensors, bool permutes) {
  for (const TensorSpec& tensor : tensors) expect_row_major(call, tensor);
  const TensorSpec &x = tensors[0], &pairs = tensors[1];
  TokenRowsArgs args{any_element(call, x)};
  args.h = x.shape[1];
  args.t = permutes ? x.shape[0] : pairs.shape[0];
  args.n = permutes ? pairs.shape[0] : x.shape[0];
  args.k = permutes ? args.n / args.t : pairs.shape[1];
  return args;
}

// Row-major.
Plan plan_group_tokens(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  using Args = GroupTokensArgs;
  for (const TensorSpec& tensor : tensors) expect_row_major(call, tensor);
  const auto& [experts, first] = call.attributes.as<TokenGrouping>();
  const std::int64_t pairs = tensors[0].shape.elements();
  const std::int64_t scratch = group_tokens_scratch(pairs, experts);
  if (scratch > std::numeric_limits<std::int32_t>::max() || first > std::numeric_limits<std::int32_t>::max())
    refuse(call, fmt::format("{} pairs of {} experts from {} on; expected fewer than 2^31", pairs, experts, first));
  Args args;
  args.pairs = static_cast<int>(pairs);
  args.experts = static_cast<int>(experts);
  args.first = static_cast<int>(first);
  return own_plan(call, context, args, launch_group_tokens,
                  {{"indices", to<&Args::indices>},
                   {"sizes", to<&Args::sizes>},
                   {"order", to<&Args::order>},
                   {"places", to<&Args::places>},
                   {workspace_operand, to<&Args::scratch>}},
                  static_cast<std::size_t>(scratch) * sizeof(int));
}

// permute_tokens and unpermute_tokens.
Plan plan_move_tokens(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  using Args = TokenRowsArgs;
  const bool permutes = call.kind == permute_tokens_kind;
  return own_plan(call, context, token_rows(call, tensors, permutes),
                  permutes ? launch_permute_tokens : launch_unpermute_tokens,
                  {{"x", to<&Args::x>},
                   {"order?", to<&Args::pairs>},
                   {"places?", to<&Args::pairs>},
                   {"weights", to<&Args::weights>},
                   {"y", to<&Args::to>}});
}

Plan plan_unpermute_backward_weights(const OpCall& call, std::span<const TensorSpec> tensors,
                                     const CudaContext& context) {
  using Args = TokenRowsArgs;
  return own_plan(
      call, context, token_rows(call, tensors, false), launch_unpermute_backward_weights,
      {{"x", to<&Args::x>}, {"places", to<&Args::pairs>}, {"dy", to<&Args::dy>}, {"dweights", to<&Args::to>}});
}

}  // namespace

Ops token_groups_ops() {
  return {{group_tokens_kind, plan_group_tokens},
          {permute_tokens_kind, plan_move_tokens},
          {unpermute_backward_weights_kind, plan_unpermute_backward_weights},
          {unpermute_tokens_kind, plan_move_tokens}};
}

}  // namespace gpubench::cuda
