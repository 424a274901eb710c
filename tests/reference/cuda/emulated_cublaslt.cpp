// cuBLASLt as specified by its manual, on host memory: column-major matrices, epilogues on whole small products.
// It replaces the library under emulation, so that results reveal errors in operands, strides, epilogues and scratch
// memory. It cannot show what the real library supports or computes beyond its manual.
//
// Heuristics propose two algorithms. The first sums a bias gradient of D before D is rounded; the second after it, and
// fills its scratch memory. Other trouble: emulated_cublaslt.h.
#include "tests/reference/cuda/emulated_cublaslt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "harness/core/dtype.h"
#include "tests/reference/cuda/emulation/streams.h"

namespace {

using gpubench::DType;
using gpubench::testing::CublasLtTrouble;

struct Library {
  CublasLtTrouble trouble;
  int calls = 0;
};

Library& library() {
  static Library instance;
  return instance;
}

/// Status of a call before it does anything: success, unless it is to fail.
cublasStatus_t fate() {
  Library& now = library();
  return now.calls++ == now.trouble.failing_call ? now.trouble.status : CUBLAS_STATUS_SUCCESS;
}

struct FakePreference {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t alignment = 256;  // the least promised for A, B, C and D
};

struct FakeDesc {
  cudaDataType_t scale = CUDA_R_32F;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  std::int32_t bias_type = -1;
  void* aux = nullptr;
  std::int64_t aux_ld = 0;
  std::int32_t aux_type = -1;
  std::int32_t a_mode = 0, b_mode = 0, pointer_mode = 0;
  const void *a_scale = nullptr, *b_scale = nullptr;
};

struct FakeLayout {
  cudaDataType_t type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0, ld = 0;
  std::int32_t batch = 1;
};

FakeDesc& of(cublasLtMatmulDesc_t desc) { return *reinterpret_cast<FakeDesc*>(desc); }
const FakeLayout& of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<const FakeLayout*>(layout); }

DType dtype_of(int type) {
  switch (type) {
    case CUDA_R_64F: return DType::f64;
    case CUDA_R_16F: return DType::f16;
    case CUDA_R_16BF: return DType::bf16;
    case CUDA_R_8F_E4M3: return DType::f8_e4m3;
    case CUDA_R_8F_E5M2: return DType::f8_e5m2;
    case CUDA_R_4F_E2M1: return DType::f4_e2m1;
    default: return DType::f32;
  }
}

/// Element (row, column) of a column-major matrix.
struct Matrix {
  std::byte* data;
  DType type;
  std::int64_t ld;
  [[nodiscard]] std::byte* at(std::int64_t row, std::int64_t column) const {
    return data + (row + column * ld) * static_cast<std::int64_t>(gpubench::size_of(type));
  }
  [[nodiscard]] double get(std::int64_t row, std::int64_t column) const { return load(type, data, row + column * ld); }
};

Matrix matrix_of(const void* data, const FakeLayout& layout) {
  return {static_cast<std::byte*>(const_cast<void*>(data)), dtype_of(layout.type), layout.ld};
}

/// op(A)(row, k) or op(B)(k, column), by first and second index.
double element(const Matrix& matrix, cublasOperation_t transpose, std::int64_t row, std::int64_t column) {
  return transpose == CUBLAS_OP_T ? matrix.get(column, row) : matrix.get(row, column);
}

/// Factor of element `k` of row `outer` of op(A), or column of op(B). Tiles follow the manual's "1D Block Scaling
/// Factors Layout": 128 outer indices by 4 blocks; UE4M3 has no sign.
double scale_of(const void* scales, std::int32_t mode, std::int64_t outer, std::int64_t k, std::int64_t extent) {
  if (scales == nullptr) return 1.0;
  if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) return *static_cast<const float*>(scales);
  const bool e8m0 = mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
  const std::int64_t block = e8m0 ? 32 : 16, inner = k / block, tiles_across = (extent / block + 3) / 4;
  const std::int64_t tile = outer / 128 * tiles_across + inner / 4;
  const std::int64_t offset = outer % 32 * 16 + outer % 128 / 32 * 4 + inner % 4;
  const std::byte* code = static_cast<const std::byte*>(scales) + tile * 512 + offset;
  if (!e8m0) return std::fabs(load(DType::f8_e4m3, code));
  return *code == std::byte{255} ? NAN : std::exp2(std::to_integer<int>(*code) - 127);
}

/// `above`: sign of the error of an approximate tanh.
double tanh_of(double t, bool above) {
  const double error = library().trouble.approximate_tanh ? 0x1p-11 : 0.0;
  return std::tanh(t) * (1.0 + (above ? error : -error));
}

double gelu(double x, bool above) {
  const double t = std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
  if (library().trouble.approximate_tanh) return 0.5 * x * (1.0 + tanh_of(t, above));
  return x / (1.0 + std::exp(-2.0 * t));
}

double gelu_slope(double x, bool above) {
  const double t = tanh_of(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x), above);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * std::sqrt(2.0 / M_PI) * (1.0 + 0.134145 * x * x);
}

