#include "reference/cuda/plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/cuda/autotune.h"
#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/elements.h"
#include "reference/cuda/kernels/products.h"

namespace gpubench::cuda {
namespace {

// cuBLASLt would only report that it has no algorithm.
void expect_arithmetic(const OpCall& call, const TensorSpec& operand, bool blocks, const CudaContext& context) {
  const int capability = context.device.compute_capability;
  const bool eight_bits = operand.dtype == DType::f8_e4m3 || operand.dtype == DType::f8_e5m2;
  const int needed = blocks ? 100 : eight_bits ? 89 : 0;
  if (capability >= needed) return;
  refuse(call, fmt::format("tensor {}; products of {} numbers need compute capability {}.{}, this device has {}.{}",
                           operand.to_string(), blocks ? "block-scaled" : "8-bit", needed / 10, needed % 10,
                           capability / 10, capability % 10));
}

Plan plan_from(const MatmulWork& work, const GemmRoles& roles) {
  return plan_of(work.implementation(), work.workspace_bytes(),
                 [work, roles](std::span<const Tensor> bound, Workspace workspace) {
                   return work.bind(addresses_of(bound, workspace, roles, roles.c));
                 });
}

constexpr int max_products = 16;

bool is_gradient(const Gemm& attributes) { return attributes.epilogue == Gemm::Epilogue::gelu_gradient; }

// GELU fused into the product; cuBLASLt has the tanh form only.
void add_fused(const OpCall& call, std::span<const TensorSpec> tensors, const GemmRoles& roles, MatmulRequest request,
               const CudaContext& context, std::vector<Plan>& candidates) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  if (attributes.gelu_form != GeluForm::tanh) return;
  request.aux = matrix_of(call, at(tensors, roles.pre), nullptr);
  request.epilogue = is_gradient(attributes) ? MatmulEpilogue::dgelu : MatmulEpilogue::gelu_aux;
  for (const MatmulWork& work : matmul_candidates(context.cublaslt, request, max_products)) {
    candidates.push_back(plan_from(work, roles));
  }
}

// GELU by an own kernel after the product, whose sums stay unrounded: in pre or c, if these are f32.
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
  const bool gradient = is_gradient(attributes);
  const PointwiseLaunch launch =
      pointwise_launch(std::string(gradient ? "gelu_backward" : "gelu_forward") + (tanh ? " tanh" : " erf"));
  PointwiseArgs gelu;
  gelu.rows = c.rows;
  gelu.columns = c.columns;
  gelu.in_stride[0] = pre.stride;
  gelu.in_stride[1] = c.stride;  // the product, updated in place
  gelu.out_stride[0] = c.stride;
  for (const MatmulWork& work : matmul_candidates(context.cublaslt, request, max_products / 2)) {
    candidates.push_back(plan_of(work.implementation() + "+" + own_implementation(context), work.workspace_bytes(),
                                 [=](std::span<const Tensor> bound, Workspace workspace) {
                                   PointwiseArgs placed = gelu;
                                   placed.in[0] = address_of(bound, roles.pre);
                                   placed.in[1] = address_of(bound, roles.c);
                                   placed.out[0] = address_of(bound, roles.c);
                                   return [matmul = work.bind(addresses_of(bound, workspace, roles, target)), placed,
                                           launch](cudaStream_t stream) {
                                     matmul(stream);
                                     launch(placed, stream);
                                     check_launch("the pointwise kernel");
                                   };
                                 }));
  }
}

