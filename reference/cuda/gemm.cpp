#include "reference/cuda/gemm.h"

#include <vector>

#include "reference/cuda/autotune.h"
#include "reference/cuda/gemm_request.h"
#include "reference/cuda/kernels/pointwise.h"
#include "reference/cuda/row_view.h"

namespace gpubench::cuda {
namespace {

Plan plan_from(const MatmulWork& work, const GemmRoles& roles) {
  return plan_of(work.implementation(), work.workspace_bytes(),
                 [work, roles](std::span<const Tensor> bound, Workspace workspace) {
                   return work.bind(addresses_of(bound, workspace, roles, roles.c));
                 });
}

constexpr int most_products = 16;

bool is_gradient(const Gemm& attributes) { return attributes.epilogue == Gemm::Epilogue::gelu_gradient; }

// GELU within the product. The library knows the tanh form only.
void add_fused(const OpCall& call, std::span<const TensorSpec> tensors, const GemmRoles& roles, MatmulRequest request,
               const CudaContext& context, std::vector<Plan>& candidates) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  if (attributes.gelu_form != GeluForm::tanh) return;
  request.aux = matrix_of(call, at(tensors, roles.pre), nullptr);
  request.epilogue = is_gradient(attributes) ? MatmulEpilogue::dgelu : MatmulEpilogue::gelu_aux;
  for (const MatmulWork& work : matmul_candidates(context.cublaslt, request, most_products)) {
    candidates.push_back(plan_from(work, roles));
  }
}

// GELU by our own kernel behind the product, whose sums must then be kept unrounded: in pre or c, where these are f32.
void add_composed(const OpCall& call, std::span<const TensorSpec> tensors, const GemmRoles& roles,
                  MatmulRequest request, const CudaContext& context, std::vector<Plan>& candidates) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  const bool tanh = attributes.gelu_form == GeluForm::tanh;
  const bool f32 = at(tensors, roles.c).dtype == DType::f32 && at(tensors, roles.pre).dtype == DType::f32;
  if (!f32 || attributes.beta != 0.0) return;
  const int target = is_gradient(attributes) ? roles.c : roles.pre;
  request.c = matrix_of(call, at(tensors, target), nullptr);
  const RowView c = rows_of(call, at(tensors, roles.c));
  const RowView pre = rows_of(call, at(tensors, roles.pre));
  PointwiseArgs gelu;
  gelu.op = is_gradient(attributes) ? (tanh ? PointwiseOp::gelu_tanh_backward : PointwiseOp::gelu_erf_backward)
                                    : (tanh ? PointwiseOp::gelu_tanh : PointwiseOp::gelu_erf);
  gelu.rows = c.rows;
  gelu.columns = c.columns;
  gelu.a_stride = pre.stride;
  gelu.b_stride = c.stride;  // the gradient's product, in place
  gelu.y_stride = c.stride;
  for (const MatmulWork& work : matmul_candidates(context.cublaslt, request, most_products / 2)) {
    candidates.push_back(plan_of(work.implementation() + "+" + own_implementation(context), work.workspace_bytes(),
                                 [=](std::span<const Tensor> bound, Workspace workspace) {
                                   PointwiseArgs placed = gelu;
                                   placed.a = address_of(bound, roles.pre);
                                   placed.b = address_of(bound, roles.c);
                                   placed.y = address_of(bound, roles.c);
                                   return [matmul = work.bind(addresses_of(bound, workspace, roles, target)),
                                           placed](cudaStream_t stream) {
                                     matmul(stream);
                                     launch_pointwise(placed, stream);
                                     check_launch("the pointwise kernel");
                                   };
                                 }));
  }
}

}  // namespace

Plan plan_gemm(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  const GemmRoles roles = roles_of(attributes);
  const MatmulRequest request = request_of(call, attributes, tensors, roles, context);
  std::vector<Plan> candidates;
  if (attributes.epilogue == Gemm::Epilogue::none) {
    for (const MatmulWork& work : matmul_candidates(context.cublaslt, request, most_products)) {
      candidates.push_back(plan_from(work, roles));
    }
  } else {
    add_fused(call, tensors, roles, request, context, candidates);
    add_composed(call, tensors, roles, request, context, candidates);
  }
  Aliases aliases;
  if (roles.c_in >= 0) aliases.emplace_back(roles.c, roles.c_in);
  return fastest_of(call, candidates, tensors, aliases, context);
}

}  // namespace gpubench::cuda
