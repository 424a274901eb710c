#include "reference/cpu/own_products.h"

#include <algorithm>

#include "reference/cpu/attention.h"
#include "reference/cpu/block_matmul.h"
#include "reference/cpu/parallel.h"

namespace gpubench::cpu {
namespace {

// Sums of a task (f32), and the part of a read at a time, fit in the L2 cache: 256 and 128 KiB.
constexpr std::int64_t task_rows = 128;
constexpr std::int64_t task_columns = 512;
constexpr std::int64_t task_depth = 512;
constexpr std::int64_t sums_stride = task_columns + 16;  // spreads rows over the sets of the L1 cache

/// A stored matrix; `transposed`: its rows are those of the transpose.
struct StoredMatrix {
  std::int64_t stride = 0;
  bool transposed = false;
};

struct BlockGemm {
  int threads = 1;
  std::int64_t m = 0, n = 0, k = 0;
  StoredMatrix a_stored, b_stored;
  std::int64_t c_stride = 0;
  bool c_is_bf16 = true;
  const bf16 *a = nullptr, *b = nullptr;
  std::byte* c = nullptr;
  bf16 *packed_b = nullptr, *rows_of_a = nullptr;
  float* sums = nullptr;

  std::size_t place(std::byte* workspace) {
    Arena arena(workspace);
    packed_b = arena.take<bf16>(n * k);
    rows_of_a = a_stored.transposed ? arena.take<bf16>(m * k) : nullptr;
    sums = arena.take<float>(threads * task_rows * sums_stride);
    return arena.used();
  }

  void operator()() const {
    const Rows<const bf16> from_a{a, a_stored.stride}, from_b{b, b_stored.stride};
    parallel_chunks(threads, n, block_grain, [&](std::int64_t begin, std::int64_t end) {
      if (b_stored.transposed) {
        pack_transposed(from_b.from(begin), k, end - begin, packed_b + begin * k);
      } else {
        pack(from_b.from(0, begin), k, end - begin, packed_b + begin * k);
      }
    });
    if (a_stored.transposed) {
      parallel_chunks(threads, m, block_grain, [&](std::int64_t begin, std::int64_t end) {
        transpose(from_a.from(0, begin), k, end - begin, {rows_of_a + begin * k, k});
      });
    }
    const Rows<const bf16> rows = a_stored.transposed ? Rows<const bf16>{rows_of_a, k} : from_a;
    const std::int64_t across = (n + task_columns - 1) / task_columns;
    const std::int64_t tasks = (m + task_rows - 1) / task_rows * across;
    parallel_parts(threads, tasks, 1, [&](std::int64_t part, const Chunk& chunk) {
      const BlockMatmulScope scope;
      for (std::int64_t task = chunk.begin; task < chunk.end; ++task)
        run_task(rows, task / across * task_rows, task % across * task_columns,
                 {sums + part * task_rows * sums_stride, sums_stride});
    });
  }

  void run_task(Rows<const bf16> rows, std::int64_t row, std::int64_t column, Rows<float> block) const {
    const std::int64_t height = std::min(task_rows, m - row), width = std::min(task_columns, n - column);
    for (std::int64_t p = 0; p < k; p += task_depth) {
      multiply({height, width, std::min(task_depth, k - p), k}, rows.from(row, p),
               packed_b + column * k + p * block_grain, block, p > 0);
    }
    const std::int64_t first = row * c_stride + column;
    if (c_is_bf16) {
      round_block(block, height, width, {reinterpret_cast<bf16*>(c) + first, c_stride});
    } else {
      store_rows(block, height, width, Rows<float>{reinterpret_cast<float*>(c) + first, c_stride});
    }
  }
};

/// Empty unless the matrix consists of whole blocks, in dense rows with an even number of elements.
std::optional<StoredMatrix> stored(const MemoryShape& matrix) {
  if (matrix.extents.size() != 2 || matrix.extents[0] % block_grain != 0 || matrix.extents[1] % block_grain != 0)
    return std::nullopt;
  const bool transposed = matrix.strides[1] != 1;
  if (transposed && matrix.strides[0] != 1) return std::nullopt;
  const std::int64_t stride = matrix.strides[transposed ? 1 : 0];
  if (stride % 2 != 0) return std::nullopt;
  return StoredMatrix{stride, transposed};
}

}  // namespace

std::optional<Plan> plan_block_gemm(const OpCall& call, const MatmulRequest& request, int threads) {
  const std::optional<StoredMatrix> a = stored(request.a), b = stored(request.b), c = stored(request.c);
  const bool is_plain = !request.bias && !request.scaled && request.alpha == 1.0F && request.beta == 0.0F;
  if (!amx::has_amx() || !is_plain || !a || !b || !c || c->transposed || request.a.dtype != DType::bf16 ||
      request.b.dtype != DType::bf16) {
    return std::nullopt;
  }
  BlockGemm work;
  work.threads = threads;
  work.m = request.c.extents[0];
  work.n = request.c.extents[1];
  work.k = request.a.extents[1];
  work.a_stored = *a;
  work.b_stored = *b;
  work.c_stride = c->stride;
  work.c_is_bf16 = request.c.dtype == DType::bf16;
  return plan_of(block_matmul_implementation(true), work.place(nullptr),
                 [work, call](std::span<const Tensor> bound, Workspace workspace) {
                   const Named<Tensor> at(call, bound);
                   BlockGemm placed = work;
                   placed.a = elements_of<const bf16>(at["a"]);
                   placed.b = elements_of<const bf16>(at["b"]);
                   placed.c = at["c"].data;
                   (void)placed.place(workspace.data);
                   return placed;
                 });
}

}  // namespace gpubench::cpu
