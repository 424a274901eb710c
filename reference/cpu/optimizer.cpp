// AdamW over all parameters in one pass, in place, with or without clipping (formulas: reference/ops/optimizer.h). Step
// and learning rate are read when it runs, so that one launch serves every step.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/ops/optimizer.h"

namespace gpubench::cpu {
namespace {

/// What the update multiplies with: computed in f64, each rounded once.
struct Factors {
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float inverse_bc1, inverse_bc2;  ///< 1 / (1 - beta^step)
  float epsilon, weight_decay, lr;
  float clip;  ///< of the gradient
};

Factors factors_of(const AdamW& hyper, double lr, double step, float clip) {
  const double bc1 = 1.0 - std::pow(hyper.beta1, step);
  const double bc2 = 1.0 - std::pow(hyper.beta2, step);
  return {static_cast<float>(hyper.beta1),
          static_cast<float>(1.0 - hyper.beta1),
          static_cast<float>(hyper.beta2),
          static_cast<float>(1.0 - hyper.beta2),
          static_cast<float>(1.0 / bc1),
          static_cast<float>(1.0 / bc2),
          static_cast<float>(hyper.epsilon),
          static_cast<float>(hyper.weight_decay),
          static_cast<float>(lr),
          clip};
}

GPUBENCH_VECTOR_CLONES
void update_block(const float* g, const Factors& factors, std::int64_t count, float* w, float* m, float* v) {
  const Factors f = factors;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = f.clip * g[i];
    const float m_new = f.beta1 * m[i] + f.one_minus_beta1 * gradient;
    const float v_new = f.beta2 * v[i] + f.one_minus_beta2 * (gradient * gradient);
    const float direction = (m_new * f.inverse_bc1) / (std::sqrt(v_new * f.inverse_bc2) + f.epsilon);
    m[i] = m_new;
    v[i] = v_new;
    w[i] = w[i] - f.lr * (direction + f.weight_decay * w[i]);
  }
}

/// min(1, limit / (norm + 1e-6)), rounded once; a NaN norm stays NaN.
float clip_factor(float norm, double limit) {
  const double ratio = limit / (static_cast<double>(norm) + 1e-6);
  return static_cast<float>(ratio >= 1.0 ? 1.0 : ratio);
}

struct Parameter {
  float* w = nullptr;
  Source g;
  float* m = nullptr;
  float* v = nullptr;
  Sink copy;
};

struct Update {
  int threads = 1;
  AdamW hyper;
  double limit = 0.0;
  TensorList list;
  const float* norm = nullptr;  ///< null: gradients are not clipped
  const float* lr = nullptr;
  const std::int32_t* step = nullptr;
  std::vector<Parameter> parameters;

  void operator()() const {
    const float clip = norm == nullptr ? 1.0F : clip_factor(*norm, limit);
    const Factors factors = factors_of(hyper, static_cast<double>(*lr), static_cast<double>(*step), clip);
    parallel_chunks(threads, list.length(), element_grain, [&](std::int64_t begin, std::int64_t end) {
      list.visit(begin, end, [&](std::size_t tensor, std::int64_t first, std::int64_t count) {
        update_run(parameters[tensor], factors, first, count);
      });
      stream_fence();
    });
  }

  void update_run(const Parameter& p, const Factors& factors, std::int64_t first, std::int64_t count) const {
    BlockBuffer g_buffer;
    BlockBuffer copy_buffer;
    const std::int64_t step_size = p.g.staged() || hyper.copies ? block_elements : count;
    for (std::int64_t i = first; i < first + count; i += step_size) {
      const std::int64_t size = std::min(step_size, first + count - i);
      update_block(p.g.read(i, size, g_buffer), factors, size, p.w + i, p.m + i, p.v + i);
      if (!hyper.copies) continue;
      float* block = p.copy.place(i, copy_buffer);
      std::copy_n(p.w + i, size, block);
      p.copy.commit(i, size, block);
    }
  }
};

}  // namespace

