// Every op that the CPU backend has, and the function that plans it.
#include <initializer_list>

#include "reference/cpu/attention.h"
#include "reference/cpu/column_sum.h"
#include "reference/cpu/conv2d.h"
#include "reference/cpu/cross_entropy.h"
#include "reference/cpu/elementwise.h"
#include "reference/cpu/embedding.h"
#include "reference/cpu/gelu.h"
#include "reference/cpu/gemm.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/layer_norm.h"
#include "reference/cpu/optimizer.h"
#include "reference/cpu/reorder.h"
#include "reference/cpu/rotary.h"
#include "reference/ops/attention.h"
#include "reference/ops/column_sum.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/elementwise.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gelu.h"
#include "reference/ops/gemm.h"
#include "reference/ops/layer_norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/residual_norm.h"
#include "reference/ops/rotary.h"

namespace gpubench::cpu {
namespace {

constexpr std::initializer_list<OpImplementation> implementations{
    {adamw_kind, plan_adamw},
    {add_kind, plan_add},
    {attention_backward_kind, plan_attention_backward},
    {attention_forward_kind, plan_attention_forward},
    {cast_kind, plan_cast},
    {clip_adamw_kind, plan_adamw},
    {clip_kind, plan_clip},
    {column_sum_kind, plan_column_sum},
    {conv2d_backward_data_kind, plan_conv2d_backward_data},
    {conv2d_backward_filter_kind, plan_conv2d_backward_filter},
    {conv2d_forward_kind, plan_conv2d_forward},
    {copy_kind, plan_copy},
    {cross_entropy_backward_kind, plan_cross_entropy_backward},
    {cross_entropy_forward_kind, plan_cross_entropy_forward},
    {cross_entropy_forward_backward_kind, plan_cross_entropy_forward_backward},
    {embedding_backward_kind, plan_embedding_backward},
    {embedding_forward_kind, plan_embedding_forward},
    {gelu_backward_kind, plan_gelu_backward},
    {gelu_forward_kind, plan_gelu_forward},
    {gemm_kind, plan_gemm},
    {gradient_norm_kind, plan_gradient_norm},
    {layer_norm_backward_kind, plan_layer_norm_backward},
    {layer_norm_forward_kind, plan_layer_norm_forward},
    {reorder_kind, plan_reorder},
    {residual_norm_forward_kind, plan_residual_norm_forward},
    {rotary_kind, plan_rotary},
    {scale_kind, plan_scale},
    {transpose_kind, plan_transpose},
    {triad_kind, plan_triad},
};

}  // namespace

const OpImplementation& implementation_of(OpKind kind) { return line_of(implementations, kind, "cpu"); }

}  // namespace gpubench::cpu
