#include "reference/cuda/cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/core/error.h"

namespace gpubench::cuda {
namespace {

void check_cublas(cublasStatus_t status, std::string_view attempted) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw BackendError(
      fmt::format("cublaslt: {} failed: {} ({})", attempted, cublasLtGetStatusName(status), static_cast<int>(status)));
}

cudaDataType_t data_type(DType type) {
  switch (type) {
    case DType::f64: return CUDA_R_64F;
    case DType::f32: return CUDA_R_32F;
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f8_e4m3: return CUDA_R_8F_E4M3;
    case DType::f8_e5m2: return CUDA_R_8F_E5M2;
    case DType::f4_e2m1: return CUDA_R_4F_E2M1;
    default: throw Unsupported(fmt::format("cublaslt has no product of {} matrices", name(type)));
  }
}

cublasComputeType_t compute_type(const MatmulRequest& request) {
  const bool f32_operands = request.a.type == DType::f32 || request.b.type == DType::f32;
  switch (request.math.accumulate) {
    case DType::f64: return CUBLAS_COMPUTE_64F;
    case DType::f16: return CUBLAS_COMPUTE_16F;
    case DType::f32: break;
    default: throw Unsupported(fmt::format("cublaslt has no sums in {}", name(request.math.accumulate)));
  }
  if (!f32_operands) return CUBLAS_COMPUTE_32F;
  switch (request.math.inputs) {
    case Math::Inputs::exact: return CUBLAS_COMPUTE_32F_PEDANTIC;  // not TF32, even if the environment enables it
    case Math::Inputs::tf32: return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Math::Inputs::emulated: return CUBLAS_COMPUTE_32F_EMULATED_16BFX9;
    case Math::Inputs::bf16:
    case Math::Inputs::two_bf16: throw Unsupported("cublaslt has no product of f32 operands in bf16");
  }
  return CUBLAS_COMPUTE_32F_PEDANTIC;
}

struct LayoutDelete {
  void operator()(cublasLtMatrixLayoutOpaque_t* layout) const { (void)cublasLtMatrixLayoutDestroy(layout); }
};
using MatrixLayout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, LayoutDelete>;

struct DescDelete {
  void operator()(cublasLtMatmulDescOpaque_t* desc) const { (void)cublasLtMatmulDescDestroy(desc); }
};
using MatmulDesc = std::unique_ptr<cublasLtMatmulDescOpaque_t, DescDelete>;

struct PreferenceDelete {
  void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const {
    (void)cublasLtMatmulPreferenceDestroy(preference);
  }
};
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, PreferenceDelete>;

template <class T>
void set(const MatmulDesc& desc, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check_cublas(cublasLtMatmulDescSetAttribute(desc.get(), attribute, &value, sizeof value), "setting up a product");
}
template <class T>
void set(const MatrixLayout& layout, cublasLtMatrixLayoutAttribute_t attribute, const T& value) {
  check_cublas(cublasLtMatrixLayoutSetAttribute(layout.get(), attribute, &value, sizeof value), "describing a matrix");
}
template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  check_cublas(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
               "setting preferences for algorithms");
}

// cuBLASLt is column-major, so each row-major matrix is passed transposed.
MatrixLayout layout_of(const RowMatrix& matrix, std::int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&made, data_type(matrix.type), static_cast<std::uint64_t>(matrix.columns),
                                          static_cast<std::uint64_t>(matrix.rows), matrix.row_stride),
               "describing a matrix");
  MatrixLayout layout(made);
  if (batch > 1) {
    set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
    set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride);
  }
  return layout;
}

bool has_aux(MatmulEpilogue epilogue) {
  return epilogue == MatmulEpilogue::gelu_aux || epilogue == MatmulEpilogue::dgelu ||
         epilogue == MatmulEpilogue::dgelu_bias_gradient;
}

