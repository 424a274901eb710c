#include "reference/cpu/kernel.h"

#include <fmt/core.h>
#include <hwy/targets.h>

#include <algorithm>
#include <initializer_list>

#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/conv2d.h"
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
#include "reference/ops/token_groups.h"

namespace gpubench::cpu {
namespace {

const char* vector_units() {
#if HWY_ARCH_ARM_A64
  return "neon";
#else
  const std::int64_t targets = hwy::SupportedTargets();
  if ((targets & HWY_AVX3) != 0) return "avx512";
  if ((targets & HWY_AVX2) != 0) return "avx2";
  return (targets & HWY_SSE4) != 0 ? "sse4" : "generic";
#endif
}

// The table of ops.
constexpr std::initializer_list<OpImplementation> implementations{
    {adamw_kind, plan_adamw},
    {amax_kind, plan_quantize},
    {attention_backward_kind, plan_attention_backward},
    {attention_forward_kind, plan_attention_forward},
    {attention_merge_kind, plan_attention_merge},
    {average_pool_backward_kind, plan_pool},
    {average_pool_forward_kind, plan_pool},
    {batch_norm_backward_kind, plan_batch_norm_backward},
    {batch_norm_forward_kind, plan_batch_norm_forward},
    {batch_norm_relu_backward_kind, plan_batch_norm_backward},
    {batch_norm_relu_forward_kind, plan_batch_norm_forward},
    {clip_adamw_kind, plan_adamw},
    {clip_kind, plan_clip},
    {column_sum_kind, plan_column_sum},
    {conv2d_backward_data_kind, plan_conv2d},
    {conv2d_backward_filter_kind, plan_conv2d},
    {conv2d_forward_kind, plan_conv2d},
    {copy_kind, plan_copy},
    {count_labels_kind, plan_count_labels},
    {cross_entropy_backward_kind, plan_cross_entropy_backward},
    {cross_entropy_combine_kind, plan_cross_entropy_combine},
    {cross_entropy_forward_kind, plan_cross_entropy_forward},
    {cross_entropy_forward_backward_kind, plan_cross_entropy_forward_backward},
    {cross_entropy_partial_kind, plan_cross_entropy_forward},
    {dropout_kind, plan_dropout},
    {embedding_backward_kind, plan_embedding_backward},
    {embedding_forward_kind, plan_embedding_forward},
    {gemm_kind, plan_gemm},
    {gradient_norm_kind, plan_gradient_norm},
    {group_tokens_kind, plan_group_tokens},
    {grouped_gemm_kind, plan_grouped_gemm},
    {grouped_gemm_backward_weight_kind, plan_grouped_gemm_backward_weight},
    {layer_norm_backward_kind, plan_norm_backward},
    {layer_norm_forward_kind, plan_norm_forward},
    {lion_kind, plan_lion},
    {max_pool_backward_kind, plan_pool},
    {max_pool_forward_kind, plan_pool},
    {permute_tokens_kind, plan_permute_tokens},
    {quantize_kind, plan_quantize},
    {quantize_blocks_kind, plan_quantize_blocks},
    {reorder_kind, plan_reorder},
    {repeat_rows_kind, plan_copy},
    {residual_norm_forward_kind, plan_residual_norm_forward},
    {rms_norm_backward_kind, plan_norm_backward},
    {rms_norm_forward_kind, plan_norm_forward},
    {rotary_kind, plan_rotary},
    {routing_backward_kind, plan_routing_backward},
    {routing_forward_kind, plan_routing_forward},
    {scale_from_amax_kind, plan_scale_from_amax},
    {sgd_kind, plan_sgd},
    {softmax_backward_kind, plan_softmax_backward},
    {softmax_forward_kind, plan_softmax_forward},
    {transpose_kind, plan_transpose},
    {unpermute_backward_weights_kind, plan_unpermute_backward_weights},
    {unpermute_tokens_kind, plan_unpermute_tokens},
    {unscale_kind, plan_unscale},
    {update_scale_kind, plan_update_scale},
};

}  // namespace

void refuse(const OpCall& call, const std::string& why) {
  throw Unsupported(fmt::format("cpu {} '{}': {}", call.kind.name, call.label, why));
}

void refuse_layout(const OpCall& call, const TensorSpec& tensor, std::string_view expected) {
  refuse(call, fmt::format("tensor {} has layout {}; expected {}", tensor.to_string(),
                           tensor.layout.to_string(tensor.shape), expected));
}

void expect_row_major(const OpCall& call, const TensorSpec& tensor) {
  if (!tensor.layout.is_row_major(tensor.shape)) refuse_layout(call, tensor, "row_major");
}

std::string own_implementation() { return std::string("gpubench:") + vector_units(); }

void expect_contiguous_last_axis(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.layout.blocks.empty() && (tensor.shape[-1] <= 1 || tensor.layout.strides.back() == 1)) return;
  refuse_layout(call, tensor, "a contiguous last axis");
}

RowView rows_of(const OpCall& call, const TensorSpec& tensor) {
  if (const std::optional<RowView> view = row_view(tensor)) return *view;
  refuse_layout(call, tensor, "a contiguous last axis and evenly spaced rows");
}

void expect_f32_or_bf16(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.dtype == DType::f32 || tensor.dtype == DType::bf16) return;
  refuse(call, fmt::format("tensor {}; expected f32 or bf16", tensor.to_string()));
}

void expect_type(const OpCall& call, const TensorSpec& tensor, DType type) {
  if (tensor.dtype == type) return;
  refuse(call, fmt::format("tensor {}; expected {}", tensor.to_string(), name(type)));
}

void expect_f32_sums(const OpCall& call) {
  if (call.math.accumulate == DType::f32) return;
  refuse(call, fmt::format("sums in {}; expected f32", name(call.math.accumulate)));
}

std::int64_t row_grain(std::int64_t columns) {
  return std::max<std::int64_t>(1, element_grain / std::max<std::int64_t>(1, columns));
}

void expect_f32_or_bf16(const OpCall& call, const Named<TensorSpec>& operand,
                        std::initializer_list<std::string_view> names) {
  operand.each(names, [&](const TensorSpec& tensor) { expect_f32_or_bf16(call, tensor); });
}

void expect_type(const OpCall& call, const Named<TensorSpec>& operand, std::initializer_list<std::string_view> names,
                 DType type) {
  operand.each(names, [&](const TensorSpec& tensor) { expect_type(call, tensor, type); });
}

void expect_row_major(const OpCall& call, const Named<TensorSpec>& operand,
                      std::initializer_list<std::string_view> names) {
  operand.each(names, [&](const TensorSpec& tensor) { expect_row_major(call, tensor); });
}

const OpImplementation& implementation_of(OpKind kind) {
  static constexpr OpImplementation pointwise{add_kind, plan_pointwise};  // and all others
  return is_pointwise(kind) ? pointwise : find_op(implementations, kind, "cpu");
}

}  // namespace gpubench::cpu
