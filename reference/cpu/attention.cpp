#include "reference/cpu/attention.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/vector_avx512.h"
#include "reference/cpu/vector_math.h"

namespace gpubench::cpu {

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
  // The maximum is taken before scaling, which must not change the order.
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
    if (documents_[i] >= 0 && documents_[i] < queries_) end[documents_[i]] = 1;  // where a document begins
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
  if (columns % block_grain == 0) {
    round_block(from, rows, columns, to);
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) narrow_run(from[row], columns, to[row]);
}

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t vector_lanes = 16;

[[gnu::always_inline]] inline float largest(const float* x, std::int64_t count) {
  float largest = -infinity;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

[[gnu::always_inline]] inline float exponentiate(float* x, std::int64_t count, float scale, float maximum) {
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const float weight = vector_exp(x[i] * scale - maximum);
    sum += weight;
    x[i] = weight;
  }
  return sum;
}

// Merges a block's maximum and sum of weights into the running ones of its row.
[[gnu::always_inline]] inline void merge(const ScoreBlock& block, std::int64_t row, float maximum, float sum) {
  const float before = block.maxima[row];
  if (before == -infinity) {  // the first block
    block.maxima[row] = maximum;
    block.sums[row] = sum;
    return;
  }
  // A NaN is unequal to itself, so it spreads.
  const float shrink = before == maximum ? 1.0F : vector_exp(before - maximum);
  block.maxima[row] = maximum;
  block.sums[row] = block.sums[row] * shrink + sum;
  if (shrink == 1.0F) return;
  float* o = block.o[row];
  for (std::int64_t i = 0; i < block.width; ++i) o[i] *= shrink;
}

}  // namespace

GPUBENCH_VECTOR_CLONES void cap_scores(Rows<float> scores, std::int64_t rows, std::int64_t columns, float scale,
                                       float cap) {
  const float inner = scale / cap;
  for (std::int64_t row = 0; row < rows; ++row) {
    float* x = scores[row];
#pragma omp simd
    for (std::int64_t i = 0; i < columns; ++i) x[i] = cap * vector_tanh(x[i] * inner);
  }
}

GPUBENCH_VECTOR_CLONES void softmax_in_place(const ScoreBlock& block) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float* scores = block.scores[row];
    const KeyRange seen = seen_in(block, row);
    const std::int64_t visible = seen.end;
    // Whole vectors only: a masked score of -infinity gives a weight of 0.
    std::fill(scores, scores + seen.first, -infinity);
    const std::int64_t processed = (visible + vector_lanes - 1) / vector_lanes * vector_lanes;
    std::fill(scores + visible, scores + processed, -infinity);
    std::fill(scores + processed, scores + padded(block.keys), 0.0F);
    if (visible == 0) continue;

    const float block_largest = largest(scores, processed) * block.scale;
    const float maximum = block_largest > block.maxima[row] ? block_largest : block.maxima[row];
    merge(block, row, maximum, exponentiate(scores, processed, block.scale, maximum));
  }
}

#if defined(GPUBENCH_HAS_AVX512_CODE)

namespace {

using avx512::all;
using avx512::first_lanes;
using avx512::lanes;

[[gnu::always_inline]] GPUBENCH_AVX512_BF16 inline void store(float* to, __m512 weights) {
  _mm512_storeu_ps(to, weights);
}
[[gnu::always_inline]] GPUBENCH_AVX512_BF16 inline void store(bf16* to, __m512 weights) {
  // Rounds as narrow() does, but for subnormals, which the products take as 0 anyway.
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(weights)));
}

