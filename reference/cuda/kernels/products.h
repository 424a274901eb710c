// What own kernels do of matrix products and around the library's, as launches: products of groups of rows, epilogues
// of GELU, sums over rows, and scales of blocks. Meaning: gemm.h, bias_gradient.h and grouped_gemm.h of reference/ops.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

// Products of groups of rows whose sizes are data; all row-major.

/// Sums f32, or f64 for f64 data; c has the data's type, or f32.
struct GroupedGemmArgs {
  Element data = Element::f32, result = Element::f32;
  bool transpose_b = false;  ///< of the forward: b is [groups, n, k]
  std::int64_t rows = 0, groups = 0;
  std::int64_t k = 0, n = 0;  ///< forward: a [rows, k], c [rows, n]; weight: a [rows, k], b [rows, n], c [groups, k, n]
  const void *a = nullptr, *b = nullptr;
  const int* sizes = nullptr;
  void* c = nullptr;
};

void launch_grouped_gemm(const GroupedGemmArgs& args, cudaStream_t stream);
void launch_grouped_gemm_backward_weight(const GroupedGemmArgs& args, cudaStream_t stream);

// GELU, or its slope, behind a product whose sums were kept wide: bias, function and rounding at once; or slope and
// bias gradient, so that the product is read once.

/// forward: z = product + bias, pre = z and c = gelu(z), each rounded once. gradient: c = product gelu'(pre).
/// product [rows, columns] in f32; bias [columns], pre and c [rows, columns] in the type `data`, f16 or bf16.
struct GeluEpilogueArgs {
  Element data = Element::bf16;
  bool tanh = true;       ///< which form of GELU; else erf
  bool gradient = false;  ///< pre is read
  const void* product = nullptr;
  const void* bias = nullptr;  ///< null: none; never with a gradient
  void* pre = nullptr;
  void* c = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t product_stride = 0, pre_stride = 0, c_stride = 0;
};

/// Throws std::logic_error for another type.
void launch_gelu_epilogue(const GeluEpilogueArgs& args, cudaStream_t stream);

/// dz[i, j] = product[i, j] gelu'(pre[i, j]), rounded once, and sums of the rounded dz over the rows of each part.
/// product [rows, columns] in f32 (f64 with f64 data), pre and dz in the type `data`. dz may be product where both have
/// one type.
struct GeluBiasGradientArgs {
  Element data = Element::f32;
  bool tanh = true;  ///< which form of GELU; else erf
  const void* product = nullptr;
  const void* pre = nullptr;
  void* dz = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t product_stride = 0, pre_stride = 0, dz_stride = 0;
  void* partial = nullptr;  ///< [parts, columns] in f32 (f64 with f64 data), for launch_partial_sum()
  std::int64_t parts = 1;   ///< column_sum_parts()
};

void launch_gelu_bias_gradient(const GeluBiasGradientArgs& args, cudaStream_t stream);

// Sums over rows, in two launches: blocks sum some rows each into scratch memory, then the parts are added in order.

/// y[g, j] = sum of x[i, j] over the g-th of `sums` equal shares of the rows. x [rows, columns] of type `from`, y
/// [sums, columns] of type `to`. f64 sums in f64, and only f64
/// from f64.
struct ColumnSumArgs {
  Element from = Element::f32;
  Element to = Element::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t rows = 0, columns = 0, stride = 0;
  std::int64_t sums = 1, y_stride = 0;
  void* partial = nullptr;  ///< scratch: [parts, columns] in f32 (f64 for f64)
  std::int64_t parts = 1;   ///< column_sum_parts(); of several sums, as many as there are
};

[[nodiscard]] std::int64_t column_sum_parts(std::int64_t rows, std::int64_t columns, int multiprocessors);

void launch_column_sum(const ColumnSumArgs& args, cudaStream_t stream);

/// y[j] = sum over parts of partial[part, j] for j < columns; the first `split` of them go to y, the others to y_rest.
/// `to` as above; partial is f64 when `to` is.
struct PartialSumArgs {
  Element to = Element::f32;
  const void* partial = nullptr;
  std::int64_t parts = 1, columns = 0;
  std::int64_t split = 0;
  void* y = nullptr;
  void* y_rest = nullptr;
  std::int64_t row_columns = 0, row_gap = 0;  ///< where y is rows: of how many columns each, and what lies between them
};

void launch_partial_sum(const PartialSumArgs& args, cudaStream_t stream);

// The scales of block-scaled operands as matrix units read them.

/// One operand's scales, a byte each: dense rows of `columns`, and tiles of 128 rows by 4 columns, one behind the
/// other, row by row of tiles. In a tile the scale at (row, column) is byte 16 (row % 32) + 4 (row / 32) + column;
/// beyond the ends there are zeros. NVIDIA, cuBLAS Library, "1D Block Scaling Factors Layout".
struct ScaleTiles {
  const std::uint8_t* scales = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::uint8_t* tiles = nullptr;  ///< scale_tile_bytes(), at a multiple of 16
};
[[nodiscard]] inline std::int64_t scale_tile_bytes(const ScaleTiles& of) {
  return (of.rows + 127) / 128 * ((of.columns + 3) / 4) * 512;
}

/// Tiles of both operands, and where `factors` is not null, {alpha scale_a scale_b, beta} for the product.
struct TileScalesArgs {
  ScaleTiles a, b;
  float alpha = 1.0F, beta = 0.0F;
  const float *scale_a = nullptr, *scale_b = nullptr;
  float* factors = nullptr;
};
void launch_tile_scales(const TileScalesArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
