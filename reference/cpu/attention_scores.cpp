// What attention does with blocks of scores between its products.
#include <algorithm>
#include <limits>

#include "reference/cpu/attention.h"
#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/attention_scores.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

void CapScores(Rows<float> scores, std::int64_t rows, std::int64_t columns, float scale, float cap) {
  const float inner = scale / cap;
  const auto capped = [=](V x) HWY_ATTR { return hn::Mul(all(cap), tanh(hn::Mul(x, all(inner)))); };
  for (std::int64_t row = 0; row < rows; ++row) map(scores[row], columns, capped, scores[row]);
}

// x becomes exp(x scale - maximum), whose sum it returns; `count` is a multiple of 16.
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

// Merges a block's maximum and sum of weights into the running ones of its row.
HWY_INLINE void merge(const ScoreBlock& block, std::int64_t row, float maximum, float sum) {
  const float before = block.maxima[row];
  block.maxima[row] = maximum;
  if (before == -std::numeric_limits<float>::infinity()) {  // the first block
    block.sums[row] = sum;
    return;
  }
  // A NaN is unequal to itself, so it spreads.
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
    // Whole vectors only: a masked score of -infinity gives a weight of 0.
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
  const auto first_queries = hn::Iota(integers, 0);  // which Highway 1.0 makes in memory
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
  // The score of a padding key is 0, and exp(-lse) may be anything.
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

}  // namespace gpubench::cpu
#endif
