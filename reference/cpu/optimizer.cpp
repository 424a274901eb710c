// AdamW, Lion and SGD over all parameters in one pass, in place, AdamW optionally with clipping; and ops on all
// gradients. Formulas: reference/ops/optimizer.h. Step and learning rate are read at run time, so one launch serves
// every step.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/ops/optimizer.h"

namespace gpubench::cpu {
namespace {

/// min(1, limit / (norm + 1e-6)), rounded once; keeps NaN.
float clip_factor(float norm, double limit) {
  const double ratio = limit / (static_cast<double>(norm) + 1e-6);
  return static_cast<float>(ratio >= 1.0 ? 1.0 : ratio);
}

// An optimizer's operands and the factors of a step, computed in f64 and rounded once. update_run() applies them to a
// run of a parameter.

struct AdamWRule {
  AdamW hyper;
  double limit = 0.0;
  const float* norm = nullptr;  ///< null: no clipping
  const float* lr = nullptr;
  const std::int32_t* step = nullptr;

  void bind(const Named<Tensor>& at) {
    if (const Tensor* given = at.find("norm")) norm = elements_of<const float>(*given);
    lr = elements_of<const float>(at["lr"]);
    step = elements_of<const std::int32_t>(at["step"]);
  }

  [[nodiscard]] AdamWFactors factors() const {
    const auto power = static_cast<double>(*step);
    return {static_cast<float>(hyper.beta1),
            static_cast<float>(1.0 - hyper.beta1),
            static_cast<float>(hyper.beta2),
            static_cast<float>(1.0 - hyper.beta2),
            static_cast<float>(1.0 / (1.0 - std::pow(hyper.beta1, power))),
            static_cast<float>(1.0 / (1.0 - std::pow(hyper.beta2, power))),
            static_cast<float>(hyper.epsilon),
            *lr,
            hyper.l2 ? 0.0F : static_cast<float>(hyper.weight_decay),
            hyper.l2 ? static_cast<float>(hyper.weight_decay) : 0.0F,
            norm == nullptr ? 1.0F : clip_factor(*norm, limit)};
  }
};

struct LionRule {
  Lion hyper;
  const float* lr = nullptr;

  void bind(const Named<Tensor>& at) { lr = elements_of<const float>(at["lr"]); }

  [[nodiscard]] LionFactors factors() const {
    return {static_cast<float>(hyper.beta1),        static_cast<float>(1.0 - hyper.beta1),
            static_cast<float>(hyper.beta2),        static_cast<float>(1.0 - hyper.beta2),
            static_cast<float>(hyper.weight_decay), *lr};
  }
};

struct SgdRule {
  Sgd hyper;
  const float* lr = nullptr;

  void bind(const Named<Tensor>& at) { lr = elements_of<const float>(at["lr"]); }

  [[nodiscard]] SgdFactors factors() const {
    const auto momentum = static_cast<float>(hyper.momentum);
    return {momentum, static_cast<float>(hyper.weight_decay), hyper.nesterov ? 1.0F : 0.0F,
            hyper.nesterov ? momentum : 1.0F, *lr};
  }
};

struct Parameter {
  float* w = nullptr;
  Source g;
  float* m = nullptr;
  float* v = nullptr;  ///< null for optimizers with one moment
  Sink copy;
};

template <class Rule>
struct Update {
  int threads = 1;
  Rule rule;
  bool copies = false;
  const float* found_inf = nullptr;  ///< null: no step is skipped
  TensorList list;
  std::vector<Parameter> parameters;

  void operator()() const {
    if (found_inf != nullptr && *found_inf != 0.0F) return;
    const auto factors = rule.factors();
    parallel_chunks(threads, list.length(), element_grain, [&](std::int64_t begin, std::int64_t end) {
      list.visit(begin, end, [&](std::size_t tensor, std::int64_t first, std::int64_t count) {
        update(parameters[tensor], factors, first, count);
      });
      stream_fence();
    });
  }