Plan plan_adamw(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const AdamWCall places = adamw_call(call);
  const AdamW& hyper = places.adamw;
  const std::size_t count = call.outputs.size() / places.outputs;
  const Named<TensorSpec> operand(call, tensors);
  expect_type(call, operand, {"norm", "lr"}, DType::f32);
  expect_type(call, operand["step"], DType::i32);
  Update work;
  work.threads = context.threads;
  work.hyper = hyper;
  work.limit = places.limit.value_or(0.0);
  std::int64_t copy_bytes = 0;
  for (std::size_t t = 0; t < count; ++t) {
    const auto inputs = tensors.subspan(*operand.position("w", t), places.inputs);
    for (const char* name : {"w", "m", "v"}) expect_type(call, operand.at(name, t), DType::f32);
    for (const TensorSpec& tensor : inputs) expect_f32_or_bf16(call, tensor);
    if (!share_one_run(inputs)) {
      refuse(call,
             fmt::format("{} and what belongs to it have different layouts, or gaps; expected dense ones in one order",
                         inputs[0].to_string()));
    }
    work.list.add(inputs[0].shape.elements());
    if (hyper.copies) copy_bytes += operand.at("copy", t).bytes();
  }
  const bool streaming = worth_streaming(copy_bytes);
  return plan_of(own_implementation(), 0, [=](std::span<const Tensor> bound, Workspace) {
    const Named<Tensor> at(call, bound);
    Update result = work;
    if (const Tensor* norm = at.find("norm")) result.norm = elements_of<const float>(*norm);
    result.lr = elements_of<const float>(at["lr"]);
    result.step = elements_of<const std::int32_t>(at["step"]);
    for (std::size_t t = 0; t < count; ++t) {
      Parameter parameter{elements_of<float>(at.at("w", t)), Source(at.at("g", t)), elements_of<float>(at.at("m", t)),
                          elements_of<float>(at.at("v", t)), Sink()};
      if (const Tensor* copy = at.find("copy", t)) parameter.copy = Sink(*copy, streaming);
      result.parameters.push_back(parameter);
    }
    return result;
  });
}

// The 2-norm of all gradients together, and the scaling that limits it. Squares are summed in f64: gradients of 1e-30
// count, and those of 1e30 do not overflow.

namespace {

/// Four independent sums, so that an addition does not wait for the previous one.
GPUBENCH_VECTOR_CLONES
double sum_of_squares(const float* g, std::int64_t count) {
  const std::int64_t quarter = count / 4;
  double a = 0.0;
  double b = 0.0;
  double c = 0.0;
  double d = 0.0;
#pragma omp simd reduction(+ : a, b, c, d)
  for (std::int64_t i = 0; i < quarter; ++i) {
    a += static_cast<double>(g[i]) * static_cast<double>(g[i]);
    b += static_cast<double>(g[i + quarter]) * static_cast<double>(g[i + quarter]);
    c += static_cast<double>(g[i + 2 * quarter]) * static_cast<double>(g[i + 2 * quarter]);
    d += static_cast<double>(g[i + 3 * quarter]) * static_cast<double>(g[i + 3 * quarter]);
  }
  for (std::int64_t i = 4 * quarter; i < count; ++i) a += static_cast<double>(g[i]) * static_cast<double>(g[i]);
  return (a + b) + (c + d);
}

GPUBENCH_VECTOR_CLONES
void scale_gradients(const float* g, float factor, std::int64_t count, float* scaled) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) scaled[i] = g[i] * factor;
}

/// Lists `tensors`, which must be dense f32 or bf16.
TensorList list_of(const OpCall& call, std::span<const TensorSpec> tensors) {
  TensorList list;
  for (const TensorSpec& tensor : tensors) {
    expect_f32_or_bf16(call, tensor);
    if (!is_dense(tensor)) refuse_layout(call, tensor, "a dense one");
    list.add(tensor.shape.elements());
  }
  return list;
}

