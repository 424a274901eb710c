#include "reference/cpu/own_products.h"

#include <algorithm>
#include <array>

#include "reference/cpu/parallel.h"
#include "reference/cpu/vector_targets.h"
#include "reference/ops/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/gemm_f64.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

// A panel of b, [depth][panel_columns], stays in the L1 cache, block_rows rows of a in the L2 cache.
#ifndef GPUBENCH_GEMM_F64_BLOCKS
#define GPUBENCH_GEMM_F64_BLOCKS
namespace gpubench::cpu {
inline constexpr std::int64_t f64_depth = 256, f64_panel_columns = 16, f64_block_rows = 96;
}  // namespace gpubench::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::CappedTag<double, 8>;
constexpr std::int64_t lane_count = hn::MaxLanes(Doubles());

// As in block_matmul.cpp.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int tile_rows = 8;
#else
constexpr int tile_rows = 6;
#endif
static_assert(f64_block_rows % tile_rows == 0 && f64_panel_columns % (2 * lane_count) == 0);

// sums [f64_block_rows][f64_panel_columns] = a [f64_block_rows][f64_depth] times a panel, over `depth` products.
void MultiplyPanel(const double* a, const double* panel, std::int64_t depth, double* sums) {
  const Doubles doubles;
  for (std::int64_t column = 0; column < f64_panel_columns; column += 2 * lane_count) {
    for (std::int64_t first = 0; first < f64_block_rows; first += tile_rows) {
      hn::Vec<Doubles> tile[tile_rows][2];
      for (auto& row : tile) row[0] = row[1] = hn::Zero(doubles);
      for (std::int64_t i = 0; i < depth; ++i) {
        const double* b = panel + i * f64_panel_columns + column;
        const auto left = hn::LoadU(doubles, b), right = hn::LoadU(doubles, b + lane_count);
        for (int row = 0; row < tile_rows; ++row) {
          const auto factor = hn::Set(doubles, a[(first + row) * f64_depth + i]);
          tile[row][0] = hn::MulAdd(factor, left, tile[row][0]);
          tile[row][1] = hn::MulAdd(factor, right, tile[row][1]);
        }
      }
      for (int row = 0; row < tile_rows; ++row) {
        double* to = sums + (first + row) * f64_panel_columns + column;
        hn::StoreU(tile[row][0], doubles, to);
        hn::StoreU(tile[row][1], doubles, to + lane_count);
      }
    }
  }
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {
namespace {

HWY_EXPORT(MultiplyPanel);

struct Matrix {
  double* data = nullptr;
  std::int64_t batch_stride = 0, row_stride = 0, column_stride = 0;
  [[nodiscard]] double& at(std::int64_t row, std::int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }
  [[nodiscard]] Matrix of_batch(std::int64_t batch) const {
    return {data + batch * batch_stride, 0, row_stride, column_stride};
  }
};

Matrix matrix_of(const MemoryShape& shape) {
  const std::size_t rank = shape.strides.size();
  return {nullptr, rank == 3 ? shape.strides[0] : 0, shape.strides[rank - 2], shape.strides[rank - 1]};
}

struct GemmF64 {
  int threads = 1;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  double alpha = 1.0, beta = 0.0;
  Matrix a, b, c;
  const double* bias = nullptr;
  double *panels = nullptr, *blocks = nullptr;

  std::size_t place(std::byte* workspace) {
    Arena arena(workspace);
    panels = arena.take<double>((n + f64_panel_columns - 1) / f64_panel_columns * f64_panel_columns * f64_depth);
    blocks = arena.take<double>(threads * f64_block_rows * f64_depth);
    return arena.used();
  }

  void operator()() const {
    for (std::int64_t i = 0; i < batch; ++i) multiply(a.of_batch(i), b.of_batch(i), c.of_batch(i));
  }

  void multiply(const Matrix& from_a, const Matrix& from_b, const Matrix& to) const {
    for (std::int64_t first = 0; first < std::max<std::int64_t>(k, 1); first += f64_depth) {
      const std::int64_t depth = std::min(f64_depth, k - first);
      parallel_chunks(threads, n, f64_panel_columns, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t column = begin; column < end; column += f64_panel_columns)
          pack_panel(from_b, first, depth, column);
      });
      const std::int64_t rows = (m + f64_block_rows - 1) / f64_block_rows;
      parallel_parts(threads, rows, 1, [&](std::int64_t part, const Chunk& chunk) {
        double* block = blocks + part * f64_block_rows * f64_depth;
        for (std::int64_t row = chunk.begin; row < chunk.end; ++row)
          multiply_rows(from_a, first, depth, row * f64_block_rows, block, to);
      });
    }
  }

  void pack_panel(const Matrix& from, std::int64_t first, std::int64_t depth, std::int64_t column) const {
    double* panel = panels + column * f64_depth;
    const std::int64_t width = std::min(f64_panel_columns, n - column);
    for (std::int64_t i = 0; i < depth; ++i, panel += f64_panel_columns) {
      for (std::int64_t j = 0; j < width; ++j) panel[j] = from.at(first + i, column + j);
      std::fill(panel + width, panel + f64_panel_columns, 0.0);
    }
  }

  void multiply_rows(const Matrix& from, std::int64_t first, std::int64_t depth, std::int64_t row, double* block,
                     const Matrix& to) const {
    const std::int64_t height = std::min(f64_block_rows, m - row);
    for (std::int64_t i = 0; i < height; ++i) {
      for (std::int64_t p = 0; p < depth; ++p) block[i * f64_depth + p] = from.at(row + i, first + p);
    }
    std::fill(block + height * f64_depth, block + f64_block_rows * f64_depth, 0.0);
    std::array<double, f64_block_rows * f64_panel_columns> sums;
    for (std::int64_t column = 0; column < n; column += f64_panel_columns) {
      HWY_DYNAMIC_DISPATCH(MultiplyPanel)(block, panels + column * f64_depth, depth, sums.data());
      const std::int64_t width = std::min(f64_panel_columns, n - column);
      for (std::int64_t i = 0; i < height; ++i) {
        const double* of_row = sums.data() + i * f64_panel_columns;
        for (std::int64_t j = 0; j < width; ++j) {
          double& result = to.at(row + i, column + j);
          const double before = first > 0 ? result : beta == 0.0 ? 0.0 : beta * result;
          const double added = first == 0 && bias != nullptr ? bias[column + j] : 0.0;
          result = before + alpha * of_row[j] + added;
        }
      }
    }
  }
};

}  // namespace

Plan plan_gemm_f64(const OpCall& call, const MatmulRequest& request, int threads) {
  GemmF64 work;
  work.threads = threads;
  work.batch = request.c.extents.size() == 3 ? request.c.extents[0] : 1;
  work.m = *(request.c.extents.end() - 2);
  work.n = request.c.extents.back();
  work.k = request.a.extents.back();
  work.alpha = call.attributes.as<Gemm>().alpha;
  work.beta = call.attributes.as<Gemm>().beta;
  work.a = matrix_of(request.a);
  work.b = matrix_of(request.b);
  work.c = matrix_of(request.c);
  return plan_of(own_implementation(), work.place(nullptr),
                 [work, call](std::span<const Tensor> bound, Workspace workspace) {
                   const Named<Tensor> at(call, bound);
                   GemmF64 placed = work;
                   placed.a.data = elements_of<double>(at["a"]);
                   placed.b.data = elements_of<double>(at["b"]);
                   placed.c.data = elements_of<double>(at["c"]);
                   if (const Tensor* bias = at.find("bias")) placed.bias = elements_of<const double>(*bias);
                   (void)placed.place(workspace.data);
                   return placed;
                 });
}

}  // namespace gpubench::cpu
#endif
