#include "reference/cuda/cross_entropy.h"

#include <fmt/format.h>

#include <limits>

#include "reference/cuda/kernels/cross_entropy.h"
#include "reference/cuda/row_view.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench::cuda {
namespace {

/// The rows of logits, where these, labels, loss and lse (the first four tensors) are of types and layouts to be had.
RowView checked_logits(const OpCall& call, std::span<const TensorSpec> tensors) {
  expect_type(call, tensors[1], DType::i32);
  for (const std::size_t i : {1U, 3U}) expect_row_major(call, tensors[i]);
  for (const std::size_t i : {2U, 3U}) expect_type(call, tensors[i], statistic_type(tensors[0].dtype));
  return rows_of(call, tensors[0]);
}

}  // namespace

Plan plan_cross_entropy_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const RowView rows = checked_logits(call, tensors);
  CrossEntropyForwardArgs args;
  args.data = any_element(call, tensors[0]);
  args.rows = rows.rows;
  args.classes = rows.columns;
  args.stride = rows.stride;
  const std::size_t bytes = static_cast<std::size_t>(rows.rows) * sizeof(double);
  return plan_of(own_implementation(context), bytes, [args](std::span<const Tensor> bound, Workspace space) {
    CrossEntropyForwardArgs work = args;
    work.logits = bound[0].data;
    work.labels = elements_of<const int>(bound[1]);
    work.loss = bound[2].data;
    work.lse = bound[3].data;
    work.row_loss = reinterpret_cast<double*>(space.data);
    return [work](cudaStream_t stream) {
      launch_cross_entropy_forward(work, stream);
      check_launch("cross_entropy_forward");
    };
  });
}

Plan plan_cross_entropy_forward_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                         const CudaContext& context) {
  const RowView rows = checked_logits(call, tensors);
  expect_same_type(call, tensors[0], tensors[4]);
  if (rows.columns > std::numeric_limits<int>::max()) {
    refuse(call, fmt::format("logits {}; expected fewer than 2^31 classes", tensors[0].to_string()));
  }
  CrossEntropyForwardBackwardArgs args;
  args.data = any_element(call, tensors[0]);
  args.rows = rows.rows;
  args.classes = rows.columns;
  args.logits_stride = rows.stride;
  args.dlogits_stride = rows_of(call, tensors[4]).stride;
  const std::size_t bytes = static_cast<std::size_t>(rows.rows) * sizeof(double);
  return plan_of(own_implementation(context), bytes, [args](std::span<const Tensor> bound, Workspace space) {
    CrossEntropyForwardBackwardArgs work = args;
    work.logits = bound[0].data;
    work.labels = elements_of<const int>(bound[1]);
    work.loss = bound[2].data;
    work.lse = bound[3].data;
    work.dlogits = bound[4].data;
    work.row_loss = reinterpret_cast<double*>(space.data);
    return [work](cudaStream_t stream) {
      launch_cross_entropy_forward_backward(work, stream);
      check_launch("cross_entropy_forward_backward");
    };
  });
}

Plan plan_cross_entropy_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  expect_type(call, tensors[1], DType::i32);
  expect_type(call, tensors[2], statistic_type(tensors[0].dtype));
  expect_same_type(call, tensors[0], tensors[3]);
  for (const std::size_t i : {1U, 2U}) expect_row_major(call, tensors[i]);
  const RowView rows = rows_of(call, tensors[0]);
  CrossEntropyBackwardArgs args;
  args.data = any_element(call, tensors[0]);
  args.rows = rows.rows;
  args.classes = rows.columns;
  args.logits_stride = rows.stride;
  args.dlogits_stride = rows_of(call, tensors[3]).stride;
  return plan_of(own_implementation(context), 0, [args](std::span<const Tensor> bound, Workspace) {
    CrossEntropyBackwardArgs work = args;
    work.logits = bound[0].data;
    work.labels = elements_of<const int>(bound[1]);
    work.lse = bound[2].data;
    work.dlogits = bound[3].data;
    return [work](cudaStream_t stream) {
      launch_cross_entropy_backward(work, stream);
      check_launch("cross_entropy_backward");
    };
  });
}

}  // namespace gpubench::cuda
