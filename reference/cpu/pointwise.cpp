// Elementwise ops: one plan for all, and their arithmetic in Highway.
#include "reference/cpu/runs.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/pointwise.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

HWY_INLINE V same(V x) { return x; }
HWY_INLINE V add(V a, V b) { return hn::Add(a, b); }
HWY_INLINE V multiply(V a, V b) { return hn::Mul(a, b); }
HWY_INLINE V scale(float factor, V x) { return hn::Mul(all(factor), x); }
HWY_INLINE V triad(float factor, V b, V c) { return hn::MulAdd(all(factor), c, b); }
HWY_INLINE V modulate(V x, V scale, V shift) { return hn::MulAdd(x, hn::Add(all(1.0F), scale), shift); }
HWY_INLINE V modulate_backward(V dy, V scale) { return hn::Mul(dy, hn::Add(all(1.0F), scale)); }
HWY_INLINE V gelu_tanh_backward(V x, V dy) { return hn::Mul(dy, gelu_tanh_derivative(x)); }
HWY_INLINE V gelu_erf_backward(V x, V dy) { return hn::Mul(dy, gelu_erf_derivative(x)); }
HWY_INLINE V relu(V x) { return hn::IfThenElse(x < all(0.0F), all(0.0F), x); }  // NaN stays
HWY_INLINE V relu_backward(V y, V dy) { return hn::IfThenElse(y <= all(0.0F), all(0.0F), dy); }
HWY_INLINE V squared_relu(V x) { return hn::Mul(relu(x), relu(x)); }
HWY_INLINE V squared_relu_backward(V x, V dy) {
  return hn::IfThenElse(x <= all(0.0F), all(0.0F), hn::Mul(hn::Add(x, x), dy));
}
HWY_INLINE V silu_backward(V x, V dy) { return hn::Mul(dy, silu_derivative(x)); }
HWY_INLINE V swiglu(V gate, V up) { return hn::Mul(silu(gate), up); }

template <auto op>
struct Arithmetic {
  float factor;
  template <class... X>
  HWY_INLINE V operator()(X... x) const {
    if constexpr (std::is_invocable_v<decltype(op), float, X...>) {
      return op(factor, x...);
    } else {
      return op(x...);
    }
  }
};

template <auto op, std::size_t... k>
void run(const float* const* x, float factor, std::int64_t count, float* const* y) {
  map(y[0], count, Arithmetic<op>{factor}, x[k]...);
}
template <auto op, std::size_t... k>
void run_streaming(const float* const* x, float factor, std::int64_t count, float* const* y) {
  map_streaming(y[0], count, Arithmetic<op>{factor}, x[k]...);
}

/// For an op with one output and these inputs.
template <auto op, std::size_t... k>
constexpr PointwiseKernel kernel{run<op, k...>, run_streaming<op, k...>};

void swiglu_backward(const float* const* x, float /*none*/, std::int64_t count, float* const* y) {
  each_vector(count, [=](auto lanes, std::int64_t i) HWY_ATTR {
    const V gate = lanes.from(x[0] + i), up = lanes.from(x[1] + i), dy = lanes.from(x[2] + i);
    const Logistic s(gate);
    lanes.to(hn::Mul(hn::Mul(dy, up), hn::Mul(s.value, hn::MulAdd(gate, s.rest, all(1.0F)))), y[0] + i);
    lanes.to(hn::Mul(dy, hn::Mul(gate, s.value)), y[1] + i);
  });
}

