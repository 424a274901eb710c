// The sums that an op of a program computes, as lists of f32 factors: so that a test can add them in other orders than
// the backend that ran the op.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "harness/core/program.h"

namespace gpubench::testing {

/// One output whose elements are plain sums of products.
struct SumsOfProducts {
  int output = 0;
  std::int64_t units = 0;
  bool matrices = false;  ///< products of matrices, which GPUs do on tensor cores
  double scale = 1.0;     ///< of the sum, a power of two: what 8-bit factors were quantized with
  /// The factors of an element's terms, in the order of k.
  std::function<void(std::int64_t unit, std::vector<double>& a, std::vector<double>& b)> terms;
};

/// Of gemm without an epilogue, column_sum, layer_norm_backward (dgamma, dbeta), and the fused ops that have one of
/// these among their outputs; empty for other ops. `inputs` must outlive what is returned.
[[nodiscard]] std::vector<SumsOfProducts> sums_of_products(const OpCall& call, std::span<const TensorView> inputs,
                                                           std::span<const TensorView> outputs);

}  // namespace gpubench::testing
