#include "reference/cpu/collective_work.h"

#include <algorithm>
#include <cstring>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/stream_store.h"
#include "reference/cpu/vector_clones.h"

namespace gpubench::cpu {
namespace {

/// Large enough to be worth a thread, and whole cache lines of every type.
constexpr std::int64_t copy_grain_bytes = 64 << 10;
constexpr std::int64_t reduce_grain = 16 << 10;

GPUBENCH_VECTOR_CLONES
void add_run(const float* x, std::int64_t count, float* sum) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sum[i] += x[i];
}

GPUBENCH_VECTOR_CLONES
void maximum_run(const float* x, std::int64_t count, float* largest) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    largest[i] = x[i] > largest[i] || x[i] != x[i] ? x[i] : largest[i];  // NaN comes through, and stays
  }
}

GPUBENCH_VECTOR_CLONES
void divide_run(float divisor, std::int64_t count, float* values) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) values[i] /= divisor;
}

// One block of at most block_elements: adds up in f32 and rounds once, to every target the same bits.
void reduce_block(const ReduceTask& task, bool streaming, std::int64_t first, std::int64_t count) {
  const auto size = static_cast<std::int64_t>(size_of(task.type));
  BlockBuffer sum;
  BlockBuffer widened;
  const auto read = [&](std::size_t peer, float* to) {
    const std::byte* from = task.from[peer] + first * size;
    if (task.type == DType::bf16) {
      widen_run(reinterpret_cast<const bf16*>(from), count, to);
    } else {
      std::memcpy(to, from, static_cast<std::size_t>(count * size));
    }
  };
  read(0, sum.values.data());
  for (std::size_t peer = 1; peer < task.from.size(); ++peer) {
    const float* x = reinterpret_cast<const float*>(task.from[peer] + first * size);
    if (task.type == DType::bf16) {
      read(peer, widened.values.data());
      x = widened.values.data();
    }
    (task.reduction == Reduction::maximum ? maximum_run : add_run)(x, count, sum.values.data());
  }
  if (task.reduction == Reduction::average) divide_run(static_cast<float>(task.from.size()), count, sum.values.data());
  alignas(64) bf16 narrowed[block_elements];
  const auto* result = reinterpret_cast<const std::byte*>(sum.values.data());
  if (task.type == DType::bf16) {
    narrow_run(sum.values.data(), count, narrowed);
    result = reinterpret_cast<const std::byte*>(narrowed);
  }
  for (std::byte* target : task.to) {
    if (streaming) {
      stream_store(target + first * size, result, static_cast<std::size_t>(count * size));
    } else {
      std::memcpy(target + first * size, result, static_cast<std::size_t>(count * size));
    }
  }
}

void run_reduction(const ReduceTask& task, bool streaming, int threads) {
  parallel_chunks(threads, task.count, reduce_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += block_elements)
      reduce_block(task, streaming, first, std::min<std::int64_t>(block_elements, end - first));
    stream_fence();
  });
}

void run_copy(const CopyTask& task, bool streaming, int threads) {
  parallel_chunks(threads, task.bytes, copy_grain_bytes, [&](std::int64_t begin, std::int64_t end) {
    if (streaming) {
      stream_store(task.to + begin, task.from + begin, static_cast<std::size_t>(end - begin));
      stream_fence();
    } else {
      std::memcpy(task.to + begin, task.from + begin, static_cast<std::size_t>(end - begin));
    }
  });
}

}  // namespace

void expect_supported(const OpCall& call, std::span<const TensorSpec> tensors) {
  if (!is_collective(call.kind)) refuse(call, "its tensors lie on several ranks; expected one rank, or a collective");
  for (const TensorSpec& tensor : tensors) {
    expect_row_major(call, tensor);
    if (reduces(call.kind) && tensor.dtype != DType::f32 && tensor.dtype != DType::bf16)
      refuse(call, "reductions of " + std::string(name(tensor.dtype)) + "; this backend has f32 and bf16");
  }
}

std::vector<RankWork> work_of(const OpCall& call, std::span<const Tensor> tensors) {
  std::int64_t written = 0;
  for (const Tensor& y : tensors.subspan(call.inputs.size())) written += y.spec.bytes();
  const bool streaming = worth_streaming(written);
  std::vector<RankWork> work;
  for (RankTasks& tasks : tasks_of(call, tensors)) work.push_back({std::move(tasks), streaming});
  return work;
}

void run_work(const RankWork& work, int threads) {
  for (const ReduceTask& task : work.tasks.reductions) run_reduction(task, work.streaming, threads);
  for (const CopyTask& task : work.tasks.copies) run_copy(task, work.streaming, threads);
}

}  // namespace gpubench::cpu
