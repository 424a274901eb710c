// The scales of block-scaled operands as matrix units read them, as a launch. Meaning: reference/ops/gemm.h, blocks.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

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
