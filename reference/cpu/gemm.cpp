#include "reference/cpu/plans.h"

#include <fmt/core.h>

#include <optional>
#include <vector>

#include "reference/cpu/gemm_epilogue.h"
#include "reference/cpu/memory_shapes.h"
#include "reference/cpu/onednn.h"
#include "reference/ops/gemm.h"

namespace gpubench::cpu {
namespace {

MemoryShape matrix(const OpCall& call, const TensorSpec& tensor, bool transpose) {
  const bool batched = tensor.shape.rank() == 3;
  if (!batched) return memory_shape(call, tensor, transpose ? std::vector<int>{1, 0} : std::vector<int>{0, 1});
  return memory_shape(call, tensor, transpose ? std::vector<int>{0, 2, 1} : std::vector<int>{0, 1, 2});
}

// Dense f32 [batch, m, n] in the workspace.
MemoryShape sums_shape(const Shape& c) {
  MemoryShape shape{DType::f32, {c.extents().begin(), c.extents().end()}, Layout::row_major(c).strides};
  return with_plain_strides(std::move(shape));
}

void expect_types(const OpCall& call, std::span<const TensorSpec> tensors, const Named<TensorSpec>& operand) {
  const auto known = [](DType type) { return type == DType::f32 || type == DType::bf16; };
  for (const TensorSpec& tensor : tensors) {
    if (!known(tensor.dtype)) refuse(call, fmt::format("tensor {}; expected f32 or bf16", tensor.to_string()));
  }
  if (call.math.accumulate != DType::f32) {
    refuse(call, fmt::format("sums in {}; expected f32", name(call.math.accumulate)));
  }
  const TensorSpec& c = operand["c"];
  const TensorSpec* c_in = operand.find("c_in");
  if (c_in != nullptr && (c_in->dtype != c.dtype || c_in->layout != c.layout)) {
    refuse(call, fmt::format("c_in {} and c {} differ; expected one tensor updated in place", c_in->to_string(),
                             c.to_string()));
  }
}

MatrixRows matrix_rows(const TensorSpec& tensor, std::byte* data) {
  const auto& strides = tensor.layout.strides;
  const bool batched = tensor.shape.rank() == 3;
  return {data, tensor.dtype, batched ? strides[0] : 0, strides[batched ? 1 : 0]};
}

void expect_dense_rows(const OpCall& call, const TensorSpec& tensor) {
  if (tensor.layout.blocks.empty() && (tensor.shape[-1] == 1 || tensor.layout.strides.back() == 1)) return;
  refuse(call, fmt::format("epilogue on tensor {} with layout {}; expected a dense last axis", tensor.to_string(),
                           tensor.layout.to_string(tensor.shape)));
}

MatmulRequest request_of(const OpCall& call, const Gemm& attributes, const Named<TensorSpec>& operand) {
  MatmulRequest request;
  request.a = matrix(call, operand["a"], attributes.transpose_a);
  request.b = matrix(call, operand["b"], attributes.transpose_b);
  request.c = matrix(call, operand["c"], false);
  if (const TensorSpec* bias = operand.find("bias")) {
    if (bias->shape.elements() > 1) expect_row_major(call, *bias);
    request.bias = bias->dtype;
  }
  request.alpha = static_cast<float>(attributes.alpha);
  request.beta = static_cast<float>(attributes.beta);
  return request;
}

Plan plan_plain(const OpCall& call, const MatmulRequest& request, const CpuContext& context) {
  const OneDnnWork work = matmul_work(context.onednn, request);
  return plan_of(work.implementation(), work.workspace_bytes(),
                 [work, call](std::span<const Tensor> bound, Workspace workspace) {
                   std::vector<std::byte*> operands;
                   Named<Tensor>(call, bound).each({"a", "b", "c", "bias"}, [&](const Tensor& tensor) {
                     operands.push_back(tensor.data);
                   });
                   return work.bind(operands, workspace.data);
                 });
}

// Sums go to `pre` or `c` where that is f32 (then no extra memory is touched), else to the workspace.
Plan plan_with_gelu(const OpCall& call, const Gemm& attributes, MatmulRequest request, const Named<TensorSpec>& operand,
                    const CpuContext& context) {
  const bool gradient = attributes.epilogue == Gemm::Epilogue::gelu_gradient;
  const std::string_view pre_activation = gradient ? "pre" : "z";
  const std::string_view target = gradient ? "c" : "z";
  const TensorSpec& c = operand["c"];
  const TensorSpec& pre = operand[pre_activation];
  expect_dense_rows(call, c);
  expect_dense_rows(call, pre);
  if (!gradient && pre.dtype != c.dtype) {
    refuse(call, fmt::format("c {} and pre {} differ in type; expected the same", c.to_string(), pre.to_string()));
  }
  const bool in_place = operand[target].dtype == DType::f32;
  request.beta = 0.0F;  // the epilogue adds it: c is not where the sums go
  request.c = in_place ? matrix(call, operand[target], false) : sums_shape(c.shape);
  const TensorSpec sums_spec = in_place ? operand[target] : tensor("sums", DType::f32, c.shape, Role::activation);
  const OneDnnWork work = matmul_work(context.onednn, request);
  constexpr std::size_t alignment = 64;
  const std::size_t sums_bytes =
      in_place ? 0 : (static_cast<std::size_t>(sums_spec.bytes()) + alignment - 1) / alignment * alignment;

  GeluEpilogue epilogue;
  const bool batched = c.shape.rank() == 3;
  epilogue.batch = batched ? c.shape[0] : 1;
  epilogue.m = c.shape[-2];
  epilogue.n = c.shape[-1];
  epilogue.form = attributes.gelu_form;
  epilogue.beta = static_cast<float>(attributes.beta);
  epilogue.sums = matrix_rows(sums_spec, nullptr);
  epilogue.pre = matrix_rows(pre, nullptr);
  epilogue.c = matrix_rows(c, nullptr);

  const auto binder = [=, call = call, threads = context.threads](std::span<const Tensor> bound, Workspace workspace) {
    const Named<Tensor> at(call, bound);
    GeluEpilogue placed = epilogue;
    placed.sums.data = in_place ? at[target].data : workspace.data;
    placed.pre.data = at[pre_activation].data;
    placed.c.data = at["c"].data;
    std::vector<std::byte*> operands{at["a"].data, at["b"].data, placed.sums.data};
    if (const Tensor* bias = at.find("bias")) operands.push_back(bias->data);
    return [matmul = work.bind(operands, workspace.data + sums_bytes), placed, threads, gradient] {
      matmul();
      gradient ? run_gelu_gradient_epilogue(threads, placed) : run_gelu_epilogue(threads, placed);
    };
  };
  return plan_of(work.implementation() + "+" + own_implementation(), sums_bytes + work.workspace_bytes(), binder);
}

}  // namespace

Plan plan_gemm(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  const Named<TensorSpec> operand(call, tensors);
  expect_types(call, tensors, operand);
  const MatmulRequest request = request_of(call, attributes, operand);
  if (attributes.epilogue == Gemm::Epilogue::none) return plan_plain(call, request, context);
  return plan_with_gelu(call, attributes, request, operand, context);
}

}  // namespace gpubench::cpu
