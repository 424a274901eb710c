#include "reference/cuda/plans.h"

#include <fmt/format.h>

#include <limits>

#include "reference/cuda/kernels/cross_entropy.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench::cuda {
namespace {

/// The rows of logits, where all tensors that the call has are of types and layouts that the kernels know.
RowView checked_logits(const OpCall& call, const Named<TensorSpec>& operand) {
  const TensorSpec& logits = operand["logits"];
  expect_type(call, operand["labels"], DType::i32);
  for (const char* dense : {"labels", "lse"}) expect_row_major(call, operand[dense]);
  expect_type(call, operand["lse"], statistic_type(logits.dtype));
  if (const TensorSpec* loss = operand.find("loss")) expect_type(call, *loss, statistic_type(logits.dtype));
  if (const TensorSpec* dlogits = operand.find("dlogits")) expect_same_type(call, logits, *dlogits);
  return rows_of(call, logits);
}

}  // namespace

Plan plan_cross_entropy_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  const RowView rows = checked_logits(call, operand);
  using Args = CrossEntropyForwardArgs;
  Args args;
  args.data = any_element(call, operand["logits"]);
  args.rows = rows.rows;
  args.classes = rows.columns;
  args.stride = rows.stride;
  const std::size_t bytes = static_cast<std::size_t>(rows.rows) * sizeof(double);
  return own_plan(call, context, args, launch_cross_entropy_forward,
                  {{"logits", to<&Args::logits>},
                   {"labels", to<&Args::labels>},
                   {"loss", to<&Args::loss>},
                   {"lse", to<&Args::lse>},
                   {workspace_operand, to<&Args::row_loss>}},
                  bytes);
}

Plan plan_cross_entropy_forward_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                         const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  const RowView rows = checked_logits(call, operand);
  if (rows.columns > std::numeric_limits<int>::max()) {
    refuse(call, fmt::format("logits {}; expected fewer than 2^31 classes", operand["logits"].to_string()));
  }
  using Args = CrossEntropyForwardBackwardArgs;
  Args args;
  args.data = any_element(call, operand["logits"]);
  args.rows = rows.rows;
  args.classes = rows.columns;
  args.logits_stride = rows.stride;
  args.dlogits_stride = rows_of(call, operand["dlogits"]).stride;
  const std::size_t bytes = static_cast<std::size_t>(rows.rows) * sizeof(double);
  return own_plan(call, context, args, launch_cross_entropy_forward_backward,
                  {{"logits", to<&Args::logits>},
                   {"labels", to<&Args::labels>},
                   {"loss", to<&Args::loss>},
                   {"lse", to<&Args::lse>},
                   {"dlogits", to<&Args::dlogits>},
                   {workspace_operand, to<&Args::row_loss>}},
                  bytes);
}

Plan plan_cross_entropy_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  const RowView rows = checked_logits(call, operand);
  using Args = CrossEntropyBackwardArgs;
  Args args;
  args.data = any_element(call, operand["logits"]);
  args.rows = rows.rows;
  args.classes = rows.columns;
  args.logits_stride = rows.stride;
  args.dlogits_stride = rows_of(call, operand["dlogits"]).stride;
  return own_plan(call, context, args, launch_cross_entropy_backward,
                  {{"logits", to<&Args::logits>},
                   {"labels", to<&Args::labels>},
                   {"lse", to<&Args::lse>},
                   {"dlogits", to<&Args::dlogits>}});
}

}  // namespace gpubench::cuda
