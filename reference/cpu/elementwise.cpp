#include "reference/cpu/elementwise.h"

#include <cstring>

#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/pointwise.h"
#include "reference/cpu/row_view.h"
#include "reference/cpu/stream_store.h"
#include "reference/cpu/vector_clones.h"
#include "reference/ops/elementwise.h"

namespace gpubench::cpu {
namespace {

GPUBENCH_VECTOR_CLONES
void triad_block(const float* b, const float* c, float factor, std::int64_t count, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = b[i] + factor * c[i];
}

GPUBENCH_VECTOR_CLONES
void scale_array(const float* x, const float* /*none*/, float factor, std::int64_t count, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = factor * x[i];
}

GPUBENCH_VECTOR_CLONES
void add_arrays(const float* a, const float* b, float /*none*/, std::int64_t count, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

// The rounding happens where the sink narrows.
void cast_block(const float* x, const float* /*none*/, float /*none*/, std::int64_t count, float* y) {
  std::memcpy(y, x, static_cast<std::size_t>(count) * sizeof(float));
}

void move_bytes(std::byte* to, const std::byte* from, std::int64_t bytes, bool streaming) {
  if (streaming) {
    stream_store(to, from, static_cast<std::size_t>(bytes));
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace

Plan plan_copy(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const std::int64_t elements = tensors[0].shape.elements();
  const bool one_run = share_one_run(tensors);
  const RowView from = one_run ? RowView{1, elements, elements} : rows_of(call, tensors[0]);
  const RowView to = one_run ? from : rows_of(call, tensors[1]);
  const auto size = static_cast<std::int64_t>(size_of(tensors[0].dtype));
  const bool streaming = worth_streaming(tensors[1].bytes());
  return plan_of(own_implementation(), 0, [=, threads = context.threads](std::span<const Tensor> bound, Workspace) {
    const std::byte* x = bound[0].data;
    std::byte* y = bound[1].data;
    return [=] {
      if (one_run) {
        parallel_chunks(threads, elements * size, element_grain * 4, [=](std::int64_t begin, std::int64_t end) {
          move_bytes(y + begin, x + begin, end - begin, streaming);
          stream_fence();
        });
        return;
      }
      parallel_chunks(threads, to.rows, row_grain(to.columns), [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          move_bytes(y + row * to.stride * size, x + row * from.stride * size, to.columns * size, streaming);
        }
        stream_fence();
      });
    };
  });
}

Plan plan_triad(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const auto factor = static_cast<float>(call.attributes.as<Triad>().factor);
  return plan_pointwise(call, tensors, context, {triad_block, stream_triad}, factor);
}

Plan plan_scale(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const auto factor = static_cast<float>(call.attributes.as<Scale>().factor);
  return plan_pointwise(call, tensors, context, {scale_array}, factor);
}

Plan plan_add(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return plan_pointwise(call, tensors, context, {add_arrays});
}

Plan plan_cast(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return plan_pointwise(call, tensors, context, {cast_block});
}

}  // namespace gpubench::cpu
