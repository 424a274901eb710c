#include "reference/cuda/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "reference/cuda/kernels/cross_entropy.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench::cuda {
namespace {

/// Rows of logits. Throws Unsupported for types and layouts that the kernels lack.
RowView checked_logits(const OpCall& call, const Named<TensorSpec>& operand) {
  const TensorSpec& logits = operand["logits"];
  expect_type(call, operand["labels"], DType::i32);
  for (const char* dense : {"labels", "lse"}) expect_row_major(call, operand[dense]);
  expect_type(call, operand["lse"], statistic_type(logits.dtype));
  for (const char* name : {"loss", "score"}) {
    if (const TensorSpec* statistic = operand.find(name)) expect_type(call, *statistic, statistic_type(logits.dtype));
  }
  if (const TensorSpec* dlogits = operand.find("dlogits")) expect_same_type(call, logits, *dlogits);
  return rows_of(call, logits);
}

/// Constants of the loss. Throws Unsupported unless dloss and count have the loss's type.
CrossEntropyTerms terms_of(const OpCall& call, const Named<TensorSpec>& operand) {
  const auto& attributes = call.attributes.as<CrossEntropy>();
  for (const char* name : {"dloss", "count"}) {
    const TensorSpec* const data = operand.find("logits") != nullptr ? operand.find("logits") : operand.find("lses");
    if (const TensorSpec* number = operand.find(name)) expect_type(call, *number, statistic_type(data->dtype));
  }
  CrossEntropyTerms terms;
  terms.ignores = attributes.ignores;
  terms.ignore_index = attributes.ignore_index;
  terms.label_smoothing = attributes.label_smoothing;
  terms.z_loss = attributes.z_loss;
  return terms;
}

/// The classes that the logits cover. Labels have 32 bits, which limits the number of classes.
ClassPart part_of(const OpCall& call, std::int64_t here) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  const auto& attributes = call.attributes.as<CrossEntropy>();
  return {static_cast<int>(std::min(attributes.first, most)),
          static_cast<int>(std::min(attributes.all_classes(here), most))};
}

constexpr auto dloss_of_terms = [](auto& args, const Tensor& dloss, bool) { args.terms.dloss = dloss.data; };
/// Scratch: the number of counted rows, then the kernels' part.
template <class Args>
void split_scratch(Args& args, const Tensor& scratch, bool) {
  args.terms.counted = reinterpret_cast<double*>(scratch.data);
  if constexpr (requires { args.row_loss; }) args.row_loss = args.terms.counted + 1;
}

std::size_t term_scratch_bytes(std::int64_t rows) { return static_cast<std::size_t>(rows + 1) * sizeof(double); }

/// Common arguments of calls on logits. Throws Unsupported for types and layouts that the kernels lack.
template <class Args>
Args logits_args(const OpCall& call, const Named<TensorSpec>& operand) {
  const RowView rows = checked_logits(call, operand);
  Args args;
  args.terms = terms_of(call, operand);
  if constexpr (requires { args.part; }) args.part = part_of(call, rows.columns);
  args.data = any_element(call, operand["logits"]);
  args.rows = rows.rows;
  args.classes = rows.columns;
  if constexpr (requires { args.stride; }) {
    args.stride = rows.stride;
  } else {
    args.logits_stride = rows.stride;
    args.dlogits_stride = rows_of(call, operand["dlogits"]).stride;
  }
  return args;
}

// Also cross_entropy_partial. Loss and log-sum-exp f64 for f64, else f32; dlogits has the logits' type and may
// overwrite them.
Plan plan_cross_entropy_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  using Args = CrossEntropyForwardArgs;
  const auto args = logits_args<Args>(call, {call, tensors});
  const std::size_t bytes = term_scratch_bytes(args.rows);
  return own_plan(call, context, args, launch_cross_entropy_forward,
                  {{"logits", to<&Args::logits>},
                   {"labels", to<&Args::labels>},
                   {"loss?", to<&Args::loss>},
                   {"lse", to<&Args::lse>},
                   {"score?", to<&Args::score>},
                   {"count?", to<&Args::count>},
                   {workspace_operand, split_scratch<Args>}},
                  bytes);
}