PointwiseKernel FindPointwise(const OpKind& kind, bool gelu_is_tanh) {
  if (kind == add_kind) return kernel<add, 0, 1>;
  if (kind == cast_kind) return {run<same, 0>, nullptr, true};  // the sink rounds
  if (kind == gelu_backward_kind)
    return gelu_is_tanh ? kernel<gelu_tanh_backward, 0, 1> : kernel<gelu_erf_backward, 0, 1>;
  if (kind == gelu_forward_kind) return gelu_is_tanh ? kernel<gelu_tanh, 0> : kernel<gelu_erf, 0>;
  if (kind == modulate_backward_kind) return kernel<modulate_backward, 0, 1>;
  if (kind == modulate_forward_kind) return kernel<modulate, 0, 1, 2>;
  if (kind == multiply_kind) return kernel<multiply, 0, 1>;
  if (kind == relu_backward_kind) return kernel<relu_backward, 0, 1>;
  if (kind == relu_forward_kind) return kernel<relu, 0>;
  if (kind == scale_kind) return kernel<scale, 0>;
  if (kind == silu_backward_kind) return kernel<silu_backward, 0, 1>;
  if (kind == silu_forward_kind) return kernel<silu, 0>;
  if (kind == squared_relu_backward_kind) return kernel<squared_relu_backward, 0, 1>;
  if (kind == squared_relu_forward_kind) return kernel<squared_relu, 0>;
  if (kind == swiglu_backward_kind) return {swiglu_backward};
  if (kind == swiglu_forward_kind) return kernel<swiglu, 0, 1>;
  if (kind == triad_kind) return kernel<triad, 0, 1>;
  return {};
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {
namespace {

HWY_EXPORT(FindPointwise);

constexpr std::size_t max_inputs = 3;
constexpr std::size_t max_outputs = 2;

/// Views of the inputs, then of the outputs.
struct Pointwise {
  PointwiseKernel kernel{};
  float factor = 0.0F;
  int threads = 1;
  std::size_t inputs = 1, outputs = 1;
  std::array<RowView, max_inputs + max_outputs> views;
  std::array<std::int64_t, max_inputs + max_outputs> repeats{1, 1, 1, 1, 1};  // rows of y per row of a view
  std::array<Source, max_inputs> x;
  std::array<Sink, max_outputs> y;
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
    std::array<BlockBuffer, max_inputs> x_buffers;
    std::array<BlockBuffer, max_outputs> y_buffers;
    std::array<const float*, max_inputs> from{};
    std::array<float*, max_outputs> to{};
    const auto first = [&](std::size_t view) {
      return (repeats[view] == 1 ? row : row / repeats[view]) * views[view].stride + column;
    };
    if (kernel.streaming != nullptr && !inputs_staged && y[0].streams_f32()) {
      for (std::size_t k = 0; k < inputs; ++k) from[k] = x[k].read(first(k), count, x_buffers[k]);
      to[0] = y[0].where(first(inputs));
      kernel.streaming(from.data(), factor, count, to.data());
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

}  // namespace

PointwiseKernel pointwise_kernel(const OpKind& kind, GeluForm form) {
  return HWY_DYNAMIC_DISPATCH(FindPointwise)(kind, form == GeluForm::tanh);
}

namespace {

// All ops of reference/ops/pointwise.h. Dense tensors with equal strides, or strided rows.
Plan plan_pointwise(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  Pointwise work;
  const bool is_gelu = call.kind == gelu_forward_kind || call.kind == gelu_backward_kind;
  work.kernel = pointwise_kernel(call.kind, is_gelu ? call.attributes.as<Gelu>().form : GeluForm::tanh);
  if (work.kernel.block == nullptr) refuse(call, "no kernel for this op");
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
                 [work, streaming = should_stream(output_bytes)](std::span<const Tensor> bound, Workspace) {
                   Pointwise result = work;
                   for (std::size_t k = 0; k < work.inputs; ++k) {
                     result.x[k] = Source(bound[k]);
                     result.inputs_staged = result.inputs_staged || result.x[k].staged();
                   }
                   for (std::size_t j = 0; j < work.outputs; ++j) {
                     const Tensor& y = bound[work.inputs + j];
                     // An in-place output was just read: it is cached, and streaming would evict it.
                     const auto reads = bound.first(work.inputs);
                     const bool in_place = std::any_of(reads.begin(), reads.end(),
                                                       [&y](const Tensor& read) { return read.data == y.data; });
                     result.y[j] = Sink(y, streaming && !in_place);
                     result.outputs_staged = result.outputs_staged || result.y[j].staged();
                   }
                   return result;
                 });
}

}  // namespace

Ops pointwise_ops() {
  Ops ops;
  for (const OpKind& kind : pointwise_kinds) ops.push_back({kind, plan_pointwise});
  return ops;
}

}  // namespace gpubench::cpu
#endif
