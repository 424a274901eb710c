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

constexpr std::size_t most_inputs = 3;
constexpr std::size_t most_outputs = 2;

/// Bound pointwise work. Views are those of the inputs, then of the outputs.
struct Pointwise {
  PointwiseKernel kernel{};
  float factor = 0.0F;
  int threads = 1;
  std::size_t inputs = 1, outputs = 1;
  std::array<RowView, most_inputs + most_outputs> views;
  std::array<Source, most_inputs> x;
  std::array<Sink, most_outputs> y;
  bool inputs_staged = false, outputs_staged = false;

  void operator()() const {
    parallel_chunks(threads, views[inputs].elements(), element_grain,
                    [this](std::int64_t begin, std::int64_t end) { run_chunk(begin, end); });
  }

  void run_chunk(std::int64_t begin, std::int64_t end) const {
    const std::int64_t columns = views[inputs].columns;
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
    std::array<BlockBuffer, most_inputs> x_buffers;
    std::array<BlockBuffer, most_outputs> y_buffers;
    std::array<const float*, most_inputs> from{};
    std::array<float*, most_outputs> to{};
    const auto first = [&](std::size_t view) { return row * views[view].stride + column; };
    if (kernel.streaming != nullptr && !inputs_staged && y[0].streams_f32()) {
      for (std::size_t k = 0; k < inputs; ++k) from[k] = x[k].read(first(k), count, x_buffers[k]);
      kernel.streaming(from[0], from[1], factor, count, y[0].where(first(inputs)));
      return;
    }
    const std::int64_t step = inputs_staged || outputs_staged ? block_elements : count;
    for (std::int64_t done = 0; done < count; done += step) {
      const std::int64_t size = std::min(step, count - done);
      const std::int64_t ahead = std::clamp<std::int64_t>(count - done - prefetch_elements, 0, size);
      for (std::size_t k = 0; k < inputs; ++k) x[k].prefetch(first(k) + done + prefetch_elements, ahead);
      for (std::size_t j = 0; j < outputs; ++j) to[j] = y[j].place(first(inputs + j) + done, y_buffers[j]);
      for (std::size_t k = 0; k < inputs; ++k) from[k] = x[k].read(first(k) + done, size, x_buffers[k]);
      kernel.block(from.data(), factor, size, to.data());
      for (std::size_t j = 0; j < outputs; ++j) y[j].commit(first(inputs + j) + done, size, to[j]);
    }
  }
};

}  // namespace

Plan pointwise_plan(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context,
                    const PointwiseKernel& kernel, float factor) {
  Pointwise work;
  work.kernel = kernel;
  work.factor = factor;
  work.threads = context.threads;
  work.inputs = call.inputs.size();
  work.outputs = call.outputs.size();
  const bool one_run = share_one_run(tensors);
  std::int64_t output_bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    expect_f32_or_bf16(call, tensors[i]);
    const std::int64_t elements = tensors[i].shape.elements();
    work.views[i] = one_run ? RowView{1, elements, elements} : rows_of(call, tensors[i]);
    if (i >= work.inputs) output_bytes += tensors[i].bytes();
  }
  return plan_of(own_implementation(), 0,
                 [work, streaming = worth_streaming(output_bytes)](std::span<const Tensor> bound, Workspace) {
                   Pointwise result = work;
                   for (std::size_t k = 0; k < work.inputs; ++k) {
                     result.x[k] = Source(bound[k]);
                     result.inputs_staged = result.inputs_staged || result.x[k].staged();
                   }
                   for (std::size_t j = 0; j < work.outputs; ++j) {
                     const Tensor& y = bound[work.inputs + j];
                     // What is updated in place was just read: it is in the cache, and streaming would throw it out.
                     const auto reads = bound.first(work.inputs);
                     const bool in_place = std::any_of(reads.begin(), reads.end(),
                                                       [&y](const Tensor& read) { return read.data == y.data; });
                     result.y[j] = Sink(y, streaming && !in_place);
                     result.outputs_staged = result.outputs_staged || result.y[j].staged();
                   }
                   return result;
                 });
}

}  // namespace gpubench::cpu
