// Which ops the CUDA backend has, and who plans each.
#include <initializer_list>
#include <string>

#include "reference/cuda/attention.h"
#include "reference/cuda/conv2d.h"
#include "reference/cuda/gemm.h"
#include "reference/cuda/kernel.h"
#include "reference/ops/attention.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/gemm.h"

namespace gpubench::cuda {
namespace {

constexpr std::initializer_list<OpImplementation> implementations{
    {attention_backward_kind, plan_attention_backward},
    {attention_forward_kind, plan_attention_forward},
    {conv2d_backward_data_kind, plan_conv2d_backward_data},
    {conv2d_backward_filter_kind, plan_conv2d_backward_filter},
    {conv2d_forward_kind, plan_conv2d_forward},
    {gemm_kind, plan_gemm},
};

}  // namespace

const OpImplementation& implementation_of(OpKind kind) {
  for (const OpImplementation& implementation : implementations) {
    if (implementation.kind == kind) return implementation;
  }
  throw Unsupported("the cuda backend has no op '" + std::string(kind.name) + "'");
}

}  // namespace gpubench::cuda