// The first `visible` weights of a row and their sum; the rest of the row, up to `width`, becomes 0.
template <class T>
[[gnu::always_inline]] GPUBENCH_AVX512_BF16 inline float weigh_row(const float* scores, std::int64_t visible,
                                                                   std::int64_t width, float scale, float maximum,
                                                                   T* weights) {
  const __m512 scales = all(scale * log2_e);
  const __m512 shift = all(-maximum * log2_e);
  constexpr std::int64_t step = 2 * lanes;
  __m512 sums[2] = {all(0.0F), all(0.0F)};
  std::int64_t i = 0;
  for (; i + step <= visible; i += step) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const std::int64_t at = i + j * lanes;
      const __m512 weight = avx512::exp2(_mm512_fmadd_ps(_mm512_loadu_ps(scores + at), scales, shift));
      sums[j] = _mm512_add_ps(sums[j], weight);
      store(weights + at, weight);
    }
  }
  for (; i < visible; i += lanes) {
    const __mmask16 mask = first_lanes(visible - i);
    const __m512 exponents = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, scores + i), scales, shift);
    const __m512 weight = _mm512_maskz_mov_ps(mask, avx512::exp2(exponents));
    sums[0] = _mm512_add_ps(sums[0], weight);
    store(weights + i, weight);
  }
  for (; i < width; i += lanes) store(weights + i, all(0.0F));
  return avx512::total(_mm512_add_ps(sums[0], sums[1]));
}

[[gnu::always_inline]] GPUBENCH_AVX512_BF16 inline float largest_avx512(const float* scores, std::int64_t visible) {
  constexpr std::int64_t step = 2 * lanes;
  __m512 found[2] = {all(-infinity), all(-infinity)};
  std::int64_t i = 0;
  for (; i + step <= visible; i += step) {
    found[0] = avx512::larger(_mm512_loadu_ps(scores + i), found[0]);
    found[1] = avx512::larger(_mm512_loadu_ps(scores + i + lanes), found[1]);
  }
  for (; i < visible; i += lanes) {
    const __m512 rest = _mm512_mask_loadu_ps(all(-infinity), first_lanes(visible - i), scores + i);
    found[0] = avx512::larger(rest, found[0]);
  }
  return avx512::largest(avx512::larger(found[0], found[1]));
}

template <class T>
[[gnu::always_inline]] GPUBENCH_AVX512_BF16 inline void softmax_rows(const ScoreBlock& block, Rows<T> weights) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float* scores = block.scores[row];
    const KeyRange seen = seen_in(block, row);
    const std::int64_t visible = seen.end;
    std::fill(scores, scores + seen.first, -infinity);  // gives a weight of 0
    const float block_largest = visible == 0 ? -infinity : largest_avx512(scores, visible) * block.scale;
    const float maximum = block_largest > block.maxima[row] ? block_largest : block.maxima[row];
    const float sum = weigh_row(scores, visible, padded(block.keys), block.scale, maximum, weights[row]);
    if (visible != 0) merge(block, row, maximum, sum);
  }
}

}  // namespace

GPUBENCH_AVX512_BF16 void avx512::softmax(const ScoreBlock& block, Rows<float> weights) {
  softmax_rows(block, weights);
}
GPUBENCH_AVX512_BF16 void avx512::softmax(const ScoreBlock& block, Rows<bf16> weights) { softmax_rows(block, weights); }

#else

void avx512::softmax(const ScoreBlock&, Rows<float>) {}
void avx512::softmax(const ScoreBlock&, Rows<bf16>) {}

#endif

Rows<const float> softmax(const ScoreBlock& block, Rows<float> /*room*/) {
  if (avx512::available_bf16()) {
    avx512::softmax(block, block.scores);
  } else {
    softmax_in_place(block);
  }
  return {block.scores.data, block.scores.stride};
}

Rows<const bf16> softmax(const ScoreBlock& block, Rows<bf16> room) {
  if (avx512::available_bf16()) {
    avx512::softmax(block, room);
    return {room.data, room.stride};
  }
  softmax_in_place(block);
  return operand({block.scores.data, block.scores.stride}, block.rows, padded(block.keys), room);
}

}  // namespace gpubench::cpu
