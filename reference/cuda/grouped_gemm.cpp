// Own kernels: cuBLAS's grouped products (cublasGemmGroupedBatchedEx) need the sizes on the host, but here they are in
// device memory.
#include "reference/ops/grouped_gemm.h"

#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/products.h"

namespace gpubench::cuda {
namespace {

GroupedGemmArgs grouped_args(const OpCall& call, std::span<const TensorSpec> tensors) {
  for (const TensorSpec& tensor : tensors) expect_row_major(call, tensor);
  if (call.math.inputs != Math::Inputs::exact)
    refuse(call, "own kernels lack tf32: they multiply f32 without tensor cores; expected exact inputs");
  const TensorSpec &a = tensors[0], &c = tensors[3];
  GroupedGemmArgs args;
  args.data = any_element(call, a);
  args.result = any_element(call, c);
  if (c.dtype != DType::f32) expect_same_type(call, a, c);
  args.rows = a.shape[0];
  args.groups = tensors[2].shape[0];
  args.k = a.shape[1];
  args.n = c.shape[-1];
  return args;
}

Plan grouped_plan(const OpCall& call, const CudaContext& context, const GroupedGemmArgs& args,
                  void (*launch)(const GroupedGemmArgs&, cudaStream_t)) {
  using Args = GroupedGemmArgs;
  return own_plan(call, context, args, launch,
                  {{"a", to<&Args::a>}, {"b", to<&Args::b>}, {"sizes", to<&Args::sizes>}, {"c", to<&Args::c>}}, 0,
                  args.data == Element::f16 || args.data == Element::bf16 ? ",mma" : "");
}

// Row-major; tensor cores in f16 and bf16 only, so not in tf32. c may be f32 with narrower a and b.
Plan plan_grouped_gemm(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  GroupedGemmArgs args = grouped_args(call, tensors);
  args.transpose_b = call.attributes.as<GroupedGemm>().transpose_b;
  return grouped_plan(call, context, args, launch_grouped_gemm);
}

Plan plan_grouped_gemm_backward_weight(const OpCall& call, std::span<const TensorSpec> tensors,
                                       const CudaContext& context) {
  return grouped_plan(call, context, grouped_args(call, tensors), launch_grouped_gemm_backward_weight);
}

}  // namespace

Ops grouped_gemm_ops() {
  return {{grouped_gemm_kind, plan_grouped_gemm},
          {grouped_gemm_backward_weight_kind, plan_grouped_gemm_backward_weight}};
}

}  // namespace gpubench::cuda
