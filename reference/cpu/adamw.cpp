// AdamW over all parameters in one pass, in place, with or without clipping (formulas: reference/ops/optimizer.h). Step
// and learning rate are read when it runs, so that one launch serves every step.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/plans.h"
#include "reference/cpu/row_view.h"
#include "reference/cpu/stream_store.h"
#include "reference/cpu/tensor_list.h"
#include "reference/cpu/vector_clones.h"
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
  for (std::size_t i = 0; i <= places.lr; ++i) expect_type(call, tensors[i], DType::f32);
  expect_type(call, tensors[places.lr + 1], DType::i32);
  Update work;
  work.threads = context.threads;
  work.hyper = hyper;
  work.limit = places.limit.value_or(0.0);
  std::int64_t copy_bytes = 0;
  for (std::size_t t = 0; t < count; ++t) {
    const auto inputs = tensors.subspan(places.first() + t * places.inputs, places.inputs);
    for (const std::size_t i : {0U, 2U, 3U}) expect_type(call, inputs[i], DType::f32);
    for (const TensorSpec& tensor : inputs) expect_f32_or_bf16(call, tensor);
    if (!share_one_run(inputs)) {
      refuse(call,
             fmt::format("{} and what belongs to it have different layouts, or gaps; expected dense ones in one order",
                         inputs[0].to_string()));
    }
    work.list.add(inputs[0].shape.elements());
    if (hyper.copies) copy_bytes += inputs[4].bytes();
  }
  const bool streaming = worth_streaming(copy_bytes);
  return plan_of(own_implementation(), 0, [=](std::span<const Tensor> bound, Workspace) {
    Update result = work;
    if (places.limit) result.norm = elements_of<const float>(bound[0]);
    result.lr = elements_of<const float>(bound[places.lr]);
    result.step = elements_of<const std::int32_t>(bound[places.lr + 1]);
    for (std::size_t t = 0; t < count; ++t) {
      const auto inputs = bound.subspan(places.first() + t * places.inputs, places.inputs);
      Parameter parameter{elements_of<float>(inputs[0]), Source(inputs[1]), elements_of<float>(inputs[2]),
                          elements_of<float>(inputs[3]), Sink()};
      if (places.adamw.copies) parameter.copy = Sink(inputs[4], streaming);
      result.parameters.push_back(parameter);
    }
    return result;
  });
}

}  // namespace gpubench::cpu
