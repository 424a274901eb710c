#include "reference/cuda/kernel.h"

#include <fmt/format.h>

#include <limits>

#include "reference/cuda/kernels/tokens.h"
#include "reference/ops/embedding.h"

namespace gpubench::cuda {
namespace {

void expect_counts(const OpCall& call, const TensorSpec& tokens, const TensorSpec& table) {
  expect_type(call, tokens, DType::i32);
  expect_row_major(call, tokens);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (tokens.shape.elements() <= most && table.shape[0] <= most) return;
  refuse(call, fmt::format("tokens {} and table {}; expected fewer than 2^31 tokens and rows", tokens.to_string(),
                           table.to_string()));
}

// Any type.
Plan plan_embedding_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  expect_counts(call, tensors[1], tensors[0]);
  const RowView table = rows_of(call, tensors[0]);
  const RowView y = rows_of(call, tensors[2]);
  EmbeddingForwardArgs args;
  args.element_bytes = static_cast<int>(size_of(tensors[0].dtype));
  args.rows = tensors[0].shape[0];
  args.first = call.attributes.as<TableRows>().first;
  args.vocabulary = call.attributes.as<TableRows>().all_rows(args.rows);
  args.tokens_count = tensors[1].shape[0];
  args.columns = table.columns;
  args.table_stride = table.stride;
  args.y_stride = y.stride;
  return own_plan(call, context, args, launch_embedding_forward,
                  {{"table", to<&EmbeddingForwardArgs::table>},
                   {"tokens", to<&EmbeddingForwardArgs::tokens>},
                   {"y", to<&EmbeddingForwardArgs::y>}});
}

// dtable has dy's type. In embedding_backward_add it is an input that the output overwrites.
Plan plan_embedding_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const TensorSpec& table = tensors.back();
  expect_counts(call, tensors[1], table);
  expect_same_type(call, tensors[0], table);
  const RowView dy = rows_of(call, tensors[0]);
  const RowView dtable = rows_of(call, table);
  EmbeddingBackwardArgs args;
  args.data = any_element(call, tensors[0]);
  args.adds = call.kind == embedding_backward_add_kind;
  args.rows = table.shape[0];
  args.first = call.attributes.as<TableRows>().first;
  args.padding_token = call.attributes.as<TableRows>().padding_token;
  args.tokens_count = tensors[1].shape[0];
  args.columns = dy.columns;
  args.dy_stride = dy.stride;
  args.dtable_stride = dtable.stride;
  const auto integers = static_cast<std::size_t>(embedding_backward_scratch(args.rows, args.tokens_count));
  const auto launch = [multiprocessors = context.device.multiprocessors](const EmbeddingBackwardArgs& work,
                                                                         cudaStream_t stream) {
    launch_embedding_backward(work, multiprocessors, stream);
  };
  return own_plan(call, context, args, launch,
                  {{"dy", to<&EmbeddingBackwardArgs::dy>},
                   {"tokens", to<&EmbeddingBackwardArgs::tokens>},
                   {"dtable", to<&EmbeddingBackwardArgs::dtable>},
                   {workspace_operand, to<&EmbeddingBackwardArgs::scratch>}},
                  integers * sizeof(int));
}

}  // namespace

Ops embedding_ops() {
  return {{embedding_backward_kind, plan_embedding_backward},
          {embedding_backward_add_kind, plan_embedding_backward, Gain::expected},
          {embedding_forward_kind, plan_embedding_forward}};
}

}  // namespace gpubench::cuda
