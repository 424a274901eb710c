// Walking over rows in packs: which row and column a pack is.
#pragma once

#include "reference/cuda/kernels/device.cuh"

namespace gpubench::cuda {

/// Where a pack begins. One row needs no division.
struct PackPlace {
  std::int64_t row, column;
};

/// The place of pack number `pack` of rows with `packs_per_row` packs of n elements each.
__device__ __forceinline__ PackPlace place_of(std::int64_t pack, std::int64_t packs_per_row, std::int64_t rows, int n) {
  if (rows == 1) return {0, pack * n};
  if (pack <= 0xFFFFFFFF && packs_per_row <= 0xFFFFFFFF) {
    const unsigned row = static_cast<unsigned>(pack) / static_cast<unsigned>(packs_per_row);
    return {row, (pack - row * packs_per_row) * n};
  }
  const std::int64_t row = pack / packs_per_row;
  return {row, (pack - row * packs_per_row) * n};
}

}  // namespace gpubench::cuda