bool adds_bias(int epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}
bool has_aux(int epilogue) { return (epilogue & 128) != 0; }
bool sums_bias(int epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD || epilogue == CUBLASLT_EPILOGUE_BGRADA ||
         epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

double as_scale(double value, const FakeDesc& desc) { return round_to(dtype_of(desc.scale), value); }

/// Operands in cuBLASLt's terms: D [m, n], summed over k.
struct Call {
  FakeDesc desc;
  Matrix a, b, d;
  std::int64_t m, n, k;
  double alpha, beta;

  [[nodiscard]] double sum(std::int64_t i, std::int64_t j) const {
    double sum = 0.0;
    for (std::int64_t p = 0; p < k; ++p) {
      const double scales = scale_of(desc.a_scale, desc.a_mode, i, p, k) * scale_of(desc.b_scale, desc.b_mode, j, p, k);
      sum = as_scale(sum + scales * element(a, desc.transpose_a, i, p) * element(b, desc.transpose_b, p, j), desc);
    }
    return as_scale(alpha * sum, desc) + (beta == 0.0 ? 0.0 : as_scale(beta * d.get(i, j), desc));
  }
  void store_bias(std::int64_t index, double value) const {
    const DType type = dtype_of(desc.bias_type);
    store(type, static_cast<std::byte*>(desc.bias) + index * static_cast<std::int64_t>(gpubench::size_of(type)), value);
  }
  /// An element of D before rounding.
  [[nodiscard]] double with_epilogue(std::int64_t i, std::int64_t j) const {
    double z = sum(i, j);
    if (adds_bias(desc.epilogue))
      z = as_scale(z + Matrix{static_cast<std::byte*>(desc.bias), dtype_of(desc.bias_type), 0}.get(i, 0), desc);
    if (!has_aux(desc.epilogue)) return z;
    const Matrix aux{static_cast<std::byte*>(desc.aux), dtype_of(desc.aux_type), desc.aux_ld};
    if ((desc.epilogue & CUBLASLT_EPILOGUE_GELU) != 0) {
      store(aux.type, aux.at(i, j), z);
      return as_scale(gelu(z, (i + j) % 2 == 0), desc);
    }
    return as_scale(z * gelu_slope(aux.get(i, j), (i + j) % 2 == 0), desc);
  }
  void run(bool sum_rounded) const {
    std::vector<double> of_row(static_cast<std::size_t>(m));
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < m; ++i) {
        const double value = with_epilogue(i, j);
        store(d.type, d.at(i, j), value);
        double& row = of_row[static_cast<std::size_t>(i)];
        row = as_scale(row + (sum_rounded ? d.get(i, j) : value), desc);
      }
    }
    if (desc.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD) {
      for (std::int64_t i = 0; i < m; ++i) store_bias(i, of_row[static_cast<std::size_t>(i)]);
    }
    if (desc.epilogue == CUBLASLT_EPILOGUE_BGRADA) {
      for (std::int64_t i = 0; i < m; ++i)
        store_bias(i, along_k([&](std::int64_t p) { return element(a, desc.transpose_a, i, p); }));
    }
    if (desc.epilogue == CUBLASLT_EPILOGUE_BGRADB) {
      for (std::int64_t j = 0; j < n; ++j)
        store_bias(j, along_k([&](std::int64_t p) { return element(b, desc.transpose_b, p, j); }));
    }
  }
  template <class Term>
  [[nodiscard]] double along_k(Term term) const {
    double sum = 0.0;
    for (std::int64_t p = 0; p < k; ++p) sum = as_scale(sum + term(p), desc);
    return sum;
  }
};

/// Conditions of the manual, and no batches.
bool supported(const FakeDesc& desc, const FakeLayout& a, const FakeLayout& d) {
  if (d.batch != 1) return false;
  if (desc.a_mode != desc.b_mode) return false;
  const auto placed = [](const void* scales) {
    return scales != nullptr && reinterpret_cast<std::uintptr_t>(scales) % 16 == 0;
  };
  if (desc.a_mode != CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) {
    if (!placed(desc.a_scale) || !placed(desc.b_scale) || desc.transpose_a != CUBLAS_OP_T) return false;
    if ((desc.a_mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3) != (a.type == CUDA_R_4F_E2M1)) return false;
  }
  if (has_aux(desc.epilogue) && (desc.aux == nullptr || desc.aux_ld % 8 != 0 || desc.aux_ld < d.rows)) return false;
  return !sums_bias(desc.epilogue) || (desc.bias != nullptr && desc.bias_type == d.type);
}

template <class T>
void read(T& into, const void* from) {
  std::memcpy(&into, from, sizeof into);
}

}  // namespace

