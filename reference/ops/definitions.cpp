// The op set: every op's definition, found by kind.

#include <algorithm>
#include <array>
#include <string>

#include "reference/ops/attention_textbook.h"
#include "reference/ops/collective_textbook.h"
#include "reference/ops/column_sum_textbook.h"
#include "reference/ops/conv2d_textbook.h"
#include "reference/ops/cross_entropy_textbook.h"
#include "reference/ops/definition.h"
#include "reference/ops/elementwise_textbook.h"
#include "reference/ops/embedding_textbook.h"
#include "reference/ops/gelu_textbook.h"
#include "reference/ops/gemm_bias_gradient_textbook.h"
#include "reference/ops/gemm_textbook.h"
#include "reference/ops/layer_norm_textbook.h"
#include "reference/ops/optimizer_textbook.h"
#include "reference/ops/quantize_textbook.h"
#include "reference/ops/residual_norm_textbook.h"
#include "reference/ops/rotary_textbook.h"

namespace gpubench {

std::span<const OpDefinition* const> definitions() {
  static const std::array all{
      &adamw_definition(),
      &add_definition(),
      &all_gather_definition(),
      &all_reduce_definition(),
      &all_to_all_definition(),
      &attention_backward_definition(),
      &attention_forward_definition(),
      &broadcast_definition(),
      &cast_definition(),
      &clip_definition(),
      &clip_adamw_definition(),
      &column_sum_definition(),
      &conv2d_backward_data_definition(),
      &conv2d_backward_filter_definition(),
      &conv2d_forward_definition(),
      &copy_definition(),
      &cross_entropy_backward_definition(),
      &cross_entropy_forward_definition(),
      &cross_entropy_forward_backward_definition(),
      &embedding_backward_definition(),
      &embedding_forward_definition(),
      &gelu_backward_definition(),
      &gelu_forward_definition(),
      &gemm_definition(),
      &gemm_gelu_bias_gradient_definition(),
      &gemm_weight_bias_gradient_definition(),
      &gradient_norm_definition(),
      &layer_norm_backward_definition(),
      &layer_norm_forward_definition(),
      &quantize_definition(),
      &reduce_scatter_definition(),
      &reorder_definition(),
      &residual_norm_forward_definition(),
      &rotary_definition(),
      &scale_definition(),
      &send_recv_definition(),
      &transpose_definition(),
      &triad_definition(),
  };
  return all;
}

const OpDefinition& definition(OpKind kind) {
  const auto all = definitions();
  const auto found =
      std::find_if(all.begin(), all.end(), [kind](const OpDefinition* op) { return op->kind() == kind; });
  if (found != all.end()) return **found;
  std::string known;
  for (const OpDefinition* op : all) {
    if (!known.empty()) known += ", ";
    known += op->kind().name;
  }
  throw ProgramError("no op '" + std::string(kind.name) + "'; expected one of: " + known);
}

}  // namespace gpubench
