// Matrix products by oneDNN, with own GELU epilogues.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/onednn.h"
#include "reference/cpu/own_products.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/ops/gemm.h"

namespace gpubench::cpu {
namespace {

// GELU epilogues of gemm. oneDNN's post-ops do not keep the pre-activation, which training needs.
//
// Both start from f32 sums, so that GELU reads the unrounded pre-activation and rounds once.

/// Rows of a [batch, m, n] tensor of f32 or bf16 with its last axis dense; strides in elements.
struct MatrixRows {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t batch_stride = 0;
  std::int64_t row_stride = 0;

  [[nodiscard]] Source source() const { return Source(data, dtype); }
  [[nodiscard]] Sink sink() const { return Sink(data, dtype, false); }
  /// First element of row `row`, counted over batches of m rows each.
  [[nodiscard]] std::int64_t first_of(std::int64_t row, std::int64_t m) const {
    return row / m * batch_stride + row % m * row_stride;
  }
};

// Minimum elements per thread: about as long as waking it takes.
constexpr std::int64_t elements_per_grain = 4096;

struct GeluEpilogue {
  std::int64_t batch = 1, m = 0, n = 0;
  bool is_gradient = false;  ///< c = sums gelu'(pre), else pre = z, c = gelu(z)
  PointwiseKernel gelu;
  float beta = 0.0F;  ///< z = sums + beta c
  MatrixRows sums;    ///< f32; may be `pre`, or `c` of a gradient
  MatrixRows pre;
  MatrixRows c;

  void run(int threads) const {
    const std::int64_t grain = std::max<std::int64_t>(1, elements_per_grain / std::max<std::int64_t>(n, 1));
    parallel_chunks(threads, batch * m, grain, [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        in_blocks(n, block_elements, [&](std::int64_t column, std::int64_t count) {
          is_gradient ? multiply_by_gradient(row, column, count) : activate(row, column, count);
        });
      }
    });
  }

  void activate(std::int64_t row, std::int64_t column, std::int64_t count) const {
    BlockBuffer of_pre, of_c, before;
    const std::int64_t pre_first = pre.first_of(row, m) + column, c_first = c.first_of(row, m) + column;
    const float* sum = reinterpret_cast<const float*>(sums.data) + sums.first_of(row, m) + column;
    float* z = pre.sink().place(pre_first, of_pre);
    if (beta != 0.0F) {
      runs().blend(sum, 1.0F, c.source().gather(c_first, count, before), beta, count, z);
    } else if (z != sum) {
      std::copy_n(sum, count, z);
    }
    float* y = c.sink().place(c_first, of_c);
    gelu.block(&z, 0.0F, count, &y);
    pre.sink().commit(pre_first, count, z);
    c.sink().commit(c_first, count, y);
  }

