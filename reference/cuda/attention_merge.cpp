#include "reference/cuda/kernels/attention.h"

#include "reference/cuda/kernel.h"
#include "reference/ops/attention.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench::cuda {
namespace {

Plan plan_attention_merge(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec& o = operand["o"];
  for (const char* name : {"o1", "lse1", "o2", "lse2", "o", "lse"}) expect_row_major(call, operand[name]);
  for (const char* name : {"o1", "o2"}) expect_same_type(call, operand[name], o);
  for (const char* name : {"lse1", "lse2", "lse"}) expect_type(call, operand[name], statistic_type(o.dtype));
  using Args = AttentionMergeArgs;
  Args args;
  args.type = any_element(call, o);
  args.batches = o.shape[0];
  args.tokens = o.shape[1];
  args.heads = o.shape[2];
  args.width = o.shape[3];
  return own_plan(call, context, args, launch_attention_merge,
                  {{"o1", to<&Args::o1>},
                   {"lse1", to<&Args::lse1>},
                   {"o2", to<&Args::o2>},
                   {"lse2", to<&Args::lse2>},
                   {"o", to<&Args::o>},
                   {"lse", to<&Args::lse>}});
}

}  // namespace

Ops attention_merge_ops() { return {{attention_merge_kind, plan_attention_merge}}; }

}  // namespace gpubench::cuda