// Names follow cuBLASLt's view c^T = op(b)^T op(a)^T: its D has our columns as rows, its A is our b, its B our a.
// DGELU_BGRAD sums each row of D: one number per column of c. BGRADB sums B along k: one per row of c, for a weight
// gradient dy^T x with a = dy. BGRADA gives one per column of c, for x^T dy with b = dy.
cublasLtEpilogue_t epilogue_of(const MatmulRequest& request) {
  switch (request.epilogue) {
    case MatmulEpilogue::none: return request.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    case MatmulEpilogue::gelu_aux: return request.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case MatmulEpilogue::dgelu: return CUBLASLT_EPILOGUE_DGELU;
    case MatmulEpilogue::dgelu_bias_gradient: return CUBLASLT_EPILOGUE_DGELU_BGRAD;
    case MatmulEpilogue::bias_gradient_a: return CUBLASLT_EPILOGUE_BGRADB;
    case MatmulEpilogue::bias_gradient_b: return CUBLASLT_EPILOGUE_BGRADA;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// Alignment of every row if the first is aligned, in bytes; at most 16, as vector accesses need.
std::uint32_t alignment_of(const RowMatrix& matrix) {
  const std::int64_t bits = bits_of(matrix.type);
  const auto divides = [bits](std::int64_t elements, std::int64_t bytes) { return elements * bits % (8 * bytes) == 0; };
  std::uint32_t alignment = 16;
  while (8 * alignment > bits && !(divides(matrix.row_stride, alignment) && divides(matrix.batch_stride, alignment)))
    alignment /= 2;
  return alignment;
}

void expect_aligned(const void* address, std::uint32_t alignment, const char* which) {
  if (reinterpret_cast<std::uintptr_t>(address) % alignment == 0) return;
  throw BackendError(
      fmt::format("cublaslt: the address of matrix {} is not a multiple of {} bytes, as planned", which, alignment));
}

MatmulDesc desc_of(const MatmulRequest& request) {
  cublasLtMatmulDesc_t made = nullptr;
  const cudaDataType_t scale = request.math.accumulate == DType::f64   ? CUDA_R_64F
                               : request.math.accumulate == DType::f16 ? CUDA_R_16F
                                                                       : CUDA_R_32F;
  check_cublas(cublasLtMatmulDescCreate(&made, compute_type(request), scale), "describing a product");
  MatmulDesc desc(made);
  // c^T = op(b)^T op(a)^T swaps the operands.
  set(desc, CUBLASLT_MATMUL_DESC_TRANSA, request.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(desc, CUBLASLT_MATMUL_DESC_TRANSB, request.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(request));
  if (request.math.fast_accumulation) set(desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  if (request.blocks) {
    const std::int32_t mode = *request.blocks == DType::u8 ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0
                                                           : CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
    set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode);
    set(desc, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
  }
  if (request.factors_on_device) {
    set(desc, CUBLASLT_MATMUL_DESC_POINTER_MODE, static_cast<std::int32_t>(CUBLASLT_POINTER_MODE_DEVICE));
  }
  if (request.bias) set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(data_type(*request.bias)));
  if (has_aux(request.epilogue)) {
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, request.aux.row_stride);
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, static_cast<std::int32_t>(data_type(request.aux.type)));
    if (request.batch > 1) set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, request.aux.batch_stride);
  }
  return desc;
}

// "?" if the library does not report it: 0 would name another algorithm.
template <class T>
std::string config(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  std::size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS ? fmt::format("{}", value) : "?";
}