// As add_composed() for 16-bit results: unrounded sums in scratch memory, then one own kernel for bias, GELU and
// rounding. Scratch memory: [product][the library's].
void add_composed_16_bit(const OpCall& call, std::span<const TensorSpec> tensors, const GemmRoles& roles,
                         MatmulRequest request, const CudaContext& context, std::vector<Plan>& candidates) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  const TensorSpec& c = at(tensors, roles.c);
  const auto same_type = [&](int role) { return role < 0 || at(tensors, role).dtype == c.dtype; };
  const bool types = size_of(c.dtype) == 2 && same_type(roles.pre) && same_type(roles.bias);
  if (!types || call.math.accumulate != DType::f32 || attributes.beta != 0.0 || request.batch != 1) return;
  const RowView rows = rows_of(call, c);
  GeluEpilogueArgs gelu;
  gelu.data = float_element(call, c);
  gelu.tanh = attributes.gelu_form == GeluForm::tanh;
  gelu.gradient = is_gradient(attributes);
  gelu.rows = rows.rows;
  gelu.columns = rows.columns;
  gelu.product_stride = rows.columns;
  gelu.pre_stride = rows_of(call, at(tensors, roles.pre)).stride;
  gelu.c_stride = rows.stride;
  request.c = {DType::f32, rows.rows, rows.columns, rows.columns, 0};
  request.bias = {};
  const std::size_t product_bytes =
      workspace_aligned(static_cast<std::size_t>(rows.rows * rows.columns) * sizeof(float));
  for (const MatmulWork& work : matmul_candidates(context.cublaslt, request, max_products / 2)) {
    candidates.push_back(
        plan_of(work.implementation() + "+" + own_implementation(context) + ":gelu",
                product_bytes + work.workspace_bytes(), [=](std::span<const Tensor> bound, Workspace workspace) {
                  const Workspace rest{workspace.data + product_bytes, workspace.bytes - product_bytes};
                  MatmulAddresses addresses = addresses_of(bound, rest, roles, roles.c);
                  addresses.c = workspace.data;
                  GeluEpilogueArgs placed = gelu;
                  placed.product = workspace.data;
                  placed.bias = address_of(bound, roles.bias);
                  placed.pre = address_of(bound, roles.pre);
                  placed.c = address_of(bound, roles.c);
                  return [matmul = work.bind(addresses), placed](cudaStream_t stream) {
                    matmul(stream);
                    launch_gelu_epilogue(placed, stream);
                    check_launch("the GELU kernel");
                  };
                }));
  }
}

// Precedes the product of block-scaled operands: converts their scales from rows to cuBLASLt's tiles, and the tensors'
// factors to alpha. It is timed with the product, as training libraries do the same; it moves one byte per 16 or 32
// bytes of the operands.
// Scratch memory: [tiles of a][tiles of b][factors][the product's].
Plan with_tiled_scales(const OpCall& call, std::span<const TensorSpec> tensors, const GemmRoles& roles,
                       const Plan& product, const CudaContext& context) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  const auto tiles_of = [&](int role) {
    const TensorSpec& scales = at(tensors, role);
    expect_row_major(call, scales);
    ScaleTiles tiles;
    tiles.rows = scales.shape[0];
    tiles.columns = scales.shape[1];
    return tiles;
  };
  TileScalesArgs args;
  args.a = tiles_of(roles.blocks_a);
  args.b = tiles_of(roles.blocks_b);
  args.alpha = static_cast<float>(attributes.alpha);
  args.beta = static_cast<float>(attributes.beta);
  const std::size_t b_at = workspace_aligned(static_cast<std::size_t>(scale_tile_bytes(args.a)));
  const std::size_t factors_at = b_at + workspace_aligned(static_cast<std::size_t>(scale_tile_bytes(args.b)));
  const std::size_t rest_at = factors_at + workspace_aligned(2 * sizeof(float));
  const auto binder = [=](std::span<const Tensor> bound, Workspace space) {
    std::vector<Tensor> tiled(bound.begin(), bound.end());
    const auto tensor = [&tiled](int role) -> Tensor& { return tiled[static_cast<std::size_t>(role)]; };
    TileScalesArgs placed = args;
    placed.a.scales = elements_of<const std::uint8_t>(tensor(roles.blocks_a));
    placed.b.scales = elements_of<const std::uint8_t>(tensor(roles.blocks_b));
    tensor(roles.blocks_a).data = space.data;
    tensor(roles.blocks_b).data = space.data + b_at;
    placed.a.tiles = elements_of<std::uint8_t>(tensor(roles.blocks_a));
    placed.b.tiles = elements_of<std::uint8_t>(tensor(roles.blocks_b));
    if (roles.scale_a >= 0) {
      placed.scale_a = elements_of<const float>(tensor(roles.scale_a));
      placed.scale_b = elements_of<const float>(tensor(roles.scale_b));
      tensor(roles.scale_a).data = space.data + factors_at;
      placed.factors = elements_of<float>(tensor(roles.scale_a));
    }
    const Launch behind =
        dynamic_cast<const CudaPlan&>(*product).bind(tiled, {space.data + rest_at, space.bytes - rest_at});
    return [placed, behind](cudaStream_t stream) {
      launch_tile_scales(placed, stream);
      check_launch("the kernel that tiles scales");
      own_launch(behind).enqueue(stream);
    };
  };
  return plan_of(own_implementation(context) + ":tile_scales+" + product->implementation(),
                 rest_at + product->workspace_bytes(), binder);
}

