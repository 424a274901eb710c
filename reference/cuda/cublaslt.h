// cuBLASLt's matrix product for row-major matrices with a row stride.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/dtype.h"
#include "harness/core/recipe.h"

namespace gpubench::cuda {

class CublasLt {
 public:
  /// Throws BackendError if cuBLASLt does not start.
  CublasLt();
  [[nodiscard]] cublasLtHandle_t handle() const { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(cublasLtHandle_t handle) const { (void)cublasLtDestroy(handle); }
  };
  std::unique_ptr<cublasLtContext, Destroy> handle_;
};

/// "13.1.0"
[[nodiscard]] std::string cublaslt_version();

/// A row-major matrix in memory; strides in elements.
struct RowMatrix {
  DType type = DType::f32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t batch_stride = 0;
};

/// The last three also compute a bias gradient: summed over the rows of c (one number per column), or along k over
/// op(a) (one per row of c) or op(b) (one per column).
enum class MatmulEpilogue { none, gelu_aux, dgelu, dgelu_bias_gradient, bias_gradient_a, bias_gradient_b };

/// c = epilogue(alpha op(a) op(b) + beta c + bias). `aux` has c's shape: gelu_aux writes it (before GELU), dgelu reads
/// it. `bias`: type of the row that is added, or of the bias gradient, which cuBLASLt computes in c's type only.
struct MatmulRequest {
  RowMatrix a, b, c;
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t batch = 1;
  double alpha = 1.0;
  double beta = 0.0;
  Math math;
  std::optional<DType> bias = {};
  MatmulEpilogue epilogue = MatmulEpilogue::none;
  RowMatrix aux;
  bool scaled_a = false;  ///< f8: an f32 factor in device memory, or `blocks`
  bool scaled_b = false;
  /// Type of block scales of a and b along k (reference/ops/gemm.h), stored in tiles (kernels/products.h).
  std::optional<DType> blocks = {};
  bool factors_on_device = false;  ///< alpha and beta are read from device memory
};

struct MatmulAddresses {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  void* bias = nullptr;  ///< an input, or the bias gradient
  void* aux = nullptr;
  const void* scale_a = nullptr;
  const void* scale_b = nullptr;
  const float* factors = nullptr;  ///< {alpha, beta} if they are in device memory
  void* workspace = nullptr;
};

class MatmulWork {
 public:
  /// "cublaslt:algo=66,tile=20,..."
  [[nodiscard]] const std::string& implementation() const { return name_; }
  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// A callable that takes the stream. Throws BackendError if an address has less than the promised alignment.
  [[nodiscard]] auto bind(const MatmulAddresses& addresses) const {
    return [bound = bound_to(addresses)](cudaStream_t stream) { run(*bound, stream); };
  }

  struct Bound;

 private:
  friend std::vector<MatmulWork> matmul_candidates(const CublasLt& library, const MatmulRequest& request, int most);
  struct Description;
  [[nodiscard]] std::shared_ptr<const Bound> bound_to(const MatmulAddresses& addresses) const;
  static void run(const Bound& bound, cudaStream_t stream);

  std::shared_ptr<const Description> description_;
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_bytes_ = 0;
  std::string name_;
};

/// Candidates of cuBLASLt's heuristics, best first; empty if there are none. Partial sums along k are rounded to the
/// output type only if the request's math permits it.
/// Throws BackendError if cuBLASLt fails, Unsupported for types without a product.
[[nodiscard]] std::vector<MatmulWork> matmul_candidates(const CublasLt& library, const MatmulRequest& request,
                                                        int most);

}  // namespace gpubench::cuda
