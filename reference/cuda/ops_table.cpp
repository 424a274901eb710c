// Which ops the CUDA backend has, and who plans each.
#include <array>
#include <initializer_list>

#include "reference/cuda/plans.h"
#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
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
#include "reference/ops/token_groups.h"

namespace gpubench::cuda {
namespace {

constexpr std::initializer_list<OpImplementation> implementations{
    {adamw_kind, plan_adamw},
    {amax_kind, plan_amax},
    {attention_backward_kind, plan_attention_backward},
    {attention_forward_kind, plan_attention_forward},
    {attention_merge_kind, plan_attention_merge},
    {average_pool_backward_kind, plan_average_pool_backward},
    {average_pool_forward_kind, plan_average_pool_forward},
    {batch_norm_backward_kind, plan_batch_norm_backward},
    {batch_norm_forward_kind, plan_batch_norm_forward},
    {batch_norm_relu_backward_kind, plan_batch_norm_backward},
    {batch_norm_relu_forward_kind, plan_batch_norm_forward},
    {clip_adamw_kind, plan_adamw},
    {clip_kind, plan_clip},
    {column_sum_kind, plan_column_sum},
    {conv2d_backward_data_kind, plan_conv2d_backward_data},
    {conv2d_backward_filter_kind, plan_conv2d_backward_filter},
    {conv2d_batch_norm_forward_kind, plan_conv2d_batch_norm_forward},
    {conv2d_forward_kind, plan_conv2d_forward},
    {copy_kind, plan_copy},
    {count_labels_kind, plan_count_labels},
    {cross_entropy_backward_kind, plan_cross_entropy_backward},
    {cross_entropy_combine_kind, plan_cross_entropy_combine},
    {cross_entropy_forward_kind, plan_cross_entropy_forward},
    {cross_entropy_forward_backward_kind, plan_cross_entropy_forward_backward},
    {cross_entropy_partial_kind, plan_cross_entropy_forward},
    {dropout_kind, plan_dropout},
    {embedding_backward_kind, plan_embedding_backward},
    {embedding_backward_add_kind, plan_embedding_backward},
    {embedding_forward_kind, plan_embedding_forward},
    {gemm_kind, plan_gemm},
    {gemm_gelu_bias_gradient_kind, plan_gemm_gelu_bias_gradient},
    {gemm_weight_bias_gradient_kind, plan_gemm_weight_bias_gradient},
    {gradient_norm_kind, plan_gradient_norm},
    {group_tokens_kind, plan_group_tokens},
    {grouped_gemm_kind, plan_grouped_gemm},
    {grouped_gemm_backward_weight_kind, plan_grouped_gemm_backward_weight},
    {layer_norm_backward_kind, plan_norm_backward},
    {layer_norm_forward_kind, plan_norm_forward},
    {lion_kind, plan_lion},
    {max_pool_backward_kind, plan_max_pool_backward},
    {max_pool_forward_kind, plan_max_pool_forward},
    {permute_tokens_kind, plan_permute_tokens},
    {quantize_blocks_kind, plan_quantize_blocks},
    {quantize_kind, plan_quantize},
    {reorder_kind, plan_reorder},
    {repeat_rows_kind, plan_repeat_rows},
    {residual_norm_backward_kind, plan_norm_backward},
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

/// None has been run on a GPU yet.
constexpr std::array claims{FusionClaim{residual_norm_forward_kind, false},
                            FusionClaim{cross_entropy_forward_backward_kind, false},
                            FusionClaim{gemm_gelu_bias_gradient_kind, false},
                            FusionClaim{gemm_weight_bias_gradient_kind, false},
                            FusionClaim{clip_adamw_kind, false},
                            FusionClaim{conv2d_batch_norm_forward_kind, false},
                            FusionClaim{batch_norm_relu_backward_kind, false},
                            FusionClaim{batch_norm_relu_forward_kind, false},
                            FusionClaim{residual_norm_backward_kind, false},
                            FusionClaim{embedding_backward_add_kind, false}};

}  // namespace

const OpImplementation& implementation_of(OpKind kind) {
  static constexpr OpImplementation pointwise{add_kind, plan_pointwise};  // and all others
  return is_pointwise(kind) ? pointwise : find_op(implementations, kind, "cuda");
}

std::span<const FusionClaim> fused_ops() { return claims; }

}  // namespace gpubench::cuda
