#include "reference/cuda/gemm_request.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpubench::cuda {
namespace {

// The library would only say that it has no algorithm.
void expect_arithmetic(const OpCall& call, const TensorSpec& operand, const CudaContext& context) {
  constexpr int first_with_eight_bits = 89;
  const int capability = context.device.compute_capability;
  const bool eight_bits = operand.dtype == DType::f8_e4m3 || operand.dtype == DType::f8_e5m2;
  if (!eight_bits || capability >= first_with_eight_bits) return;
  refuse(call, fmt::format("tensor {}; products of 8-bit numbers need compute capability 8.9, this device has {}.{}",
                           operand.to_string(), capability / 10, capability % 10));
}

}  // namespace

const TensorSpec& at(std::span<const TensorSpec> tensors, int index) {
  return tensors[static_cast<std::size_t>(index)];
}

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
                         const GemmRoles& roles, const CudaContext& context) {
  expect_arithmetic(call, at(tensors, roles.a), context);
  expect_arithmetic(call, at(tensors, roles.b), context);
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
  return request;
}

std::size_t workspace_aligned(std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  return (bytes + alignment - 1) / alignment * alignment;
}

void* address_of(std::span<const Tensor> bound, int index) {
  return index < 0 ? nullptr : bound[static_cast<std::size_t>(index)].data;
}

MatmulAddresses addresses_of(std::span<const Tensor> bound, Workspace workspace, const GemmRoles& roles, int target) {
  MatmulAddresses addresses;
  addresses.a = address_of(bound, roles.a);
  addresses.b = address_of(bound, roles.b);
  addresses.c = address_of(bound, target);
  addresses.bias = address_of(bound, roles.bias);
  addresses.aux = address_of(bound, roles.pre);
  addresses.scale_a = static_cast<const float*>(address_of(bound, roles.scale_a));
  addresses.scale_b = static_cast<const float*>(address_of(bound, roles.scale_b));
  addresses.workspace = workspace.data;
  return addresses;
}

}  // namespace gpubench::cuda
