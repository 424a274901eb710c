#include "reference/ops/builders.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/builder_arguments.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/conv2d_batch_norm.h"
#include "reference/ops/count_labels.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/dropout.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"
#include "reference/ops/grouped_gemm.h"
#include "reference/ops/loss_scaling.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/pool.h"
#include "reference/ops/quantize.h"
#include "reference/ops/rotary.h"
#include "reference/ops/routing.h"
#include "reference/ops/softmax.h"
#include "reference/ops/tensor_checks.h"
#include "reference/ops/token_groups.h"

namespace gpubench {
namespace {

using Builder = void (*)(const BuilderArguments&);

/// A builder whose operands are the op's inputs, in their order.
template <auto function>
constexpr Builder in_turn = [](const BuilderArguments& a) { call_in_turn(function, a); };

void build_gemm(const BuilderArguments& a) {
  const GemmOperands operands{a.optional("c_in"),    a.optional("bias"),    a.optional("pre"),
                              a.optional("scale_a"), a.optional("scale_b"), a.optional("blocks_a"),
                              a.optional("blocks_b")};
  const std::optional<ValueId> into = operands.c_in ? std::nullopt : std::optional(a.into(0));
  gemm(a.program, a.attributes<Gemm>(), a.call.math, a.call.label, a.in("a"), a.in("b"), operands, into);
}

const std::map<std::string_view, Builder>& builders() {
  static const std::map<std::string_view, Builder> all{
      {"adamw", in_turn<adamw>},
      {"add", in_turn<add>},
      {"amax", in_turn<amax>},
      {"attention_backward", in_turn<attention_backward>},
      {"attention_forward", in_turn<attention_forward>},
      {"attention_merge", in_turn<attention_merge>},
      {"average_pool_backward", in_turn<average_pool_backward>},
      {"average_pool_forward", in_turn<average_pool_forward>},
      {"batch_norm_backward", in_turn<batch_norm_backward>},
      {"batch_norm_forward", in_turn<batch_norm_forward>},
      {"batch_norm_relu_backward",
       [](const BuilderArguments& a) {
         batch_norm_relu_backward(a.program, a.attributes<BatchNormReluBackward>(), a.call.math, a.call.label,
                                  {a.in("x"), a.in("gamma"), a.in("mean"), a.in("rstd"), a.in("y")}, a.in("dy"),
                                  a.optional("dy2"));
       }},
      {"batch_norm_relu_forward",
       [](const BuilderArguments& a) {
         batch_norm_relu_forward(a.program, a.attributes<BatchNormRelu>().norm, a.call.math, a.call.label, a.in("x"),
                                 {a.in("gamma"), a.in("beta"), a.in("running_mean"), a.in("running_var")},
                                 a.optional("r"));
       }},
      {"cast", in_turn<cast>},
      {"clip", in_turn<clip>},
      {"clip_adamw", in_turn<clip_adamw>},
      {"column_sum",
       [](const BuilderArguments& a) { column_sum(a.program, a.call.math, a.call.label, a.in("x"), a.into(0)); }},
      {"conv2d_backward_data", in_turn<conv2d_backward_data>},
      {"conv2d_backward_filter", in_turn<conv2d_backward_filter>},
      {"conv2d_batch_norm_forward", in_turn<conv2d_batch_norm_forward>},
      {"conv2d_forward", in_turn<conv2d_forward>},
      {"copy", in_turn<copy>},
      {"count_labels", in_turn<count_labels>},
      {"cross_entropy_backward",
       [](const BuilderArguments& a) {
         cross_entropy_backward(a.program, a.call.math, a.call.label, a.in("logits"), a.in("labels"), a.in("lse"),
                                false, a.attributes<CrossEntropy>(), a.optional("dloss"), a.optional("count"));
       }},
      {"cross_entropy_combine", in_turn<cross_entropy_combine>},
      {"cross_entropy_forward", in_turn<cross_entropy_forward>},
      {"cross_entropy_forward_backward",
       [](const BuilderArguments& a) {
         cross_entropy_forward_backward(a.program, a.call.math, a.call.label, a.in("logits"), a.in("labels"), false,
                                        a.attributes<CrossEntropy>(), a.optional("dloss"), a.optional("count"));
       }},
      {"cross_entropy_partial", in_turn<cross_entropy_partial>},
      {"dropout", in_turn<dropout>},
      {"embedding_backward",
       [](const BuilderArguments& a) {
         embedding_backward(a.program, a.call.math, a.call.label, a.in("dy"), a.in("tokens"),
                            a.shape_of_output(2, "[rows, h]")[0], a.attributes<TableRows>());
       }},
      {"embedding_backward_add", in_turn<embedding_backward_add>},
      {"embedding_forward", in_turn<embedding_forward>},
      {"gelu_backward", in_turn<gelu_backward>},
      {"gelu_forward", in_turn<gelu_forward>},
      {"gemm", build_gemm},
      {"gemm_gelu_bias_gradient",
       [](const BuilderArguments& a) {
         gemm_gelu_bias_gradient(a.program, a.attributes<Gemm>(), a.call.math, a.call.label, a.in("a"), a.in("b"),
                                 a.in("pre"), a.into(1));
       }},
      {"gemm_weight_bias_gradient",
       [](const BuilderArguments& a) {
         gemm_weight_bias_gradient(a.program, a.attributes<GemmWeightBiasGradient>(), a.call.math, a.call.label,
                                   a.in("a"), a.in("b"), a.into(0), a.into(1));
       }},
      {"gradient_norm", in_turn<gradient_norm>},
      {"group_tokens", in_turn<group_tokens>},
      {"grouped_gemm",
       [](const BuilderArguments& a) {
         grouped_gemm(a.program, a.attributes<GroupedGemm>(), a.call.math, a.call.label, a.in("a"), a.in("b"),
                      a.in("sizes"), a.into(0));
       }},
      {"grouped_gemm_backward_weight",
       [](const BuilderArguments& a) {
         grouped_gemm_backward_weight(a.program, a.call.math, a.call.label, a.in("a"), a.in("b"), a.in("sizes"),
                                      a.into(0));
       }},
      {"layer_norm_backward", in_turn<layer_norm_backward>},
      {"layer_norm_forward", in_turn<layer_norm_forward>},
      {"lion", in_turn<lion>},
      {"max_pool_backward", in_turn<max_pool_backward>},
      {"max_pool_forward", in_turn<max_pool_forward>},
      {"modulate_backward", in_turn<modulate_backward>},
      {"modulate_forward", in_turn<modulate_forward>},
      {"multiply", in_turn<multiply>},
      {"permute_tokens", in_turn<permute_tokens>},
      {"quantize",
       [](const BuilderArguments& a) {
         quantize(a.program, a.attributes<Quantize>(), a.call.math, a.call.label, a.in("x"), a.in("scale"),
                  a.out(0).layout);
       }},
      {"quantize_blocks", in_turn<quantize_blocks>},
      {"relu_backward", in_turn<relu_backward>},
      {"relu_forward", in_turn<relu_forward>},
      {"reorder", [](const BuilderArguments& a) { reorder_into(a.program, a.call.label, a.in("x"), a.into(0)); }},
      {"repeat_rows",
       [](const BuilderArguments& a) { repeat_rows_into(a.program, a.call.math, a.call.label, a.in("x"), a.into(0)); }},
      {"residual_norm_backward",
       [](const BuilderArguments& a) {
         layer_norm_backward(a.program, a.attributes<Norm>(), a.call.math, a.call.label, a.in("dy"), a.in("x"),
                             a.in("gamma"), a.in("mean"), a.in("rstd"), a.in("dr"));
       }},
      {"residual_norm_forward", in_turn<residual_norm_forward>},
      {"rms_norm_backward", in_turn<rms_norm_backward>},
      {"rms_norm_forward", in_turn<rms_norm_forward>},
      {"rotary", in_turn<rotary>},
      {"routing_backward", in_turn<routing_backward>},
      {"routing_forward", in_turn<routing_forward>},
      {"scale",
       [](const BuilderArguments& a) {
         scale(a.program, a.attributes<Scale>().factor, a.call.math, a.call.label, a.in("x"));
       }},
      {"scale_from_amax", in_turn<scale_from_amax>},
      {"sgd", in_turn<sgd>},
      {"silu_backward", in_turn<silu_backward>},
      {"silu_forward", in_turn<silu_forward>},
      {"softmax_backward", in_turn<softmax_backward>},
      {"softmax_forward", in_turn<softmax_forward>},
      {"swiglu_backward", in_turn<swiglu_backward>},
      {"swiglu_forward", in_turn<swiglu_forward>},
      {"transpose",
       [](const BuilderArguments& a) {
         transpose(a.program, a.attributes<Transpose>().permutation, a.call.label, a.in("x"));
       }},
      {"triad",
       [](const BuilderArguments& a) {
         triad(a.program, a.attributes<Triad>().factor, a.call.math, a.call.label, a.in("b"), a.in("c"));
       }},
      {"unpermute_backward_weights", in_turn<unpermute_backward_weights>},
      {"unpermute_tokens", in_turn<unpermute_tokens>},
      {"unscale", in_turn<unscale>},
      {"update_scale", in_turn<update_scale>},
  };
  return all;
}

}  // namespace

const OpCall& append_call(Program& program, const OpCall& call, std::span<const TensorSpec> outputs) {
  const std::string op(call.kind.name);
  const auto found = builders().find(call.kind.name);
  if (found == builders().end()) throw ProgramError(op + " has tensors of several ranks; expected an op of one");
  expect_operands(call.kind, call.kind.inputs, call.attributes, call.inputs.size(), "inputs", call.label);
  found->second({program, call, outputs});
  const OpCall& made = program.ops().back();
  if (!(made.kind == call.kind) || !(made.attributes == call.attributes)) {
    throw ProgramError(op + ": attributes {" + call.attributes.to_string() + "} with these operands; expected " +
                       std::string(made.kind.name) + " {" + made.attributes.to_string() + "}");
  }
  if (made.outputs.size() != outputs.size()) {
    throw ProgramError(op + ": " + std::to_string(outputs.size()) + " outputs; expected " +
                       std::to_string(made.outputs.size()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    expect_shape(call.kind, outputs[i], program.spec(made.outputs[i]).shape);
    expect_dtype(call.kind, outputs[i], program.spec(made.outputs[i]).dtype);
  }
  return made;
}

}  // namespace gpubench