Plan plan_cross_entropy_combine(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec& lses = operand["lses"];
  for (const char* name : {"lses", "scores", "labels", "lse"}) expect_row_major(call, operand[name]);
  for (const char* name : {"scores", "loss", "lse"}) expect_same_type(call, lses, operand[name]);
  expect_type(call, operand["labels"], DType::i32);
  if (lses.dtype != DType::f64) expect_type(call, lses, DType::f32);
  using Args = CrossEntropyCombineArgs;
  Args args;
  args.terms = terms_of(call, operand);
  args.data = any_element(call, lses);
  args.parts = lses.shape[0];
  args.rows = lses.shape[1];
  return own_plan(call, context, args, launch_cross_entropy_combine,
                  {{"lses", to<&Args::lses>},
                   {"count", to<&Args::count>},
                   {"scores", to<&Args::scores>},
                   {"labels", to<&Args::labels>},
                   {"loss", to<&Args::loss>},
                   {"lse", to<&Args::lse>},
                   {workspace_operand, split_scratch<Args>}},
                  term_scratch_bytes(args.rows));
}

Plan plan_cross_entropy_forward_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                         const CudaContext& context) {
  using Args = CountedForwardBackwardArgs;
  const Named<TensorSpec> operand(call, tensors);
  const auto args = logits_args<Args>(call, operand);
  if (args.classes > std::numeric_limits<int>::max()) {
    refuse(call, fmt::format("logits {}; expected fewer than 2^31 classes", operand["logits"].to_string()));
  }
  const std::size_t bytes = term_scratch_bytes(args.rows);
  return own_plan(call, context, args, launch_cross_entropy_forward_backward,
                  {{"logits", to<&Args::logits>},
                   {"labels", to<&Args::labels>},
                   {"loss", to<&Args::loss>},
                   {"lse", to<&Args::lse>},
                   {"dlogits", to<&Args::dlogits>},
                   {"dloss", dloss_of_terms},
                   {"count", to<&Args::count>},
                   {workspace_operand, split_scratch<Args>}},
                  bytes);
}

Plan plan_cross_entropy_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  using Args = CrossEntropyBackwardArgs;
  const auto args = logits_args<Args>(call, {call, tensors});
  return own_plan(call, context, args, launch_cross_entropy_backward,
                  {{"logits", to<&Args::logits>},
                   {"labels", to<&Args::labels>},
                   {"lse", to<&Args::lse>},
                   {"dlogits", to<&Args::dlogits>},
                   {"dloss", dloss_of_terms},
                   {"count", to<&Args::count>},
                   {workspace_operand, split_scratch<Args>}},
                  args.terms.ignores ? sizeof(double) : 0);
}

Plan plan_count_labels(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_type(call, operand["labels"], DType::i32);
  expect_row_major(call, operand["labels"]);
  expect_type(call, operand["y"], DType::f32);
  using Args = CountLabelsArgs;
  Args args;
  args.ignore_index = call.attributes.as<CountLabels>().ignore_index;
  args.parts = call.attributes.as<CountLabels>().parts;
  args.rows = operand["labels"].shape.elements();
  return own_plan(call, context, args, launch_count_labels, {{"labels", to<&Args::labels>}, {"y", to<&Args::y>}});
}

}  // namespace

Ops cross_entropy_ops() {
  return {{count_labels_kind, plan_count_labels},
          {cross_entropy_backward_kind, plan_cross_entropy_backward},
          {cross_entropy_combine_kind, plan_cross_entropy_combine},
          {cross_entropy_forward_kind, plan_cross_entropy_forward},
          {cross_entropy_forward_backward_kind, plan_cross_entropy_forward_backward, Gain::expected},
          {cross_entropy_partial_kind, plan_cross_entropy_forward}};
}

}  // namespace gpubench::cuda
