// AdamW, Lion and SGD over all parameters in one pass, in place, AdamW with or without clipping (formulas:
// reference/ops/optimizer.h). Step and learning rate are read when it runs, so that one launch serves every step.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/optimizer_updates.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/ops/optimizer.h"

namespace gpubench::cpu {
namespace {

/// min(1, limit / (norm + 1e-6)), rounded once; a NaN norm stays NaN.
float clip_factor(float norm, double limit) {
  const double ratio = limit / (static_cast<double>(norm) + 1e-6);
  return static_cast<float>(ratio >= 1.0 ? 1.0 : ratio);
}

// How one optimizer updates: what its call binds, and the factors of one step, computed in f64 and each rounded once.
// update_run() then applies these to a run of one parameter.

struct AdamWRule {
  AdamW hyper;
  double limit = 0.0;
  const float* norm = nullptr;  ///< null: gradients are not clipped
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
  float* v = nullptr;  ///< null where the optimizer keeps one moment
  Sink copy;
};

template <class Rule>
struct Update {
  int threads = 1;
  Rule rule;
  bool copies = false;
  const float* found_inf = nullptr;  ///< null: nothing is skipped
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
    BlockBuffer g_buffer;
    BlockBuffer copy_buffer;
    const std::int64_t step_size = p.g.staged() || copies ? block_elements : count;
    for (std::int64_t i = first; i < first + count; i += step_size) {
      const std::int64_t size = std::min(step_size, first + count - i);
      update_run(p.g.read(i, size, g_buffer), factors, size, p.w + i, p.m + i, p.v == nullptr ? nullptr : p.v + i);
      if (!copies) continue;
      float* block = p.copy.place(i, copy_buffer);
      std::copy_n(p.w + i, size, block);
      p.copy.commit(i, size, block);
    }
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
      refuse(call,
             fmt::format("{} and what belongs to it have different layouts, or gaps; expected dense ones in one order",
                         weight->to_string()));
    }
    work.list.add(weight->shape.elements());
    if (work.copies) copy_bytes += operand.at("copy", t).bytes();
  }
  const bool streaming = worth_streaming(copy_bytes);
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

}  // namespace

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

// The 2-norm of all gradients together, and the scaling that limits it. Squares are summed in f64: gradients of 1e-30
// count, and those of 1e30 do not overflow.

namespace {

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
      runs().scale(g.read(first + i, size, in), factor, size, block);
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
