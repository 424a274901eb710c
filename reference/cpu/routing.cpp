// Top-k routing, one token at a time, with its scores on the stack. The k best are kept sorted; comparisons are strict,
// so that the first of equal scores stays in front.
#include "reference/ops/routing.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"

namespace gpubench::cpu {
namespace {

constexpr std::int64_t max_experts = 1024;
constexpr std::int64_t max_chosen = 64;

struct Router {
  int threads = 1;
  std::int64_t tokens = 0, experts = 0, k = 1;
  bool softmax = true, normalize = false;
  float scale = 1.0F;
  Source logits;

  using Row = std::array<float, max_experts>;

  template <class RunToken>
  void over_tokens(const RunToken& run_token) const {
    parallel_chunks(threads, tokens, row_grain(experts), [&](std::int64_t begin, std::int64_t end) {
      Row x, s;
      for (std::int64_t token = begin; token < end; ++token) {
        in_blocks(experts, block_elements, [&](std::int64_t i, std::int64_t count) {
          BlockBuffer buffer;
          std::copy_n(logits.read(token * experts + i, count, buffer), count, x.data() + i);
        });
        score(x, s);
        run_token(token, x, s);
      }
    });
  }

  void score(const Row& x, Row& s) const {
    if (!softmax) return runs().sigmoid(x.data(), experts, s.data());
    const float largest = runs().largest(x.data(), experts);
    const float sum = runs().exp(x.data(), largest, experts, s.data());
    runs().scale(s.data(), 1.0F / sum, experts, s.data());
  }

  /// Factor that makes weights of chosen scores, without `scale`.
  [[nodiscard]] float share_of(float sum_of_chosen) const { return normalize ? 1.0F / sum_of_chosen : 1.0F; }
};

struct RoutingForwardWork : Router {
  const float* bias = nullptr;
  std::int32_t* indices = nullptr;
  float* weights = nullptr;

  void operator()() const {
    over_tokens([this](std::int64_t token, Row& x, const Row& s) {
      // Without a bias, chooses by the logits: rounding cannot affect the choice.
      if (bias != nullptr) {
        for (std::int64_t i = 0; i < experts; ++i)
          x[static_cast<std::size_t>(i)] = s[static_cast<std::size_t>(i)] + bias[i];
      }
      const std::array<std::int32_t, max_chosen> best = largest_of(x);
      float sum = 0.0F;
      for (std::int64_t j = 0; j < k; ++j) sum += s[chosen(best, j)];
      for (std::int64_t j = 0; j < k; ++j) {
        indices[token * k + j] = best[static_cast<std::size_t>(j)];
        weights[token * k + j] = s[chosen(best, j)] * share_of(sum) * scale;
      }
    });
  }

  static std::size_t chosen(const std::array<std::int32_t, max_chosen>& best, std::int64_t j) {
    return static_cast<std::size_t>(best[static_cast<std::size_t>(j)]);
  }

  [[nodiscard]] std::array<std::int32_t, max_chosen> largest_of(const Row& v) const {
    std::array<std::int32_t, max_chosen> best{};
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < experts; ++i) {
      const float value = v[static_cast<std::size_t>(i)];
      if (count == k && !(value > v[chosen(best, k - 1)])) continue;
      std::int64_t place = count < k ? count++ : k - 1;
      for (; place > 0 && value > v[chosen(best, place - 1)]; --place)
        best[static_cast<std::size_t>(place)] = best[static_cast<std::size_t>(place - 1)];
      best[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(i);
    }
    return best;
  }
};

struct RoutingBackwardWork : Router {
  const std::int32_t* indices = nullptr;
  const float* dweights = nullptr;
  Sink dlogits;

  void operator()() const {
    over_tokens([this](std::int64_t token, Row& h, const Row& s) {
      const std::int32_t* own = indices + token * k;
      const float* dw = dweights + token * k;
      float sum = 0.0F, projection = 0.0F;
      const auto each = [&](const auto& visit) {
        for (std::int64_t j = 0; j < k; ++j) {
          if (own[j] >= 0 && own[j] < experts) visit(static_cast<std::size_t>(own[j]), dw[j]);
        }
      };
      each([&](std::size_t i, float) { sum += s[i]; });
      const float share = share_of(sum);
      if (softmax || normalize) each([&](std::size_t i, float of) { projection += s[i] * share * of; });
      // h: gradient of each share. Only a softmax over all experts has gradients for unchosen ones.
      const bool all = softmax && !normalize;
      std::fill_n(h.begin(), experts, all ? -projection : 0.0F);
      if (!all) each([&](std::size_t i, float) { h[i] = -projection; });
      each([&](std::size_t i, float of) { h[i] += of; });
      in_blocks(experts, block_elements, [&](std::int64_t first, std::int64_t count) {
        BlockBuffer buffer;
        float* block = dlogits.place(token * experts + first, buffer);
        for (std::int64_t i = 0; i < count; ++i) {
          const auto at = static_cast<std::size_t>(first + i);
          block[i] = scale * (s[at] * share) * (softmax ? 1.0F : 1.0F - s[at]) * h[at];
        }
        dlogits.commit(token * experts + first, count, block);
      });
    });
  }
};

/// Throws Unsupported for calls that the kernels lack.
template <class Work>
Work router(const OpCall& call, const Named<TensorSpec>& operand, const CpuContext& context) {
  expect_f32_or_bf16(call, operand, {"logits", "dlogits"});
  expect_type(call, operand, {"bias", "weights", "dweights"}, DType::f32);
  expect_row_major(call, operand, {"logits", "dlogits", "bias", "indices", "weights", "dweights"});
  expect_f32_sums(call);
  const Routing& routing = call.attributes.as<Routing>();
  Work work;
  work.threads = context.threads;
  work.tokens = operand["logits"].shape[0];
  work.experts = operand["logits"].shape[1];
  work.k = routing.k;
  if (work.experts > max_experts || work.k > max_chosen) {
    refuse(call,
           fmt::format("{} of {} experts; expected at most {} of {}", work.k, work.experts, max_chosen, max_experts));
  }
  work.softmax = routing.scores == Routing::Scores::softmax;
  work.normalize = routing.normalize;
  work.scale = static_cast<float>(routing.scale);
  return work;
}

// Row-major; up to 64 of up to 1024 experts.
Plan plan_routing_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  using Work = RoutingForwardWork;
  return own_plan(call, router<Work>(call, {call, tensors}, context),
                  {{"logits", to<&Work::logits>},
                   {"bias", to<&Work::bias>},
                   {"indices", to<&Work::indices>},
                   {"weights", to<&Work::weights>}});
}

Plan plan_routing_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  using Work = RoutingBackwardWork;
  return own_plan(call, router<Work>(call, {call, tensors}, context),
                  {{"logits", to<&Work::logits>},
                   {"indices", to<&Work::indices>},
                   {"dweights", to<&Work::dweights>},
                   {"dlogits", to<&Work::dlogits>}});
}

}  // namespace

Ops routing_ops() {
  return {{routing_backward_kind, plan_routing_backward}, {routing_forward_kind, plan_routing_forward}};
}

}  // namespace gpubench::cpu
