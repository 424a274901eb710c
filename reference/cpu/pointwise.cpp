// Ops that treat every element alike: one plan for all of them, and the arithmetic of each on a block.
#include <algorithm>
#include <array>
#include <cstring>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/pointwise_avx512.h"
#include "reference/cpu/vector_avx512.h"
#include "reference/cpu/vector_math.h"
#include "reference/ops/pointwise.h"

namespace gpubench::cpu {
namespace {

/// y[j][i] from all x[k][i], i < count: as many x as the op has inputs, as many y as it has outputs.
using BlockFunction = void (*)(const float* const* x, float factor, std::int64_t count, float* const* y);
/// Of an op of one output and one or two inputs (b is null for one).
using StreamFunction = void (*)(const float* a, const float* b, float factor, std::int64_t count, float* y);

struct PointwiseKernel {
  BlockFunction block;                 ///< marked GPUBENCH_VECTOR_CLONES
  StreamFunction streaming = nullptr;  ///< optional: stores around the caches itself (block_io.h), any alignment
  bool copies = false;                 ///< y is x: a block that is stored from a buffer can be stored from that of x
};

constexpr std::size_t most_inputs = 3;
constexpr std::size_t most_outputs = 2;

/// Bound pointwise work. Views are those of the inputs, then of the outputs.
struct Pointwise {
  PointwiseKernel kernel{};
  float factor = 0.0F;
  int threads = 1;
  std::size_t inputs = 1, outputs = 1;
  std::array<RowView, most_inputs + most_outputs> views;
  std::array<std::int64_t, most_inputs + most_outputs> repeats{1, 1, 1, 1, 1};  // rows of y that one of a view's is for
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
    const auto first = [&](std::size_t view) {
      return (repeats[view] == 1 ? row : row / repeats[view]) * views[view].stride + column;
    };
    if (kernel.streaming != nullptr && !inputs_staged && y[0].streams_f32()) {
      for (std::size_t k = 0; k < inputs; ++k) from[k] = x[k].read(first(k), count, x_buffers[k]);
      kernel.streaming(from[0], from[1], factor, count, y[0].where(first(inputs)));
      return;
    }
    const std::int64_t step = inputs_staged || outputs_staged ? block_elements : count;
    for (std::int64_t done = 0; done < count; done += step) {
      const std::int64_t size = std::min(step, count - done);
      for (std::size_t j = 0; j < outputs; ++j) to[j] = y[j].place(first(inputs + j) + done, y_buffers[j]);
      for (std::size_t k = 0; k < inputs; ++k) from[k] = x[k].read(first(k) + done, size, x_buffers[k]);
      const bool stored_as_read = kernel.copies && outputs_staged;
      if (!stored_as_read) kernel.block(from.data(), factor, size, to.data());
      for (std::size_t j = 0; j < outputs; ++j)
        y[j].commit(first(inputs + j) + done, size, stored_as_read ? from[j] : to[j]);
    }
  }
};

// The arithmetic of each op on a block of f32.

GPUBENCH_VECTOR_CLONES
void triad_block(const float* const* x, float factor, std::int64_t count, float* const* y) {
  const float *b = x[0], *c = x[1];
  float* sum = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sum[i] = b[i] + factor * c[i];
}

GPUBENCH_VECTOR_CLONES
void scale_block(const float* const* x, float factor, std::int64_t count, float* const* y) {
  const float* from = x[0];
  float* to = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = factor * from[i];
}

GPUBENCH_VECTOR_CLONES
void add_elements(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *a = x[0], *b = x[1];
  float* sum = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

GPUBENCH_VECTOR_CLONES
void multiply_elements(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *a = x[0], *b = x[1];
  float* product = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) product[i] = a[i] * b[i];
}

GPUBENCH_VECTOR_CLONES
void modulate_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *from = x[0], *scale = x[1], *shift = x[2];
  float* to = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] * (1.0F + scale[i]) + shift[i];
}

GPUBENCH_VECTOR_CLONES
void modulate_backward_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *dy = x[0], *scale = x[1];
  float* dx = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * (1.0F + scale[i]);
}

// The rounding happens where the sink narrows.
void cast_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  std::memcpy(y[0], x[0], static_cast<std::size_t>(count) * sizeof(float));
}

GPUBENCH_VECTOR_CLONES
void gelu_tanh_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float* from = x[0];
  float* to = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = vector_gelu_tanh(from[i]);
}

GPUBENCH_VECTOR_CLONES
void gelu_erf_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float* from = x[0];
  float* to = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = vector_gelu_erf(from[i]);
}

GPUBENCH_VECTOR_CLONES
void gelu_tanh_backward_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *from = x[0], *dy = x[1];
  float* dx = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * vector_gelu_tanh_derivative(from[i]);
}

GPUBENCH_VECTOR_CLONES
void gelu_erf_backward_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *from = x[0], *dy = x[1];
  float* dx = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * vector_gelu_erf_derivative(from[i]);
}