// All attributes needed to select the same algorithm again.
std::string name_of(const cublasLtMatmulAlgo_t& a) {
  return fmt::format(
      "cublaslt:algo={},tile={},stages={},splitk={},reduction={},swizzle={},custom={},inner={},cluster={}",
      config<std::int32_t>(a, CUBLASLT_ALGO_CONFIG_ID), config<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_TILE_ID),
      config<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_STAGES_ID),
      config<std::int32_t>(a, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
      config<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
      config<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
      config<std::uint32_t>(a, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
      config<std::uint16_t>(a, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID),
      config<std::uint16_t>(a, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
}

// NVIDIA advises 32 MiB for Hopper; tuning may use more.
constexpr std::size_t max_workspace = std::size_t{64} << 20;

}  // namespace

CublasLt::CublasLt() {
  cublasLtHandle_t handle = nullptr;
  check_cublas(cublasLtCreate(&handle), "starting");
  handle_.reset(handle);
}

std::string cublaslt_version() {
  const std::size_t version = cublasLtGetVersion();  // 130100: 13.1.0
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

struct MatmulWork::Description {
  cublasLtHandle_t library = nullptr;
  MatmulRequest request;
  MatrixLayout a, b, c;
};

struct MatmulWork::Bound {
  std::shared_ptr<const Description> description;
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace_bytes = 0;
  MatmulDesc desc;
  MatmulAddresses addresses;
};

std::shared_ptr<const MatmulWork::Bound> MatmulWork::bound_to(const MatmulAddresses& addresses) const {
  const MatmulRequest& request = description_->request;
  expect_aligned(addresses.a, alignment_of(request.a), "a");
  expect_aligned(addresses.b, alignment_of(request.b), "b");
  expect_aligned(addresses.c, alignment_of(request.c), "c");
  auto bound = std::make_shared<Bound>();
  bound->description = description_;
  bound->algorithm = algorithm_;
  bound->workspace_bytes = workspace_bytes_;
  bound->addresses = addresses;
  bound->desc = desc_of(request);
  if (request.bias) set(bound->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, addresses.bias);
  if (has_aux(request.epilogue)) {
    set(bound->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, addresses.aux);
  }
  // Swapped as the operands are.
  if (request.scaled_a) set(bound->desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, addresses.scale_a);
  if (request.scaled_b) set(bound->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, addresses.scale_b);
  return bound;
}

void MatmulWork::run(const Bound& bound, cudaStream_t stream) {
  const Description& d = *bound.description;
  const MatmulAddresses& at = bound.addresses;
  // The factors have the scale type: double for f64 sums, half for f16 sums.
  const double alpha_f64 = d.request.alpha;
  const double beta_f64 = d.request.beta;
  const auto alpha_f32 = static_cast<float>(alpha_f64);
  const auto beta_f32 = static_cast<float>(beta_f64);
  std::array<std::byte, 2> alpha_f16{};
  std::array<std::byte, 2> beta_f16{};
  const void* alpha = &alpha_f32;
  const void* beta = &beta_f32;
  if (d.request.math.accumulate == DType::f64) {
    alpha = &alpha_f64;
    beta = &beta_f64;
  } else if (d.request.math.accumulate == DType::f16) {
    store(DType::f16, alpha_f16.data(), alpha_f64);
    store(DType::f16, beta_f16.data(), beta_f64);
    alpha = alpha_f16.data();
    beta = beta_f16.data();
  }
  if (d.request.factors_on_device) {
    alpha = at.factors;
    beta = at.factors + 1;
  }
  check_cublas(
      cublasLtMatmul(d.library, bound.desc.get(), alpha, at.b, d.b.get(), at.a, d.a.get(), beta, at.c, d.c.get(), at.c,
                     d.c.get(), &bound.algorithm, at.workspace, bound.workspace_bytes, stream),
      "a product");
}

std::vector<MatmulWork> matmul_candidates(const CublasLt& library, const MatmulRequest& request, int most) {
  auto description = std::make_shared<MatmulWork::Description>();
  description->library = library.handle();
  description->request = request;
  description->a = layout_of(request.a, request.batch);
  description->b = layout_of(request.b, request.batch);
  description->c = layout_of(request.c, request.batch);
  const MatmulDesc desc = desc_of(request);
  // Heuristics for epilogues and scaled operands require non-null addresses but do not read them.
  const auto somewhere = reinterpret_cast<void*>(std::uintptr_t{256});
  if (request.bias) set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, somewhere);
  if (has_aux(request.epilogue)) set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, somewhere);
  if (request.scaled_a) set(desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, somewhere);
  if (request.scaled_b) set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, somewhere);

  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&made), "setting preferences for algorithms");
  const Preference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, max_workspace);
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  const bool sums_as_output = request.c.type == request.math.accumulate;
  if (request.math.split_k_in_output || sums_as_output) {
    reductions |= CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  }
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(request.b));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(request.a));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(request.c));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(request.c));

  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library.handle(), desc.get(), description->b.get(), description->a.get(), description->c.get(),
      description->c.get(), preference.get(), most, results.data(), &found);
  std::vector<MatmulWork> candidates;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return candidates;
  check_cublas(status, "querying algorithms");
  for (int i = 0; i < found; ++i) {
    const auto& result = results[static_cast<std::size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    MatmulWork work;
    work.description_ = description;
    work.algorithm_ = result.algo;
    work.workspace_bytes_ = result.workspaceSize;
    work.name_ = name_of(result.algo);
    candidates.push_back(std::move(work));
  }
  return candidates;
}

}  // namespace gpubench::cuda
