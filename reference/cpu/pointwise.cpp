#include "reference/cpu/pointwise.h"

#include <algorithm>
#include <array>

#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/row_view.h"
#include "reference/cpu/stream_store.h"

namespace gpubench::cpu {
namespace {

/// How far ahead inputs are asked for. While a block is worked on in the cache, the processor's own prefetching
/// starves.
constexpr std::int64_t prefetch_elements = 4 * block_elements;

/// Bound pointwise work. Views and sources are a, b, and y last; without b, it repeats a.
struct Pointwise {
  PointwiseKernel kernel{};
  float factor = 0.0F;
  int threads = 1;
  std::array<RowView, 3> views;
  Source a, b;
  Sink y;
  bool has_b = false;

  void operator()() const {
    parallel_chunks(threads, views[2].elements(), element_grain,
                    [this](std::int64_t begin, std::int64_t end) { run_chunk(begin, end); });
  }

  void run_chunk(std::int64_t begin, std::int64_t end) const {
    const std::int64_t columns = views[2].columns;
    while (begin < end) {
      const std::int64_t row = begin / columns;
      const std::int64_t column = begin % columns;
      const std::int64_t count = std::min(columns - column, end - begin);
      run_row(row, column, count);
      begin += count;
    }
    stream_fence();
  }

  void run_row(std::int64_t row, std::int64_t column, std::int64_t count) const {
    BlockBuffer a_buffer;
    BlockBuffer b_buffer;
    BlockBuffer y_buffer;
    const std::int64_t a_first = row * views[0].stride + column;
    const std::int64_t b_first = row * views[1].stride + column;
    const std::int64_t y_first = row * views[2].stride + column;
    const bool inputs_staged = a.staged() || (has_b && b.staged());
    if (kernel.streaming != nullptr && !inputs_staged && y.streams_f32()) {
      const float* b_run = has_b ? b.read(b_first, count, b_buffer) : nullptr;
      kernel.streaming(a.read(a_first, count, a_buffer), b_run, factor, count, y.where(y_first));
      return;
    }
    const std::int64_t step = inputs_staged || y.staged() ? block_elements : count;
    for (std::int64_t done = 0; done < count; done += step) {
      const std::int64_t size = std::min(step, count - done);
      const std::int64_t ahead = std::clamp<std::int64_t>(count - done - prefetch_elements, 0, size);
      a.prefetch(a_first + done + prefetch_elements, ahead);
      if (has_b) b.prefetch(b_first + done + prefetch_elements, ahead);
      float* block = y.place(y_first + done, y_buffer);
      const float* a_block = a.read(a_first + done, size, a_buffer);
      const float* b_block = has_b ? b.read(b_first + done, size, b_buffer) : nullptr;
      kernel.block(a_block, b_block, factor, size, block);
      y.commit(y_first + done, size, block);
    }
  }
};

}  // namespace

Plan plan_pointwise(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context,
                    const PointwiseKernel& kernel, float factor) {
  Pointwise work;
  work.kernel = kernel;
  work.factor = factor;
  work.threads = context.threads;
  work.has_b = tensors.size() == 3;
  const bool one_run = share_one_run(tensors);
  for (std::size_t i = 0; i < 3; ++i) {
    const TensorSpec& tensor = i == 2 ? tensors.back() : tensors[work.has_b ? i : 0];
    expect_f32_or_bf16(call, tensor);
    const std::int64_t elements = tensor.shape.elements();
    work.views[i] = one_run ? RowView{1, elements, elements} : rows_of(call, tensor);
  }
  const bool streaming = worth_streaming(tensors.back().bytes());
  return plan_of(own_implementation(), 0, [work, streaming](std::span<const Tensor> bound, Workspace) {
    Pointwise result = work;
    result.a = Source(bound.front());
    if (work.has_b) result.b = Source(bound[1]);
    // What is updated in place was just read: it is in the cache, and streaming would throw it out first.
    const std::byte* y = bound.back().data;
    const bool in_place = y == bound[0].data || (work.has_b && y == bound[1].data);
    result.y = Sink(bound.back(), streaming && !in_place);
    return result;
  });
}

}  // namespace gpubench::cpu