  template <class Factors>
  void update(const Parameter& p, const Factors& factors, std::int64_t first, std::int64_t count) const {
    BlockBuffer g_buffer, copy_buffer;
    in_blocks(count, p.g.staged() || copies ? block_elements : count, [&](std::int64_t done, std::int64_t size) {
      const std::int64_t i = first + done;
      update_run(p.g.read(i, size, g_buffer), factors, size, p.w + i, p.m + i, p.v == nullptr ? nullptr : p.v + i);
      if (!copies) return;
      float* block = p.copy.place(i, copy_buffer);
      std::copy_n(p.w + i, size, block);
      p.copy.commit(i, size, block);
    });
  }
};

template <class Rule>
Plan plan_update(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context, Rule rule) {
  const Named<TensorSpec> operand(call, tensors);
  expect_type(call, operand, {"norm", "lr", "found_inf"}, DType::f32);
  expect_type(call, operand, {"step"}, DType::i32);
  Update<Rule> work{context.threads, std::move(rule), call.attributes.has("copy"), nullptr, {}, {}};
  const std::size_t lists = operand_names(call.kind.outputs, call.attributes, 1).size() + 1;  // and the gradients
  std::int64_t copy_bytes = 0;
  for (std::size_t t = 0; const TensorSpec* weight = operand.find("w", t); ++t) {
    const auto inputs = tensors.subspan(*operand.position("w", t), lists);
    for (const char* name : {"w", "m", "v"}) {
      if (const TensorSpec* master = operand.find(name, t)) expect_type(call, *master, DType::f32);
    }
    for (const TensorSpec& tensor : inputs) expect_f32_or_bf16(call, tensor);
    if (!share_one_run(inputs)) {
      refuse(call, fmt::format("{} and its gradient, moments or copy have different layouts or gaps; expected dense "
                               "tensors in one order",
                               weight->to_string()));
    }
    work.list.add(weight->shape.elements());
    if (work.copies) copy_bytes += operand.at("copy", t).bytes();
  }
  const bool streaming = should_stream(copy_bytes);
  return plan_of(own_implementation(), 0, [=](std::span<const Tensor> bound, Workspace) {
    const Named<Tensor> at(call, bound);
    Update<Rule> result = work;
    result.rule.bind(at);
    if (const Tensor* found = at.find("found_inf")) result.found_inf = elements_of<const float>(*found);
    for (std::size_t t = 0; const Tensor* weight = at.find("w", t); ++t) {
      const Tensor* v = at.find("v", t);
      Parameter parameter{elements_of<float>(*weight), Source(at.at("g", t)), elements_of<float>(at.at("m", t)),
                          v == nullptr ? nullptr : elements_of<float>(*v), Sink()};
      if (const Tensor* copy = at.find("copy", t)) parameter.copy = Sink(*copy, streaming);
      result.parameters.push_back(parameter);
    }
    return result;
  });
}

/// Longest run read in place; keeps partial sums of gradient_norm short.
constexpr std::int64_t direct_block = 4096;

/// Squares are summed in f64: 1e-30 counts, and 1e30 does not overflow.
struct SquareSum {
  int threads = 1;
  TensorList list;
  std::vector<Source> gradients;
  float* norm = nullptr;
  double* partial = nullptr;  ///< [parts]

  [[nodiscard]] int parts() const { return chunk_count(threads, list.length(), element_grain); }

  void operator()() const {
    parallel_parts(threads, list.length(), element_grain,
                   [this](std::int64_t part, const Chunk& chunk) { partial[part] = sum_of(chunk); });
    double sum = 0.0;
    for (int part = 0; part < parts(); ++part) sum += partial[part];
    *norm = static_cast<float>(std::sqrt(sum));
  }

  [[nodiscard]] double sum_of(const Chunk& chunk) const {
    BlockBuffer buffer;
    double sum = 0.0;
    list.visit(chunk.begin, chunk.end, [&](std::size_t tensor, std::int64_t first, std::int64_t count) {
      const Source& g = gradients[tensor];
      in_blocks(count, g.staged() ? block_elements : direct_block, [&](std::int64_t i, std::int64_t size) {
        sum += sum_of_squares(g.read(first + i, size, buffer), size);
      });
    });
    return sum;
  }
};

struct GradientPairs {
  int threads = 1;
  TensorList list;
  std::vector<Source> gradients;
  std::vector<Sink> results;

  void bind(const Named<Tensor>& at, bool streaming) {
    for (std::size_t i = 0; const Tensor* gradient = at.find("g", i); ++i) {
      const Tensor& result = at.at("g'", i);
      gradients.emplace_back(*gradient);
      results.emplace_back(result, streaming && result.data != gradient->data);
    }
  }
  template <class Make>
  void over_runs(const Make& make) const {
    parallel_chunks(threads, list.length(), element_grain, [&](std::int64_t begin, std::int64_t end) {
      list.visit(begin, end, [&](std::size_t tensor, std::int64_t first, std::int64_t count) {
        const Source& g = gradients[tensor];
        const Sink& to = results[tensor];
        BlockBuffer in, out;
        in_blocks(count, g.staged() || to.staged() ? block_elements : count, [&](std::int64_t i, std::int64_t size) {
          float* block = to.place(first + i, out);
          make(g.read(first + i, size, in), size, block);
          to.commit(first + i, size, block);
        });
      });
      stream_fence();
    });
  }
};

struct Clipping : GradientPairs {
  double limit = 1.0;
  const float* norm = nullptr;

