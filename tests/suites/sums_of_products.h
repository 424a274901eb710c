// The sums that an op computes, as lists of f32 factors, so that tests can add them in other orders than the backend.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "harness/core/program.h"

namespace gpubench::testing {

struct SumsOfProducts {
  int output = 0;
  std::int64_t units = 0;
  bool matrices = false;  ///< products of matrices, which GPUs compute on tensor cores
  double scale = 1.0;     ///< of the sum, a power of two: the scale of 8-bit factors
  /// The factors of an element's terms, in the order of k.
  std::function<void(std::int64_t unit, std::vector<double>& a, std::vector<double>& b)> terms;
};

/// For gemm without an epilogue, column_sum, layer_norm_backward (dgamma, dbeta), and fused ops with such outputs;
/// empty for other ops. `inputs` must outlive the result.
[[nodiscard]] std::vector<SumsOfProducts> sums_of_products(const OpCall& call, std::span<const TensorView> inputs,
                                                           std::span<const TensorView> outputs);

}  // namespace gpubench::testing
