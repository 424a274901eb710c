// Attention by own kernels, for calls that cuDNN's fused engines lack: f32 without tensor cores, documents, gradients
// of sinks and of softcap; heads of up to 256.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "reference/cuda/kernels/attention.h"
#include "reference/cuda/plans.h"
#include "reference/ops/attention.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench::cuda {
namespace {

HeadStrides strides_of(const OpCall& call, const TensorSpec& tensor) {
  const auto& s = tensor.layout.strides;  // kernels index a tile with int
  if (!tensor.layout.blocks.empty() || s.back() != 1 || s[1] > std::numeric_limits<int>::max()) {
    refuse(call,
           fmt::format("tensor {} has layout {}; expected a contiguous last axis, and tokens less than 2^31 apart",
                       tensor.to_string(), tensor.layout.to_string(tensor.shape)));
  }
  return {s[0], s[1], s[2]};
}

// Attributes and extents of a call. `q`: its position; k and v follow.
AttentionArgs attention_args(const OpCall& call, std::span<const TensorSpec> tensors, std::size_t q) {
  const auto& attention = call.attributes.as<Attention>();
  const TensorSpec &queries = tensors[q], &keys = tensors[q + 1], &values = tensors[q + 2];
  if (call.math.inputs != Math::Inputs::exact)
    refuse(call, "own kernels lack tf32: they multiply without tensor cores; expected exact inputs");
  if (call.math.accumulate != DType::f32)
    refuse(call, fmt::format("sums in {}; expected f32", name(call.math.accumulate)));
  AttentionArgs args;
  args.data = float_element(call, queries);
  args.causal = attention.causal;
  args.b = queries.shape[0];
  args.s = queries.shape[1];
  args.hq = queries.shape[2];
  args.d = queries.shape[3];
  args.t = keys.shape[1];
  args.hkv = keys.shape[2];
  args.dv = values.shape[3];
  if (std::max(args.d, args.dv) > max_attention_head)
    refuse(call,
           fmt::format("heads of {} elements; expected at most {}", std::max(args.d, args.dv), max_attention_head));
  args.window = attention.window;
  args.scale = static_cast<float>(attention.scale);
  args.softcap = static_cast<float>(attention.softcap);
  args.q_at = strides_of(call, queries);
  args.k_at = strides_of(call, keys);
  args.v_at = strides_of(call, values);
  const std::size_t options = call.inputs.size();
  if (attention.documents) {
    expect_row_major(call, tensors[options - 1]);
    args.boundaries = tensors[options - 1].shape[1];
  }
  return args;
}

}  // namespace

Plan plan_tiled_attention_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const std::span<const TensorSpec> outputs = tensors.subspan(call.inputs.size());
  using Args = AttentionArgs;
  Args args = attention_args(call, tensors, 0);
  args.o_at = strides_of(call, outputs[0]);
  expect_row_major(call, outputs[1]);
  return own_plan(call, context, args, launch_attention_forward,
                  {{"q", to<&Args::q>},
                   {"k", to<&Args::k>},
                   {"v", to<&Args::v>},
                   {"sinks", to<&Args::sinks>},
                   {"documents", to<&Args::documents>},
                   {"o", to<&Args::o>},
                   {"lse", to<&Args::lse>}});
}

Plan plan_tiled_attention_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                   const CudaContext& context) {
  const std::span<const TensorSpec> outputs = tensors.subspan(call.inputs.size());
  using Args = AttentionArgs;
  Args args = attention_args(call, tensors, 1);
  args.d_o_at = strides_of(call, tensors[0]);
  args.o_at = strides_of(call, tensors[4]);
  expect_row_major(call, tensors[5]);
  args.dq_at = strides_of(call, outputs[0]);
  args.dk_at = strides_of(call, outputs[1]);
  args.dv_at = strides_of(call, outputs[2]);
  return own_plan(call, context, args, launch_attention_backward,
                  {{"do", to<&Args::d_o>},
                   {"q", to<&Args::q>},
                   {"k", to<&Args::k>},
                   {"v", to<&Args::v>},
                   {"o", to<&Args::o>},
                   {"lse", to<&Args::lse>},
                   {"sinks", to<&Args::sinks>},
                   {"documents", to<&Args::documents>},
                   {"dq", to<&Args::dq>},
                   {"dk", to<&Args::dk>},
                   {"dv", to<&Args::d_v>},
                   {"dsinks", to<&Args::d_sinks>},
                   {workspace_operand, to<&Args::delta>}},
                  static_cast<std::size_t>(args.b * args.hq * args.s) * sizeof(float));
}

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

Ops tiled_attention_ops() { return {{attention_merge_kind, plan_attention_merge}}; }

}  // namespace gpubench::cuda