namespace gpubench::testing {

WithTrouble::WithTrouble(const CublasLtTrouble& trouble) { library() = {trouble}; }
WithTrouble::~WithTrouble() { library() = {}; }
int WithTrouble::calls() const { return library().calls; }

}  // namespace gpubench::testing

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (const cublasStatus_t status = fate(); status != CUBLAS_STATUS_SUCCESS) return status;
  static int something;
  *handle = reinterpret_cast<cublasLtHandle_t>(&something);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
const char* cublasLtGetStatusName(cublasStatus_t) { return "FAKE_CUBLASLT"; }
std::size_t cublasLtGetVersion() { return 0; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t, cudaDataType_t scale) {
  if (const cublasStatus_t status = fate(); status != CUBLAS_STATUS_SUCCESS) return status;
  auto* made = new FakeDesc;
  made->scale = scale;
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete &of(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t) {
  if (const cublasStatus_t status = fate(); status != CUBLAS_STATUS_SUCCESS) return status;
  FakeDesc& desc = of(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: read(desc.transpose_a, value); break;
    case CUBLASLT_MATMUL_DESC_TRANSB: read(desc.transpose_b, value); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: read(desc.epilogue, value); break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: read(desc.bias, value); break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: read(desc.bias_type, value); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: read(desc.aux, value); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: read(desc.aux_ld, value); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: read(desc.aux_type, value); break;
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE: read(desc.a_mode, value); break;
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE: read(desc.b_mode, value); break;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER: read(desc.a_scale, value); break;
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER: read(desc.b_scale, value); break;
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: read(desc.pointer_mode, value); break;
    default: return CUBLAS_STATUS_INVALID_VALUE;  // not emulated
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t ld) {
  if (const cublasStatus_t status = fate(); status != CUBLAS_STATUS_SUCCESS) return status;
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new FakeLayout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), ld});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &of(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t) {
  if (const cublasStatus_t status = fate(); status != CUBLAS_STATUS_SUCCESS) return status;
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) read(reinterpret_cast<FakeLayout*>(layout)->batch, value);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  if (const cublasStatus_t status = fate(); status != CUBLAS_STATUS_SUCCESS) return status;
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new FakePreference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<FakePreference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t) {
  if (const cublasStatus_t status = fate(); status != CUBLAS_STATUS_SUCCESS) return status;
  auto& preference = *reinterpret_cast<FakePreference*>(handle);
  std::uint32_t alignment = preference.alignment;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: read(preference.workspace_bytes, value); break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: read(alignment, value); break;
    default: break;
  }
  preference.alignment = std::min(preference.alignment, alignment);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                    std::size_t bytes, std::size_t* written) {
  if (const cublasStatus_t status = fate(); status != CUBLAS_STATUS_SUCCESS) return status;
  std::memset(value, 0, bytes);
  if (attribute == CUBLASLT_ALGO_CONFIG_ID) std::memcpy(value, &algorithm->data[0], bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  if (const cublasStatus_t status = fate(); status != CUBLAS_STATUS_SUCCESS) return status;
  *found = 0;
  const CublasLtTrouble& trouble = library().trouble;
  const auto& wanted = *reinterpret_cast<const FakePreference*>(preference);
  if (!supported(of(desc), of(a), of(d)) || trouble.no_algorithm || wanted.alignment < trouble.min_alignment)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const int algorithms = trouble.scratch_bytes <= wanted.workspace_bytes ? 2 : 1;
  for (; *found < std::min(most, algorithms); ++*found) {
    cublasLtMatmulHeuristicResult_t& result = results[*found];
    result = {};
    result.algo.data[0] = static_cast<std::uint64_t>(*found);
    result.workspaceSize = *found == 1 ? trouble.scratch_bytes : 0;
    result.state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t handle, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void*, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  if (const cublasStatus_t status = fate(); status != CUBLAS_STATUS_SUCCESS) return status;
  const FakeDesc& desc = of(handle);
  const bool second = algorithm->data[0] == 1;
  const std::size_t scratch = second ? library().trouble.scratch_bytes : 0;
  const bool placed = scratch == 0 || reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0;  // required by the manual
  if (!supported(desc, of(a_layout), of(d_layout)) || workspace_bytes < scratch || !placed)
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto scalar = [&desc](const void* from) {
    return load(dtype_of(desc.scale), static_cast<const std::byte*>(from));
  };
  const std::int64_t k = desc.transpose_a == CUBLAS_OP_T ? of(a_layout).rows : of(a_layout).columns;
  const bool on_device = desc.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;  // to be read when the work runs
  Call call{desc,
            matrix_of(a, of(a_layout)),
            matrix_of(b, of(b_layout)),
            matrix_of(d, of(d_layout)),
            of(d_layout).rows,
            of(d_layout).columns,
            k,
            on_device ? 0.0 : scalar(alpha),
            on_device ? 0.0 : scalar(beta)};
  gpubench::cuda::emulation::on_stream(stream, [=]() mutable {
    if (on_device) {
      call.alpha = *static_cast<const float*>(alpha);
      call.beta = *static_cast<const float*>(beta);
    }
    if (second) std::memset(workspace, 0x5A, scratch);
    call.run(second);
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