  void operator()() const {
    over_runs([factor = clip_factor(*norm, limit)](const float* x, std::int64_t count, float* y) {
      runs().scale(x, factor, count, y);
    });
  }
};

struct Unscaling : GradientPairs {
  const float* scale = nullptr;
  float* found_inf = nullptr;

  void operator()() const {
    const auto inverse = static_cast<float>(1.0 / static_cast<double>(*scale));
    std::atomic<bool> found = false;
    over_runs([&](const float* x, std::int64_t count, float* y) {
      if (runs().unscale(x, inverse, count, y)) found = true;
    });
    *found_inf = found ? 1.0F : 0.0F;
  }
};

struct ScaleUpdate {
  UpdateScale rule;
  float* scale = nullptr;
  std::int32_t* tracker = nullptr;
  const float* found_inf = nullptr;

  void operator()() const {
    if (*found_inf != 0.0F) {
      *scale = static_cast<float>(static_cast<double>(*scale) * rule.backoff);
      *tracker = 0;
    } else if (++*tracker == rule.interval) {
      const auto grown = static_cast<float>(static_cast<double>(*scale) * rule.growth);
      if (std::isfinite(grown)) *scale = grown;
      *tracker = 0;
    }
  }
};

/// A list of `tensors`. Throws Unsupported unless they are dense f32 or bf16.
TensorList list_of(const OpCall& call, std::span<const TensorSpec> tensors) {
  TensorList list;
  for (const TensorSpec& tensor : tensors) {
    expect_f32_or_bf16(call, tensor);
    if (!is_dense(tensor)) refuse_layout(call, tensor, "dense");
    list.add(tensor.shape.elements());
  }
  return list;
}

// adamw, clip_adamw, lion, sgd. Weights and moments in f32.
Plan plan_adamw(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const AdamWCall places = adamw_call(call);
  return plan_update(call, tensors, context, AdamWRule{places.adamw, places.limit.value_or(0.0)});
}

Plan plan_lion(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return plan_update(call, tensors, context, LionRule{call.attributes.as<Lion>()});
}

Plan plan_sgd(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return plan_update(call, tensors, context, SgdRule{call.attributes.as<Sgd>()});
}

// Dense gradients, in any order.
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
  expect_type(call, tensors[0], DType::f32);
  Clipping work;
  work.threads = context.threads;
  work.limit = call.attributes.as<Clip>().limit;
  work.list = list_of(call, tensors.subspan(1, call.outputs.size()));
  return plan_of(own_implementation(), 0, [work, call](std::span<const Tensor> bound, Workspace) {
    Clipping result = work;
    result.bind({call, bound}, false);
    result.norm = elements_of<const float>(bound[0]);
    return result;
  });
}

// Unscaled gradients in f32.
Plan plan_unscale(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_type(call, operand, {"scale", "found_inf"}, DType::f32);
  Unscaling work;
  work.threads = context.threads;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; const TensorSpec* gradient = operand.find("g", i); ++i) {
    const TensorSpec& unscaled = operand.at("g'", i);
    expect_f32_or_bf16(call, *gradient);
    expect_type(call, unscaled, DType::f32);
    if (!share_one_run(std::array{*gradient, unscaled})) refuse_layout(call, *gradient, "the result's dense layout");
    work.list.add(gradient->shape.elements());
    if (gradient->dtype != unscaled.dtype) bytes += unscaled.bytes();
  }
  return plan_of(own_implementation(), 0,
                 [=, streaming = should_stream(bytes)](std::span<const Tensor> bound, Workspace) {
                   const Named<Tensor> at(call, bound);
                   Unscaling result = work;
                   result.bind(at, streaming);
                   result.scale = elements_of<const float>(at["scale"]);
                   result.found_inf = elements_of<float>(at["found_inf"]);
                   return result;
                 });
}

Plan plan_update_scale(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext&) {
  expect_type(call, {call, tensors}, {"scale", "found_inf"}, DType::f32);
  ScaleUpdate work;
  work.rule = call.attributes.as<UpdateScale>();
  return own_plan(call, work,
                  {{"scale'", to<&ScaleUpdate::scale>},
                   {"tracker'", to<&ScaleUpdate::tracker>},
                   {"found_inf", to<&ScaleUpdate::found_inf>}});
}

}  // namespace

Ops optimizer_ops() {
  return {{adamw_kind, plan_adamw},     {clip_adamw_kind, plan_adamw, Gain::measured},
          {clip_kind, plan_clip},       {gradient_norm_kind, plan_gradient_norm},
          {lion_kind, plan_lion},       {sgd_kind, plan_sgd},
          {unscale_kind, plan_unscale}, {update_scale_kind, plan_update_scale}};
}

}  // namespace gpubench::cpu