// Weights are scaled so that sums over k are about 1, where GELU is curved.
TuningData data_of(const OpCall& call, std::span<const TensorSpec> tensors, const GemmRoles& roles) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  const auto k = static_cast<double>(extents_of(attributes, at(tensors, roles.a).shape, at(tensors, roles.b).shape).k);
  TuningData data;
  if (roles.c_in >= 0) data.aliases.emplace_back(roles.c, roles.c_in);
  if (bits_of(at(tensors, roles.b).dtype) == 8 && !attributes.blocks) return data;  // scaled by their own factors
  data.exponents.assign(tensors.size(), 0);
  if (attributes.blocks) {
    constexpr int e8m0_of_one = 127;
    for (const int role : {roles.blocks_a, roles.blocks_b}) {
      if (at(tensors, role).dtype == DType::u8) data.exponents[static_cast<std::size_t>(role)] = e8m0_of_one;
    }
    return data;
  }
  data.exponents[static_cast<std::size_t>(roles.b)] = -static_cast<int>(std::lround(0.5 * std::log2(std::max(k, 1.0))));
  return data;
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
        std::max(rows == 1 ? columns : matrix.row_stride, columns);  // cuBLASLt checks it even for one row
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
  expect_arithmetic(call, at(tensors, roles.a), attributes.blocks, context);
  expect_arithmetic(call, at(tensors, roles.b), attributes.blocks, context);
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
  request.scaled_a = attributes.scaled || attributes.blocks;
  request.scaled_b = request.scaled_a;
  if (attributes.blocks) request.blocks = at(tensors, roles.blocks_a).dtype;
  request.factors_on_device = attributes.blocks && attributes.scaled;
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
  const bool blocks = roles.blocks_a >= 0;
  addresses.scale_a = address_of(bound, blocks ? roles.blocks_a : roles.scale_a);
  addresses.scale_b = address_of(bound, blocks ? roles.blocks_b : roles.scale_b);
  if (blocks) addresses.factors = static_cast<const float*>(address_of(bound, roles.scale_a));
  addresses.workspace = workspace.data;
  return addresses;
}

namespace {

Plan plan_gemm(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  const GemmRoles roles = roles_of(attributes);
  const MatmulRequest request = request_of(call, attributes, tensors, roles, context);
  std::vector<Plan> candidates;
  if (attributes.epilogue == Gemm::Epilogue::none) {
    for (const MatmulWork& work : matmul_candidates(context.cublaslt, request, max_products)) {
      candidates.push_back(plan_from(work, roles));
    }
  } else {
    add_fused(call, tensors, roles, request, context, candidates);
    add_composed(call, tensors, roles, request, context, candidates);
    add_composed_16_bit(call, tensors, roles, request, context, candidates);
  }
  if (attributes.blocks) {
    for (Plan& plan : candidates) plan = with_tiled_scales(call, tensors, roles, plan, context);
  }
  return fastest_of(call, candidates, tensors, data_of(call, tensors, roles), context);
}

}  // namespace

Ops gemm_ops() { return {{gemm_kind, plan_gemm}}; }

}  // namespace gpubench::cuda
