#include "reference/cuda/kernel.h"

#include <algorithm>
#include <array>
#include <vector>

#include "reference/cuda/autotune.h"
#include "reference/cuda/kernels/products.h"
#include "reference/cuda/plans.h"
#include "reference/ops/bias_gradient.h"

namespace gpubench::cuda {
namespace {

constexpr int max_epilogues = 16;           // of the library's epilogues
constexpr int max_composed_candidates = 6;  // per own kernel that follows a product

struct Work {
  const OpCall& call;
  std::span<const TensorSpec> tensors;
  const CudaContext& context;
  GemmRoles roles;
  int db = 0;  ///< position of the bias gradient
  std::vector<Plan> candidates{};

  [[nodiscard]] Plan fastest() const { return fastest_of(call, candidates, tensors, {}, context); }
};

/// The library's sum, in the type of its results.
void add_library_sums(Work& work, MatmulRequest request, MatmulEpilogue epilogue) {
  const DType type = at(work.tensors, work.db).dtype;
  if (work.context.options.deterministic || type != at(work.tensors, work.roles.c).dtype) return;
  expect_row_major(work.call, at(work.tensors, work.db));
  request.epilogue = epilogue;
  request.bias = type;
  for (const MatmulWork& matmul : matmul_candidates(work.context.cublaslt, request, max_epilogues)) {
    work.candidates.push_back(
        plan_of(matmul.implementation(), matmul.workspace_bytes(),
                [matmul, roles = work.roles, db = work.db](std::span<const Tensor> bound, Workspace workspace) {
                  MatmulAddresses addresses = addresses_of(bound, workspace, roles, roles.c);
                  addresses.bias = address_of(bound, db);
                  return matmul.bind(addresses);
                }));
  }
}

// f64 only to f64.
Plan plan_column_sum(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  ColumnSumArgs args;
  args.from = any_element(call, tensors[0]);
  args.to = any_element(call, tensors[1]);
  if (args.from == Element::f64 || args.to == Element::f64) expect_same_type(call, tensors[0], tensors[1]);
  const RowView sums = rows_of(call, tensors[1]);
  const RowView rows = rows_of(call, tensors[0]);
  args.rows = rows.rows;
  args.columns = rows.columns;
  args.stride = rows.stride;
  args.sums = sums.rows;
  args.y_stride = sums.stride;
  args.parts = args.sums > 1 ? args.sums : column_sum_parts(rows.rows, rows.columns, context.device.multiprocessors);
  const std::size_t sum_bytes = args.from == Element::f64 ? sizeof(double) : sizeof(float);
  const std::size_t bytes = static_cast<std::size_t>(args.parts * args.columns) * sum_bytes;
  return own_plan(
      call, context, args, launch_column_sum,
      {{"x", to<&ColumnSumArgs::x>}, {"y", to<&ColumnSumArgs::y>}, {workspace_operand, to<&ColumnSumArgs::partial>}},
      bytes);
}

/// The product, then the column sums of the tensor at `summed`; both use the same scratch memory.
void add_column_sums(Work& work, const MatmulRequest& request, int summed) {
  const OpCall sum{column_sum_kind, {}, work.call.math, {ValueId{0}}, {ValueId{1}}, work.call.label, work.call.phase};
  const std::array specs{at(work.tensors, summed), at(work.tensors, work.db)};
  const Plan own = plan_column_sum(sum, specs, work.context);
  for (const MatmulWork& matmul : matmul_candidates(work.context.cublaslt, request, max_composed_candidates)) {
    work.candidates.push_back(plan_of(
        matmul.implementation() + "+" + own->implementation() + ":column_sum",
        std::max(matmul.workspace_bytes(), own->workspace_bytes()),
        [matmul, own, roles = work.roles, summed, db = work.db](std::span<const Tensor> bound, Workspace workspace) {
          const std::array tensors{bound[static_cast<std::size_t>(summed)], bound[static_cast<std::size_t>(db)]};
          return [product = matmul.bind(addresses_of(bound, workspace, roles, roles.c)),
                  sums = dynamic_cast<const CudaPlan&>(*own).bind(tensors, workspace)](cudaStream_t stream) {
            product(stream);
            static_cast<const CudaLaunch&>(*sums).enqueue(stream);
          };
        }));
  }
}

/// An own kernel that follows a product (addresses not set), and its scratch memory.
struct SlopeAndSum {
  GeluBiasGradientArgs slope;
  PartialSumArgs sum;
  bool in_place = false;          ///< the product is stored in dz
  std::size_t product_bytes = 0;  ///< scratch memory, unless in place
  std::size_t partial_bytes = 0;
};

SlopeAndSum slope_and_sum(const Work& work, const Gemm& gemm) {
  const TensorSpec& pre = at(work.tensors, work.roles.pre);
  const TensorSpec& dz = at(work.tensors, work.roles.c);
  const TensorSpec& db = at(work.tensors, work.db);
  const DType wide = work.call.math.accumulate;
  expect_row_major(work.call, db);
  SlopeAndSum own;
  own.in_place = dz.dtype == wide;
  GeluBiasGradientArgs& slope = own.slope;
  slope.data = any_element(work.call, dz);
  slope.tanh = gemm.gelu_form == GeluForm::tanh;
  const RowView rows = rows_of(work.call, dz);
  slope.rows = rows.rows;
  slope.columns = rows.columns;
  slope.dz_stride = rows.stride;
  slope.pre_stride = rows_of(work.call, pre).stride;
  slope.product_stride = own.in_place ? rows.stride : rows.columns;
  slope.parts = column_sum_parts(rows.rows, rows.columns, work.context.device.multiprocessors);
  const std::size_t wide_bytes = size_of(wide);
  if (!own.in_place)
    own.product_bytes = workspace_aligned(static_cast<std::size_t>(rows.rows * rows.columns) * wide_bytes);
  own.partial_bytes = static_cast<std::size_t>(slope.parts * rows.columns) * wide_bytes;
  own.sum = {any_element(work.call, db), nullptr, slope.parts, rows.columns, rows.columns, nullptr, nullptr};
  return own;
}

/// The product unrounded, then slope and sum in one kernel. Scratch memory: [product][the library's, later partial
/// sums].
void add_slope_and_sum(Work& work, const Gemm& gemm, MatmulRequest request) {
  const DType wide = work.call.math.accumulate;
  const TensorSpec& dz = at(work.tensors, work.roles.c);
  const DType sum = at(work.tensors, work.db).dtype;
  const bool f64 = wide == DType::f64 && dz.dtype == DType::f64 && sum == DType::f64;
  const bool f32 = wide == DType::f32 && dz.dtype != DType::f64 && sum != DType::f64;
  if (!(f64 || f32) || at(work.tensors, work.roles.pre).dtype != dz.dtype) return;
  const SlopeAndSum own = slope_and_sum(work, gemm);
  if (!own.in_place) request.c = {wide, dz.shape[0], dz.shape[1], dz.shape[1], 0};
  for (const MatmulWork& matmul : matmul_candidates(work.context.cublaslt, request, max_composed_candidates)) {
    work.candidates.push_back(
        plan_of(matmul.implementation() + "+" + own_implementation(work.context) + ":slope_and_sum",
                own.product_bytes + std::max(matmul.workspace_bytes(), own.partial_bytes),
                [matmul, own, roles = work.roles, db = work.db](std::span<const Tensor> bound, Workspace workspace) {
                  SlopeAndSum placed = own;
                  const Workspace rest{workspace.data + own.product_bytes, workspace.bytes - own.product_bytes};
                  MatmulAddresses addresses = addresses_of(bound, rest, roles, roles.c);
                  if (!own.in_place) addresses.c = workspace.data;
                  placed.slope.product = addresses.c;
                  placed.slope.pre = address_of(bound, roles.pre);
                  placed.slope.dz = address_of(bound, roles.c);
                  placed.slope.partial = rest.data;
                  placed.sum.partial = rest.data;
                  placed.sum.y = address_of(bound, db);
                  return [product = matmul.bind(addresses), placed](cudaStream_t stream) {
                    product(stream);
                    launch_gelu_bias_gradient(placed.slope, stream);
                    check_launch("gelu_bias_gradient");
                    launch_partial_sum(placed.sum, stream);
                    check_launch("the sum of its parts");
                  };
                }));
  }
}

// Times cuBLASLt's epilogues and products with own kernels: DGELU with the library's sum; DGELU and column_sum; the
// product unrounded, in dz or in scratch memory, with one own kernel for slope and sum.
Plan plan_gemm_gelu_bias_gradient(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context) {
  const Gemm& gemm = call.attributes.as<Gemm>();
  Work work{call, tensors, context, roles_of(gemm), 4};
  const MatmulRequest plain = request_of(call, gemm, tensors, work.roles, context);
  if (gemm.gelu_form == GeluForm::tanh) {
    MatmulRequest dgelu = plain;
    dgelu.aux = matrix_of(call, at(tensors, work.roles.pre), nullptr);
    dgelu.epilogue = MatmulEpilogue::dgelu;
    add_library_sums(work, dgelu, MatmulEpilogue::dgelu_bias_gradient);
    add_column_sums(work, dgelu, work.roles.c);
  }
  add_slope_and_sum(work, gemm, plain);
  return work.fastest();
}

// The library's sum, or the own column_sum.
Plan plan_gemm_weight_bias_gradient(const OpCall& call, std::span<const TensorSpec> tensors,
                                    const CudaContext& context) {
  const GemmWeightBiasGradient& attributes = call.attributes.as<GemmWeightBiasGradient>();
  const bool of_a = attributes.gradient == GemmWeightBiasGradient::Operand::a;
  Work work{call, tensors, context, roles_of(attributes.gemm), 3};
  const MatmulRequest plain = request_of(call, attributes.gemm, tensors, work.roles, context);
  const bool sums_unconverted = plain.a.type != DType::f32 || call.math.inputs == Math::Inputs::exact;
  if (sums_unconverted) {
    add_library_sums(work, plain, of_a ? MatmulEpilogue::bias_gradient_a : MatmulEpilogue::bias_gradient_b);
  }
  add_column_sums(work, plain, of_a ? work.roles.a : work.roles.b);
  return work.fastest();
}

}  // namespace

Ops bias_gradient_ops() {
  return {{column_sum_kind, plan_column_sum},
          {gemm_gelu_bias_gradient_kind, plan_gemm_gelu_bias_gradient, Gain::expected},
          {gemm_weight_bias_gradient_kind, plan_gemm_weight_bias_gradient, Gain::expected}};
}

}  // namespace gpubench::cuda