  void multiply_by_gradient(std::int64_t row, std::int64_t column, std::int64_t count) const {
    BlockBuffer of_pre, of_c;
    const std::int64_t c_first = c.first_of(row, m) + column;
    const float* x[] = {pre.source().gather(pre.first_of(row, m) + column, count, of_pre),
                        reinterpret_cast<const float*>(sums.data) + sums.first_of(row, m) + column};
    float* y = c.sink().place(c_first, of_c);
    gelu.block(x, 0.0F, count, &y);
    c.sink().commit(c_first, count, y);
  }
};

MemoryShape matrix(const OpCall& call, const TensorSpec& tensor, bool transpose) {
  const bool batched = tensor.shape.rank() == 3;
  if (!batched) return memory_shape(call, tensor, transpose ? std::vector<int>{1, 0} : std::vector<int>{0, 1});
  return memory_shape(call, tensor, transpose ? std::vector<int>{0, 2, 1} : std::vector<int>{0, 1, 2});
}

bool is_f64(const OpCall& call, const Gemm& attributes, std::span<const TensorSpec> tensors) {
  const auto wide = [](const TensorSpec& tensor) { return tensor.dtype == DType::f64; };
  return call.math.accumulate == DType::f64 && attributes.epilogue == Gemm::Epilogue::none &&
         std::ranges::all_of(tensors, wide);
}

void expect_types(const OpCall& call, const Gemm& attributes, std::span<const TensorSpec> tensors,
                  const Named<TensorSpec>& operand) {
  if (!is_f64(call, attributes, tensors)) {
    for (const TensorSpec& tensor : tensors) expect_f32_or_bf16(call, tensor);
    expect_f32_sums(call);
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

MatmulRequest request_of(const OpCall& call, const Gemm& attributes, const Named<TensorSpec>& operand) {
  MatmulRequest request;
  request.a = matrix(call, operand["a"], attributes.transpose_a);
  request.b = matrix(call, operand["b"], attributes.transpose_b);
  request.c = matrix(call, operand["c"], false);
  if (const TensorSpec* bias = operand.find("bias")) {
    if (bias->shape.elements() > 1) expect_row_major(call, *bias);
    request.bias = bias->dtype;
  }
  request.scaled = attributes.scaled;
  request.alpha = static_cast<float>(attributes.alpha);
  request.beta = static_cast<float>(attributes.beta);
  return request;
}

double flop_of(const MatmulRequest& request) {
  double flop = 2.0 * static_cast<double>(request.a.extents.back());
  for (const std::int64_t extent : request.c.extents) flop *= static_cast<double>(extent);
  return flop;
}

Plan plan_plain(const OpCall& call, const OneDnnWork& work) {
  return plan_of(
      work.implementation(), work.workspace_bytes(), [work, call](std::span<const Tensor> bound, Workspace workspace) {
        std::vector<std::byte*> operands;
        Named<Tensor>(call, bound).each({"a", "b", "c", "bias", "scale_a", "scale_b"}, [&](const Tensor& tensor) {
          operands.push_back(tensor.data);
        });
        return work.bind(operands, workspace.data);
      });
}

/// A product, and the function that plans it with given work.
struct PlannedProduct {
  MatmulRequest sums;
  std::function<Plan(const OneDnnWork& work)> by;
};

// Sums go to `pre` or `c` if that is f32 (no additional memory traffic), else to the workspace.
PlannedProduct plan_with_gelu(const OpCall& call, const Gemm& attributes, MatmulRequest request,
                              const Named<TensorSpec>& operand, const CpuContext& context) {
  const bool gradient = attributes.epilogue == Gemm::Epilogue::gelu_gradient;
  const std::string_view pre_activation = gradient ? "pre" : "z";
  const std::string_view target = gradient ? "c" : "z";
  const TensorSpec& c = operand["c"];
  const TensorSpec& pre = operand[pre_activation];
  expect_contiguous_last_axis(call, c);
  expect_contiguous_last_axis(call, pre);
  if (!gradient && pre.dtype != c.dtype) {
    refuse(call, fmt::format("c {} and pre {} differ in type; expected the same", c.to_string(), pre.to_string()));
  }
  const bool in_place = operand[target].dtype == DType::f32;
  const TensorSpec sums_spec = in_place ? operand[target] : tensor("sums", DType::f32, c.shape, Role::activation);
  request.beta = 0.0F;  // the epilogue adds it, as the sums do not go to c
  request.c = matrix(call, sums_spec, false);
  const std::size_t sums_bytes = in_place ? 0 : whole_lines(static_cast<std::size_t>(sums_spec.bytes()));

  GeluEpilogue epilogue;
  const bool batched = c.shape.rank() == 3;
  epilogue.batch = batched ? c.shape[0] : 1;
  epilogue.m = c.shape[-2];
  epilogue.n = c.shape[-1];
  epilogue.is_gradient = gradient;
  epilogue.gelu = pointwise_kernel(gradient ? gelu_backward_kind : gelu_forward_kind, attributes.gelu_form);
  epilogue.beta = static_cast<float>(attributes.beta);
  epilogue.sums = matrix_rows(sums_spec, nullptr);
  epilogue.pre = matrix_rows(pre, nullptr);
  epilogue.c = matrix_rows(c, nullptr);

  const auto bind = [=, call = call, threads = context.threads](const OneDnnWork& work, std::span<const Tensor> bound,
                                                                Workspace workspace) {
    const Named<Tensor> at(call, bound);
    GeluEpilogue placed = epilogue;
    placed.sums.data = in_place ? at[target].data : workspace.data;
    placed.pre.data = at[pre_activation].data;
    placed.c.data = at["c"].data;
    std::vector<std::byte*> operands{at["a"].data, at["b"].data, placed.sums.data};
    at.each({"bias", "scale_a", "scale_b"}, [&](const Tensor& tensor) { operands.push_back(tensor.data); });
    return [matmul = work.bind(operands, workspace.data + sums_bytes), placed, threads] {
      matmul();
      placed.run(threads);
    };
  };
  return {request, [bind, sums_bytes](const OneDnnWork& work) {
            return plan_of(work.implementation() + "+" + own_implementation(), sums_bytes + work.workspace_bytes(),
                           [bind, work](std::span<const Tensor> bound, Workspace workspace) {
                             return bind(work, bound, workspace);
                           });
          }};
}

// f32 and bf16; f64 without GELU. GELU is a separate pass, since training needs its input and its result.
Plan plan_gemm(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  if (attributes.blocks) return plan_block_scaled_gemm(call, tensors, context);
  const Named<TensorSpec> operand(call, tensors);
  expect_types(call, attributes, tensors, operand);
  const MatmulRequest request = request_of(call, attributes, operand);
  if (operand["a"].dtype == DType::f64) return plan_gemm_f64(call, request, context.threads);
  PlannedProduct plan{request, [&call](const OneDnnWork& work) { return plan_plain(call, work); }};
  if (attributes.epilogue != Gemm::Epilogue::none) plan = plan_with_gelu(call, attributes, request, operand, context);
  std::vector<Plan> candidates;
  const std::size_t ways = candidate_count(flop_of(plan.sums));
  for (const OneDnnWork& work : matmul_ways(context.onednn, plan.sums, ways)) candidates.push_back(plan.by(work));
  if (ways > 1 && attributes.epilogue == Gemm::Epilogue::none) {
    if (std::optional<Plan> own = plan_block_gemm(call, request, context.threads))
      candidates.push_back(std::move(*own));
  }
  return fastest_of(call, candidates, tensors, context);
}

}  // namespace

Ops gemm_ops() { return {{gemm_kind, plan_gemm}}; }

}  // namespace gpubench::cpu