/// Longest run that is read in place; keeps the partial sums of gradient_norm short.
constexpr std::int64_t direct_block = 4096;

struct SquareSum {
  int threads = 1;
  TensorList list;
  std::vector<Source> gradients;
  float* norm = nullptr;
  double* partial = nullptr;  ///< [parts]

  [[nodiscard]] int parts() const { return chunk_count(threads, list.length(), element_grain); }

  void operator()() const {
    parallel_chunks(threads, parts(), 1, [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) partial[part] = sum_of_part(static_cast<int>(part));
    });
    double sum = 0.0;
    for (int part = 0; part < parts(); ++part) sum += partial[part];
    *norm = static_cast<float>(std::sqrt(sum));
  }

  [[nodiscard]] double sum_of_part(int part) const {
    const Chunk chunk = chunk_of(list.length(), element_grain, parts(), part);
    BlockBuffer buffer;
    double sum = 0.0;
    list.visit(chunk.begin, chunk.end, [&](std::size_t tensor, std::int64_t first, std::int64_t count) {
      const Source& g = gradients[tensor];
      const std::int64_t step = g.staged() ? block_elements : direct_block;
      for (std::int64_t i = 0; i < count; i += step) {
        const std::int64_t size = std::min(step, count - i);
        sum += sum_of_squares(g.read(first + i, size, buffer), size);
      }
    });
    return sum;
  }
};

struct Clipping {
  int threads = 1;
  double limit = 1.0;
  TensorList list;
  const float* norm = nullptr;
  std::vector<Source> gradients;
  std::vector<Sink> clipped;

  void operator()() const {
    const float factor = clip_factor(*norm, limit);
    parallel_chunks(threads, list.length(), element_grain, [this, factor](std::int64_t begin, std::int64_t end) {
      list.visit(begin, end, [&](std::size_t tensor, std::int64_t first, std::int64_t count) {
        scale_run(tensor, first, count, factor);
      });
    });
  }

  void scale_run(std::size_t tensor, std::int64_t first, std::int64_t count, float factor) const {
    const Source& g = gradients[tensor];
    const Sink& to = clipped[tensor];
    BlockBuffer in;
    BlockBuffer out;
    const std::int64_t step = g.staged() || to.staged() ? block_elements : count;
    for (std::int64_t i = 0; i < count; i += step) {
      const std::int64_t size = std::min(step, count - i);
      float* block = to.place(first + i, out);
      scale_gradients(g.read(first + i, size, in), factor, size, block);
      to.commit(first + i, size, block);
    }
  }
};

}  // namespace

Plan plan_gradient_norm(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  expect_type(call, tensors.back(), DType::f32);
  SquareSum work;
  work.threads = context.threads;
  work.list = list_of(call, tensors.first(tensors.size() - 1));
  const auto workspace_bytes = static_cast<std::size_t>(work.parts()) * sizeof(double);
  return plan_of(own_implementation(), workspace_bytes, [work](std::span<const Tensor> bound, Workspace space) {
    SquareSum result = work;
    for (const Tensor& gradient : bound.first(bound.size() - 1)) result.gradients.emplace_back(gradient);
    result.norm = elements_of<float>(bound.back());
    result.partial = reinterpret_cast<double*>(space.data);
    return result;
  });
}

Plan plan_clip(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const std::size_t count = call.outputs.size();
  expect_type(call, tensors[0], DType::f32);
  Clipping work;
  work.threads = context.threads;
  work.limit = call.attributes.as<Clip>().limit;
  work.list = list_of(call, tensors.subspan(1, count));
  return plan_of(own_implementation(), 0, [work, count](std::span<const Tensor> bound, Workspace) {
    Clipping result = work;
    result.norm = elements_of<const float>(bound[0]);
    for (const Tensor& gradient : bound.subspan(1, count)) result.gradients.emplace_back(gradient);
    for (const Tensor& scaled : bound.subspan(1 + count, count)) result.clipped.emplace_back(scaled, false);
    return result;
  });
}

}  // namespace gpubench::cpu
