// A gemm's tensors in the terms of cuBLASLt's wrapper: what the ops that multiply matrices have in common.
#pragma once

#include <span>

#include "reference/cuda/cublaslt.h"
#include "reference/cuda/kernel.h"
#include "reference/ops/gemm.h"

namespace gpubench::cuda {

/// The tensor at one of GemmRoles' positions.
[[nodiscard]] const TensorSpec& at(std::span<const TensorSpec> tensors, int index);

/// A matrix whose last axis is dense, or, where `transposed` may be turned, whose last but one is. Throws Unsupported
/// naming the tensor for other layouts.
[[nodiscard]] RowMatrix matrix_of(const OpCall& call, const TensorSpec& tensor, bool* transposed);

/// The product, with no epilogue but the bias. Throws Unsupported naming the tensor that the device has no arithmetic
/// for, or that has a layout or type that the library has not.
[[nodiscard]] MatmulRequest request_of(const OpCall& call, const Gemm& attributes, std::span<const TensorSpec> tensors,
                                       const GemmRoles& roles, const CudaContext& context);

/// The next multiple of 256 bytes, at which the library wants its workspace to begin.
[[nodiscard]] std::size_t workspace_aligned(std::size_t bytes);

/// Null for a position of -1.
[[nodiscard]] void* address_of(std::span<const Tensor> bound, int index);

/// `target`: where the product goes, c unless something follows it.
[[nodiscard]] MatmulAddresses addresses_of(std::span<const Tensor> bound, Workspace workspace, const GemmRoles& roles,
                                           int target);

}  // namespace gpubench::cuda
