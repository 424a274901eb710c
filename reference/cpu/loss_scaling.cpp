// Gradients without the loss's scale, and the scale itself (formulas: reference/ops/loss_scaling.h).
#include "reference/ops/loss_scaling.h"

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

namespace gpubench::cpu {
namespace {

struct Unscaling {
  int threads = 1;
  TensorList list;
  const float* scale = nullptr;
  float* found_inf = nullptr;
  std::vector<Source> gradients;
  std::vector<Sink> unscaled;

  void operator()() const {
    const auto inverse = static_cast<float>(1.0 / static_cast<double>(*scale));
    std::atomic<bool> found = false;
    parallel_chunks(threads, list.length(), element_grain, [&](std::int64_t begin, std::int64_t end) {
      list.visit(begin, end, [&](std::size_t tensor, std::int64_t first, std::int64_t count) {
        if (run(gradients[tensor], unscaled[tensor], inverse, first, count)) found = true;
      });
      stream_fence();
    });
    *found_inf = found ? 1.0F : 0.0F;
  }

  /// True where a gradient is infinite or NaN.
  static bool run(const Source& g, const Sink& to, float inverse, std::int64_t first, std::int64_t count) {
    BlockBuffer in;
    BlockBuffer out;
    const std::int64_t step = g.staged() || to.staged() ? block_elements : count;
    bool bad = false;
    for (std::int64_t i = first; i < first + count; i += step) {
      const std::int64_t size = std::min(step, first + count - i);
      float* block = to.place(i, out);
      bad = runs().unscale(g.read(i, size, in), inverse, size, block) || bad;
      to.commit(i, size, block);
    }
    return bad;
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

}  // namespace

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
    if (!share_one_run(std::array{*gradient, unscaled})) refuse_layout(call, *gradient, "one as dense as its result's");
    work.list.add(gradient->shape.elements());
    if (gradient->dtype != unscaled.dtype) bytes += unscaled.bytes();
  }
  const bool streaming = worth_streaming(bytes);
  return plan_of(own_implementation(), 0, [=](std::span<const Tensor> bound, Workspace) {
    const Named<Tensor> at(call, bound);
    Unscaling result = work;
    result.scale = elements_of<const float>(at["scale"]);
    result.found_inf = elements_of<float>(at["found_inf"]);
    for (std::size_t i = 0; const Tensor* gradient = at.find("g", i); ++i) {
      const Tensor& unscaled = at.at("g'", i);
      result.gradients.emplace_back(*gradient);
      result.unscaled.emplace_back(unscaled, streaming && unscaled.data != gradient->data);
    }
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

}  // namespace gpubench::cpu
