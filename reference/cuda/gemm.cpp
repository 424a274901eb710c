#include "reference/cuda/gemm.h"

#include <fmt/format.h>

#include <vector>

#include "reference/cuda/autotune.h"
#include "reference/cuda/cublaslt.h"
#include "reference/ops/gemm.h"

namespace gpubench::cuda {
namespace {

const TensorSpec& at(std::span<const TensorSpec> tensors, int index) {
  return tensors[static_cast<std::size_t>(index)];
}

// A matrix whose last axis is dense, or, where `transposed` may be turned, whose last but one is.
RowMatrix matrix_of(const OpCall& call, const TensorSpec& tensor, bool* transposed) {
  const auto& strides = tensor.layout.strides;
  const int rank = tensor.shape.rank();
  const std::int64_t rows = tensor.shape[-2];
  const std::int64_t columns = tensor.shape[-1];
  const auto stride = [&](int axis) { return strides[static_cast<std::size_t>(rank + axis)]; };
  RowMatrix matrix{tensor.dtype, rows, columns, stride(-2), rank == 3 ? strides[0] : 0};
  const bool rows_dense = stride(-1) == 1 || columns == 1;
  const bool columns_dense = stride(-2) == 1 || rows == 1;
  if (tensor.layout.blocks.empty() && rows_dense) {
    matrix.row_stride =
        std::max(rows == 1 ? columns : matrix.row_stride, columns);  // the library checks it even for one row
    return matrix;
  }
  if (tensor.layout.blocks.empty() && columns_dense && transposed != nullptr) {
    *transposed = !*transposed;
    return {tensor.dtype, columns, rows, std::max(stride(-1), rows), matrix.batch_stride};
  }
  refuse(call, fmt::format("tensor {} with layout {}; expected a dense last axis", tensor.to_string(),
                           tensor.layout.to_string(tensor.shape)));
}

MatmulRequest request_of(const OpCall& call, const Gemm& attributes, std::span<const TensorSpec> tensors,
                         const GemmRoles& roles) {
  MatmulRequest request;
  request.transpose_a = attributes.transpose_a;
  request.transpose_b = attributes.transpose_b;
  request.a = matrix_of(call, at(tensors, roles.a), &request.transpose_a);
  request.b = matrix_of(call, at(tensors, roles.b), &request.transpose_b);
  request.c = matrix_of(call, at(tensors, roles.c), nullptr);
  request.batch = at(tensors, roles.c).shape.rank() == 3 ? at(tensors, roles.c).shape[0] : 1;
  request.alpha = attributes.alpha;
  request.beta = attributes.beta;
  request.math = call.math;
  if (roles.bias >= 0) {
    expect_row_major(call, at(tensors, roles.bias));
    request.bias = at(tensors, roles.bias).dtype;
  }
  if (roles.c_in >= 0 && (at(tensors, roles.c_in).dtype != at(tensors, roles.c).dtype ||
                          at(tensors, roles.c_in).layout != at(tensors, roles.c).layout)) {
    refuse(call, fmt::format("c_in {} and c {} differ; expected one tensor updated in place",
                             at(tensors, roles.c_in).to_string(), at(tensors, roles.c).to_string()));
  }
  request.scaled_a = roles.scale_a >= 0;
  request.scaled_b = roles.scale_b >= 0;
  if (roles.pre >= 0) {
    // The library knows the tanh form only.
    if (attributes.gelu_form != GeluForm::tanh)
      refuse(call, "a fused GELU of the erf form; cuBLASLt has the tanh form");
    request.aux = matrix_of(call, at(tensors, roles.pre), nullptr);
    request.epilogue = attributes.epilogue == Gemm::Epilogue::gelu ? MatmulEpilogue::gelu_aux : MatmulEpilogue::dgelu;
  }
  return request;
}

Plan plan_from(const MatmulWork& work, const GemmRoles& roles) {
  return plan_of(work.implementation(), work.workspace_bytes(),
                 [work, roles](std::span<const Tensor> bound, Workspace workspace) {
                   const auto data = [&bound](int index) -> void* {
                     return index < 0 ? nullptr : bound[static_cast<std::size_t>(index)].data;
                   };
                   MatmulAddresses addresses;
                   addresses.a = data(roles.a);
                   addresses.b = data(roles.b);
                   addresses.c = data(roles.c);
                   addresses.bias = data(roles.bias);
                   addresses.aux = data(roles.pre);
                   addresses.scale_a = static_cast<const float*>(data(roles.scale_a));
                   addresses.scale_b = static_cast<const float*>(data(roles.scale_b));
                   addresses.workspace = workspace.data;
                   return work.bind(addresses);
                 });
}

constexpr int most_candidates = 16;

}  // namespace

Plan plan_gemm(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  const GemmRoles roles = roles_of(attributes);
  const MatmulRequest request = request_of(call, attributes, tensors, roles);
  std::vector<Plan> candidates;
  for (const MatmulWork& work : matmul_candidates(context.cublaslt, request, most_candidates)) {
    candidates.push_back(plan_from(work, roles));
  }
  Aliases aliases;
  if (roles.c_in >= 0) aliases.emplace_back(roles.c, roles.c_in);
  return fastest_of(call, candidates, tensors, aliases, context);
}

}  // namespace gpubench::cuda
