// Shared by forward and backward attention: work on blocks of scores between products. And the merge of two results.
#include "reference/cpu/attention.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/cpu/kernel.h"
#include "reference/cpu/runs.h"
#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/attention.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

void CapScores(Rows<float> scores, std::int64_t rows, std::int64_t columns, float scale, float cap) {
  const float inner = scale / cap;
  const auto capped = [=](V x) HWY_ATTR { return hn::Mul(all(cap), tanh(hn::Mul(x, all(inner)))); };
  for (std::int64_t row = 0; row < rows; ++row) map(scores[row], columns, capped, scores[row]);
}

// x becomes exp(x scale - maximum); returns the sum. `count` is a multiple of 16.
HWY_INLINE float exponentiate(float* x, std::int64_t count, float scale, float maximum) {
  const V scales = all(scale * log2_e), shift = all(-maximum * log2_e);
  const auto weight_of = [&](V score) HWY_ATTR { return exp2(hn::MulAdd(score, scales, shift)); };
  V sums[2] = {all(0.0F), all(0.0F)};
  std::int64_t i = 0;
  for (; i + 2 * lane_count <= count; i += 2 * lane_count) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const V weight = weight_of(load(x + i + j * lane_count));
      sums[j] = hn::Add(sums[j], weight);
      store(weight, x + i + j * lane_count);
    }
  }
  for (; i < count; i += lane_count) {
    const V weight = weight_of(load(x + i));
    sums[0] = hn::Add(sums[0], weight);
    store(weight, x + i);
  }
  return hn::GetLane(hn::SumOfLanes(Floats(), hn::Add(sums[0], sums[1])));
}

HWY_INLINE void merge(const ScoreBlock& block, std::int64_t row, float maximum, float sum) {
  const float before = block.maxima[row];
  block.maxima[row] = maximum;
  if (before == -std::numeric_limits<float>::infinity()) {  // the first block
    block.sums[row] = sum;
    return;
  }
  // A NaN is unequal to itself, so it propagates.
  const float shrink = before == maximum ? 1.0F : hn::GetLane(exp(all(before - maximum)));
  block.sums[row] = block.sums[row] * shrink + sum;
  if (shrink == 1.0F) return;
  map(
      block.o[row], block.width, [=](V x) HWY_ATTR { return hn::Mul(x, all(shrink)); }, block.o[row]);
}

void SoftmaxInPlace(const ScoreBlock& block) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::int64_t whole = 16;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float* scores = block.scores[row];
    const KeyRange seen = seen_in(block, row);
    // Whole vectors: a masked score of -infinity gives weight 0.
    const std::int64_t processed = (seen.end + whole - 1) / whole * whole;
    std::fill(scores, scores + seen.first, -infinity);
    std::fill(scores + seen.end, scores + processed, -infinity);
    std::fill(scores + processed, scores + padded(block.keys), 0.0F);
    if (seen.end == 0) continue;

    const float block_largest = largest_of(scores, processed) * block.scale;
    const float maximum = block_largest > block.maxima[row] ? block_largest : block.maxima[row];
    merge(block, row, maximum, exponentiate(scores, processed, block.scale, maximum));
  }
}

template <bool capped>
HWY_INLINE void differentiate(const GradientBlock& block) {
  const hn::RebindToSigned<Floats> integers;
  const float scale = capped ? block.scale / block.cap : block.scale;
  const auto queries = static_cast<std::int32_t>(block.queries);
  const auto first_queries = hn::Iota(integers, 0);  // in a variable, as Highway 1.0 builds it in memory
  for (std::int64_t key = 0; key < block.keys; ++key) {
    float *scores = block.scores[key], *dp = block.dp[key];
    const auto before = hn::Set(integers, block.first[key] - 1), end = hn::Set(integers, block.end[key]);
    for (std::int32_t i = 0; i < queries; i += static_cast<std::int32_t>(lane_count)) {
      V score = hn::Mul(load(scores + i), all(scale)), slope = all(1.0F);
      if constexpr (capped) {
        const V t = tanh(score);
        score = hn::Mul(all(block.cap), t);
        slope = hn::NegMulAdd(t, t, slope);
      }
      const V p = exp(hn::Sub(score, load(block.lse + i)));
      const V ds = hn::Mul(hn::Mul(p, hn::Sub(load(dp + i), load(block.delta + i))), slope);
      const auto query = hn::Add(first_queries, hn::Set(integers, i));
      const auto seen = hn::RebindMask(Floats(), hn::And(query > before, query < end));
      store(hn::IfThenElseZero(seen, p), scores + i);
      store(hn::IfThenElseZero(seen, ds), dp + i);
    }
  }
  // Padding keys: the score is 0, and exp(-lse) may be anything.
  for (std::int64_t key = block.keys; key < padded(block.keys); ++key) {
    std::fill_n(block.scores[key], queries, 0.0F);
    std::fill_n(block.dp[key], queries, 0.0F);
  }
}