// A NaN spreads.
GPUBENCH_VECTOR_CLONES
void relu_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float* from = x[0];
  float* to = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] < 0.0F ? 0.0F : from[i];
}

GPUBENCH_VECTOR_CLONES
void relu_backward_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *made = x[0], *dy = x[1];
  float* dx = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = made[i] <= 0.0F ? 0.0F : dy[i];
}

/// s(x) and 1 - s(x) of the logistic function: the latter would cancel, and e overflows where s is 0.
struct Logistic {
  float value, rest;
  explicit Logistic(float x) {
    const float e = vector_exp(-x);
    value = 1.0F / (1.0F + e);
    rest = e > 1e30F ? 1.0F : e * value;
  }
};

GPUBENCH_VECTOR_CLONES
void silu_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float* from = x[0];
  float* to = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] / (1.0F + vector_exp(-from[i]));
}

GPUBENCH_VECTOR_CLONES
void silu_backward_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *from = x[0], *dy = x[1];
  float* dx = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const Logistic s(from[i]);
    dx[i] = dy[i] * (s.value * (1.0F + from[i] * s.rest));
  }
}

GPUBENCH_VECTOR_CLONES
void swiglu_forward_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *gate = x[0], *up = x[1];
  float* to = y[0];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = gate[i] / (1.0F + vector_exp(-gate[i])) * up[i];
}

GPUBENCH_VECTOR_CLONES
void swiglu_backward_block(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  const float *gate = x[0], *up = x[1], *dy = x[2];
  float *dgate = y[0], *dup = y[1];
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const Logistic s(gate[i]);
    const float gradient = dy[i];
    dgate[i] = gradient * up[i] * (s.value * (1.0F + gate[i] * s.rest));
    dup[i] = gradient * (gate[i] * s.value);
  }
}

/// That for AVX-512 where it may be used.
template <const avx512::PointwiseKernel* kernel>
PointwiseKernel fastest(BlockFunction portable) {
  if (!avx512::available()) return {portable};
  return {[](const float* const* x, float none, std::int64_t count, float* const* y) {
            kernel->plain(x[0], x[1], none, count, y[0]);
          },
          kernel->streaming};
}

PointwiseKernel kernel_of(const OpCall& call) {
  const auto gelu_is_tanh = [&call] { return call.attributes.as<Gelu>().form == GeluForm::tanh; };
  if (call.kind == add_kind) return {add_elements};
  if (call.kind == cast_kind) return {cast_block, nullptr, true};
  if (call.kind == gelu_backward_kind) {
    if (!gelu_is_tanh()) return {gelu_erf_backward_block};
    return fastest<&avx512::gelu_tanh_backward>(gelu_tanh_backward_block);
  }
  if (call.kind == gelu_forward_kind) {
    if (!gelu_is_tanh()) return {gelu_erf_block};
    return fastest<&avx512::gelu_tanh>(gelu_tanh_block);
  }
  if (call.kind == modulate_backward_kind) return {modulate_backward_block};
  if (call.kind == modulate_forward_kind) return {modulate_block};
  if (call.kind == multiply_kind) return {multiply_elements};
  if (call.kind == relu_backward_kind) return {relu_backward_block};
  if (call.kind == relu_forward_kind) return {relu_block};
  if (call.kind == scale_kind) return {scale_block};
  if (call.kind == silu_backward_kind) return fastest<&avx512::silu_backward>(silu_backward_block);
  if (call.kind == silu_forward_kind) return fastest<&avx512::silu>(silu_block);
  if (call.kind == swiglu_backward_kind) return {swiglu_backward_block};
  if (call.kind == swiglu_forward_kind) return fastest<&avx512::swiglu>(swiglu_forward_block);
  if (call.kind == triad_kind) return {triad_block, stream_triad};
  refuse(call, "there is no kernel for it");
}

}  // namespace

Plan plan_pointwise(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  Pointwise work;
  work.kernel = kernel_of(call);
  if (call.kind == scale_kind) work.factor = static_cast<float>(call.attributes.as<Scale>().factor);
  if (call.kind == triad_kind) work.factor = static_cast<float>(call.attributes.as<Triad>().factor);
  work.threads = context.threads;
  work.inputs = call.inputs.size();
  work.outputs = call.outputs.size();
  const auto is_whole = [&](const TensorSpec& tensor) { return tensor.shape == tensors.back().shape; };
  const bool one_run = std::all_of(tensors.begin(), tensors.end(), is_whole) && share_one_run(tensors);
  std::int64_t output_bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    expect_f32_or_bf16(call, tensors[i]);
    const std::int64_t elements = tensors[i].shape.elements();
    work.views[i] = one_run ? RowView{1, elements, elements} : rows_of(call, tensors[i]);
    work.repeats[i] = elements == 0 ? 1 : tensors.back().shape.elements() / elements;
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
                     // An output updated in place was just read: it is in the cache, and streaming would evict it.
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
