// Launches around matrix products: grouped products, GELU epilogues, sums over rows, block scales.
// Meaning: gemm.h, bias_gradient.h and grouped_gemm.h in reference/ops.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

// Products of groups of rows whose sizes are in device memory; row-major.

/// Sums are f32 (f64 for f64 data); c has the data's type or f32.
struct GroupedGemmArgs {
  Element data = Element::f32, result = Element::f32;
  bool transpose_b = false;  ///< forward only: b is [groups, n, k]
  std::int64_t rows = 0, groups = 0;
  std::int64_t k = 0, n = 0;  ///< forward: a [rows, k], c [rows, n]; weight: a [rows, k], b [rows, n], c [groups, k, n]
  const void *a = nullptr, *b = nullptr;
  const int* sizes = nullptr;
  void* c = nullptr;
};

void launch_grouped_gemm(const GroupedGemmArgs& args, cudaStream_t stream);
void launch_grouped_gemm_backward_weight(const GroupedGemmArgs& args, cudaStream_t stream);

// GELU or its derivative after an unrounded product: bias, function and rounding in one pass; or derivative and bias
// gradient, so that the product is read once.

/// forward: z = product + bias, pre = z and c = gelu(z), each rounded once. gradient: c = product gelu'(pre).
/// product [rows, columns] in f32; bias [columns], pre and c [rows, columns] in `data`: f16 or bf16.
struct GeluEpilogueArgs {
  Element data = Element::bf16;
  bool tanh = true;       ///< GELU's form; else erf
  bool gradient = false;  ///< reads pre
  const void* product = nullptr;
  const void* bias = nullptr;  ///< null: none; null for a gradient
  void* pre = nullptr;
  void* c = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t product_stride = 0, pre_stride = 0, c_stride = 0;
};

/// Throws std::logic_error for other types.
void launch_gelu_epilogue(const GeluEpilogueArgs& args, cudaStream_t stream);

/// dz[i, j] = product[i, j] gelu'(pre[i, j]), rounded once, and sums of the rounded dz over the rows of each part.
/// product [rows, columns] in f32 (f64 for f64 data), pre and dz in `data`. dz may be product if both have one type.
struct GeluBiasGradientArgs {
  Element data = Element::f32;
  bool tanh = true;  ///< GELU's form; else erf
  const void* product = nullptr;
  const void* pre = nullptr;
  void* dz = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t product_stride = 0, pre_stride = 0, dz_stride = 0;
  void* partial = nullptr;  ///< [parts, columns] in f32 (f64 for f64 data), input of launch_partial_sum()
  std::int64_t parts = 1;   ///< column_sum_parts()
};

void launch_gelu_bias_gradient(const GeluBiasGradientArgs& args, cudaStream_t stream);

// Sums over rows in two launches: blocks sum parts of the rows into scratch memory; the parts are added in order.

/// y[g, j] = sum of x[i, j] over share g of the rows, cut into `sums` equal shares.
/// x [rows, columns] of type `from`, y [sums, columns] of type `to`. f64 sums for f64 x only.
struct ColumnSumArgs {
  Element from = Element::f32;
  Element to = Element::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t rows = 0, columns = 0, stride = 0;
  std::int64_t sums = 1, y_stride = 0;
  void* partial = nullptr;  ///< scratch: [parts, columns] in f32 (f64 for f64)
  std::int64_t parts = 1;   ///< column_sum_parts(); with several sums, their number
};

[[nodiscard]] std::int64_t column_sum_parts(std::int64_t rows, std::int64_t columns, int multiprocessors);

void launch_column_sum(const ColumnSumArgs& args, cudaStream_t stream);

/// y[j] = sum over parts of partial[part, j] for j < columns; the first `split` go to y, the others to y_rest. `to` as
/// above; partial is f64 if `to` is.
struct PartialSumArgs {
  Element to = Element::f32;
  const void* partial = nullptr;
  std::int64_t parts = 1, columns = 0;
  std::int64_t split = 0;
  void* y = nullptr;
  void* y_rest = nullptr;
  std::int64_t row_columns = 0, row_gap = 0;  ///< y in rows of row_columns columns each, row_gap apart
};

void launch_partial_sum(const PartialSumArgs& args, cudaStream_t stream);

// Block scales in the layout of matrix units.

/// An operand's scales, one byte each: in dense rows of `columns`, and in consecutive tiles of 128 rows by 4 columns,
/// row by row of tiles. In a tile, scale (row, column) is byte 16 (row % 32) + 4 (row / 32) + column; zeros beyond the
/// ends.
/// Source: NVIDIA, cuBLAS Library, "1D Block Scaling Factors Layout".
struct ScaleTiles {
  const std::uint8_t* scales = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::uint8_t* tiles = nullptr;  ///< scale_tile_bytes() bytes, 16-byte aligned
};
[[nodiscard]] inline std::int64_t scale_tile_bytes(const ScaleTiles& of) {
  return (of.rows + 127) / 128 * ((of.columns + 3) / 4) * 512;
}

/// Tiles of both operands; if `factors` is not null, also {alpha scale_a scale_b, beta}.
struct TileScalesArgs {
  ScaleTiles a, b;
  float alpha = 1.0F, beta = 0.0F;
  const float *scale_a = nullptr, *scale_b = nullptr;
  float* factors = nullptr;
};
void launch_tile_scales(const TileScalesArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