void Differentiate(const GradientBlock& block) {
  block.cap > 0.0F ? differentiate<true>(block) : differentiate<false>(block);
}

float SinkGradient(float sink, const float* lse, const float* delta, std::int64_t count) {
  const auto term = [=](V of_lse, V of_delta) HWY_ATTR { return hn::Mul(exp(hn::Sub(all(sink), of_lse)), of_delta); };
  return -sum_of(count, nullptr, term, lse, delta);
}

template <class T>
HWY_INLINE void dot_each_row(Rows<const T> a, Rows<const T> b, std::int64_t rows, std::int64_t columns, float* sums) {
  const auto product = [](V left, V right) HWY_ATTR { return hn::Mul(left, right); };
  for (std::int64_t row = 0; row < rows; ++row) sums[row] = sum_of(columns, nullptr, product, a[row], b[row]);
}
void DotRowsF32(Rows<const float> a, Rows<const float> b, std::int64_t rows, std::int64_t columns, float* sums) {
  dot_each_row(a, b, rows, columns, sums);
}
void DotRowsBf16(Rows<const bf16> a, Rows<const bf16> b, std::int64_t rows, std::int64_t columns, float* sums) {
  dot_each_row(a, b, rows, columns, sums);
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {

HWY_EXPORT(CapScores);
HWY_EXPORT(SoftmaxInPlace);
HWY_EXPORT(Differentiate);
HWY_EXPORT(SinkGradient);
HWY_EXPORT(DotRowsF32);
HWY_EXPORT(DotRowsBf16);

void cap_scores(Rows<float> scores, std::int64_t rows, std::int64_t columns, float scale, float cap) {
  HWY_DYNAMIC_DISPATCH(CapScores)(scores, rows, columns, scale, cap);
}
void softmax_in_place(const ScoreBlock& block) { HWY_DYNAMIC_DISPATCH(SoftmaxInPlace)(block); }
void differentiate(const GradientBlock& block) { HWY_DYNAMIC_DISPATCH(Differentiate)(block); }
float sink_gradient(float sink, const float* lse, const float* delta, std::int64_t count) {
  return HWY_DYNAMIC_DISPATCH(SinkGradient)(sink, lse, delta, count);
}
void dot_rows(Rows<const float> a, Rows<const float> b, std::int64_t rows, std::int64_t columns, float* sums) {
  HWY_DYNAMIC_DISPATCH(DotRowsF32)(a, b, rows, columns, sums);
}
void dot_rows(Rows<const bf16> a, Rows<const bf16> b, std::int64_t rows, std::int64_t columns, float* sums) {
  HWY_DYNAMIC_DISPATCH(DotRowsBf16)(a, b, rows, columns, sums);
}

AttentionProblem attention_problem(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const auto& attributes = call.attributes.as<Attention>();
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec& q = operand["q"];
  expect_f32_or_bf16(call, q);
  operand.each({"do", "q", "k", "v", "o", "dq", "dk", "dv"}, [&](const TensorSpec& tensor) {
    expect_type(call, tensor, q.dtype);
    expect_contiguous_last_axis(call, tensor);
  });
  operand.each({"lse", "sinks", "dsinks"}, [&](const TensorSpec& tensor) {
    expect_type(call, tensor, DType::f32);
    expect_row_major(call, tensor);
  });
  operand.each({"documents"}, [&](const TensorSpec& tensor) {
    expect_type(call, tensor, DType::i32);
    expect_row_major(call, tensor);
  });
  // The maximum is taken before scaling, which must keep the order.
  const auto scale = static_cast<float>(attributes.scale);
  if (!(scale > 0.0F)) refuse(call, fmt::format("scale is {}; expected a positive number", attributes.scale));

  AttentionProblem problem;
  problem.extents = extents_of(q.shape, operand["k"].shape, operand["v"].shape);
  problem.attributes = attributes;
  problem.scale = scale;
  problem.threads = context.threads;
  problem.is_bf16 = q.dtype == DType::bf16;
  return problem;
}

KeyMask::KeyMask(const AttentionProblem& problem, const Tensor* documents, std::int32_t* room)
    : queries_(problem.extents.s),
      keys_(problem.extents.t),
      window_(problem.attributes.window),
      causal_(problem.attributes.causal) {
  if (documents == nullptr) return;
  documents_ = elements_of<const std::int32_t>(*documents);
  count_ = documents->spec.shape[1];
  first_ = room;
  end_ = room + problem.extents.b * queries_;
}

void KeyMask::find_documents(std::int64_t batch) const {
  std::int32_t* first = first_ + batch * queries_;
  std::int32_t* end = end_ + batch * queries_;
  std::fill(end, end + queries_, 0);
  for (std::int64_t i = batch * count_; i < (batch + 1) * count_; ++i) {
    if (documents_[i] >= 0 && documents_[i] < queries_) end[documents_[i]] = 1;  // start of a document
  }
  std::int32_t begin = 0;
  for (std::int32_t query = 0; query < queries_; ++query) {
    if (end[query] != 0) begin = query;
    first[query] = begin;
  }
  auto next = static_cast<std::int32_t>(queries_);
  for (auto query = static_cast<std::int32_t>(queries_ - 1); query >= 0; --query) {
    end[query] = next;
    if (first[query] == query) next = query;
  }
}

void store_rows(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<float> to) {
  for (std::int64_t row = 0; row < rows; ++row) std::copy(from[row], from[row] + columns, to[row]);
}
void store_rows(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<bf16> to) {
  round_block(from, rows, columns, to);
}

namespace {

/// Merge of attention to two sets of keys: a thread handles the heads of a token; weights are computed in f64.
struct Merge {
  int threads = 1;
  std::int64_t batches = 1, tokens = 1, heads = 1, width = 1;
  Source o1, o2;
  Sink o;
  const float *lse1 = nullptr, *lse2 = nullptr;  ///< [batches, heads, tokens], as lse
  float* lse = nullptr;

  void operator()() const {
    parallel_rows(threads, batches * tokens, heads * width, [this](std::int64_t token) {
      for (std::int64_t head = 0; head < heads; ++head) run_head(token, head);
    });
  }

  void run_head(std::int64_t token, std::int64_t head) const {
    const std::int64_t row = (token / tokens * heads + head) * tokens + token % tokens;
    const auto first = static_cast<double>(lse1[row]), second = static_cast<double>(lse2[row]);
    const double larger = std::max(first, second);
    const bool sees_no_key = larger == -std::numeric_limits<double>::infinity();
    const double all = sees_no_key ? larger : larger + std::log1p(std::exp(-std::fabs(first - second)));
    lse[row] = static_cast<float>(all);
    const auto of_first = sees_no_key ? 0.0F : static_cast<float>(std::exp(first - all)),
               of_second = sees_no_key ? 0.0F : static_cast<float>(std::exp(second - all));
    BlockBuffer a, b, y;
    in_blocks(width, block_elements, [&](std::int64_t i, std::int64_t size) {
      const std::int64_t at = (token * heads + head) * width + i;
      float* block = o.place(at, y);
      runs().blend(o1.read(at, size, a), of_first, o2.read(at, size, b), of_second, size, block);
      o.commit(at, size, block);
    });
  }
};

// Row-major.
Plan plan_attention_merge(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_f32_or_bf16(call, operand, {"o1", "o2", "o"});
  expect_type(call, operand, {"lse1", "lse2", "lse"}, DType::f32);
  expect_row_major(call, operand, {"o1", "lse1", "o2", "lse2", "o", "lse"});
  const Shape& shape = operand["o"].shape;
  Merge work;
  work.threads = context.threads;
  work.batches = shape[0];
  work.tokens = shape[1];
  work.heads = shape[2];
  work.width = shape[3];
  return own_plan(call, work,
                  {{"o1", to<&Merge::o1>},
                   {"lse1", to<&Merge::lse1>},
                   {"o2", to<&Merge::o2>},
                   {"lse2", to<&Merge::lse2>},
                   {"o", to<&Merge::o>},
                   {"lse", to<&Merge::lse>}});
}

}  // namespace

Ops attention_ops() { return {{attention_merge_kind, plan_attention_merge}}; }

}  // namespace gpubench::cpu
#endif
