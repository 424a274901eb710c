// Shared by forward and backward attention: extents in blocks, heads as matrices, softmax of a block of scores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/cpu/block_matmul.h"
#include "reference/cpu/kernel.h"
#include "reference/ops/attention.h"

namespace gpubench::cpu {

struct AttentionProblem {
  AttentionExtents extents;
  Attention attributes;
  float scale = 1.0F;
  int threads = 1;
  bool is_bf16 = false;

  [[nodiscard]] std::int64_t group() const { return extents.hq / extents.hkv; }   ///< query heads per kv head
  [[nodiscard]] std::int64_t width() const { return padded(extents.d); }          ///< of a row of q and k
  [[nodiscard]] std::int64_t value_width() const { return padded(extents.d_v); }  ///< of a row of v and o
  [[nodiscard]] std::int64_t length() const { return padded(extents.s); }         ///< padded number of queries
  [[nodiscard]] std::int64_t key_length() const { return padded(extents.t); }
  [[nodiscard]] bool masks() const { return attributes.causal || attributes.documents; }
  /// Number of document boundaries that KeyMask stores.
  [[nodiscard]] std::int64_t boundaries() const { return attributes.documents ? 2 * extents.b * extents.s : 0; }
};

/// Keys [first, end).
struct KeyRange {
  std::int64_t first = 0, end = 0;
};

/// Visible keys per query. Neither bound decreases with the query.
class KeyMask {
 public:
  /// `room`: problem.boundaries() elements; `documents`: may be null.
  KeyMask(const AttentionProblem& problem, const Tensor* documents, std::int32_t* room);

  /// Reads a batch entry's documents, if there are any; call before of().
  void find_documents(std::int64_t batch) const;
  [[nodiscard]] KeyRange of(std::int64_t batch, std::int64_t query) const {
    KeyRange seen{0, keys_};
    if (causal_) seen.end = std::max<std::int64_t>(0, query + 1 + keys_ - queries_);
    if (window_ > 0) seen.first = std::max<std::int64_t>(0, seen.end - window_);
    if (first_ != nullptr) {
      const std::int64_t at = batch * queries_ + query;
      seen = {std::max<std::int64_t>(seen.first, first_[at]), std::min<std::int64_t>(seen.end, end_[at])};
    }
    return seen;
  }
  /// Union over queries [first, first + count).
  [[nodiscard]] KeyRange of(std::int64_t batch, std::int64_t first, std::int64_t count) const {
    return {of(batch, first).first, of(batch, first + count - 1).end};
  }

 private:
  std::int64_t queries_, keys_, window_;
  bool causal_;
  const std::int32_t* documents_ = nullptr;  // [b, count_]
  std::int64_t count_ = 0;
  std::int32_t *first_ = nullptr, *end_ = nullptr;  // per batch entry and query
};

/// Reads the call. Throws Unsupported for types, layouts and scales that the kernels lack.
[[nodiscard]] AttentionProblem attention_problem(const OpCall& call, std::span<const TensorSpec> tensors,
                                                 const CpuContext& context);

/// A plan of Work<T>, where T is q's type. Work<T> is constructed from the problem, the named tensors and a workspace.
template <template <class> class Work>
[[nodiscard]] Plan attention_plan(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const AttentionProblem problem = attention_problem(call, tensors, context);
  const auto plan = [&]<class T>(const T&) {
    return plan_of(block_matmul_implementation(problem.is_bf16), Work<T>::workspace_bytes(problem),
                   [problem, call](std::span<const Tensor> bound, Workspace workspace) {
                     return Work<T>(problem, Named<Tensor>(call, bound), workspace);
                   });
  };
  return problem.is_bf16 ? plan(bf16()) : plan(float());
}

/// Bytes of `Arrays` in an arena.
template <class Arrays>
[[nodiscard]] std::size_t arena_bytes(const AttentionProblem& problem) {
  Arena arena;
  (void)Arrays{arena, problem};
  return arena.used();
}

/// A tensor [b, s, h, d] as one matrix [s, d] per batch entry and head.
template <class T>
class Heads {
 public:
  explicit Heads(const Tensor& tensor)
      : data_(elements_of<T>(tensor)),
        batch_(tensor.spec.layout.strides[0]),
        position_(tensor.spec.layout.strides[1]),
        head_(tensor.spec.layout.strides[2]) {}

  [[nodiscard]] Rows<T> operator()(std::int64_t batch, std::int64_t head) const {
    return {data_ + batch * batch_ + head * head_, position_};
  }

 private:
  T* data_;
  std::int64_t batch_, position_, head_;
};

/// Copies, rounding to bf16 if needed.
void store_rows(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<float> to);
void store_rows(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<bf16> to);

/// Sums as the operand of a product: unchanged, or rounded into `room`.
[[nodiscard]] inline Rows<const float> operand(Rows<const float> block, std::int64_t, std::int64_t, Rows<float>) {
  return block;
}
[[nodiscard]] inline Rows<const bf16> operand(Rows<const float> block, std::int64_t rows, std::int64_t columns,
                                              Rows<bf16> room) {
  round_block(block, rows, columns, room);
  return room;
}

// Softmax of forward attention, by blocks of scores along the keys.

/// A block of scores, and the running state of its rows.
struct ScoreBlock {
  std::int64_t rows = 0;
  std::int64_t keys = 0;           ///< in this block
  std::int64_t first_key = 0;      ///< index of the block's first key
  const KeyRange* seen = nullptr;  ///< per row
  float scale = 1.0F;
  Rows<float> scores;  ///< overwritten
  Rows<float> o;       ///< rescaled when a maximum grows
  std::int64_t width = 0;
  float* maxima = nullptr;  ///< of scaled scores, per row
  float* sums = nullptr;    ///< of exp(scale score - maximum)
};

/// Keys of the block that a row sees, relative to its first key; {0, 0}: none.
[[nodiscard]] inline KeyRange seen_in(const ScoreBlock& block, std::int64_t row) {
  const KeyRange& seen = block.seen[row];
  const std::int64_t first = std::max<std::int64_t>(seen.first - block.first_key, 0);
  const std::int64_t end = std::min(seen.end - block.first_key, block.keys);
  return first < end ? KeyRange{first, end} : KeyRange{};
}

/// x = cap tanh(x scale / cap).
void cap_scores(Rows<float> scores, std::int64_t rows, std::int64_t columns, float scale, float cap);

/// Updates maxima, sums and o. Replaces the scores by exp(scale score - maximum), [rows, padded(keys)]; 0 if masked.
void softmax_in_place(const ScoreBlock& block);

/// As softmax_in_place(), returning the operand of a product: f32 in place, bf16 rounded into `room`.
template <class T>
[[nodiscard]] Rows<const T> softmax(const ScoreBlock& block, Rows<T> room) {
  softmax_in_place(block);
  return operand(block.scores, block.rows, padded(block.keys), room);
}

// Backward attention: a block of transposed scores and their gradients.

struct GradientBlock {
  std::int64_t keys = 0;                // valid rows
  std::int64_t queries = 0;             // columns, padded
  const std::int32_t* first = nullptr;  // per key: queries [first, end) attend to it
  const std::int32_t* end = nullptr;
  float scale = 1.0F;
  float cap = 0.0F;              // 0: none
  const float* lse = nullptr;    // per query; +infinity for padding
  const float* delta = nullptr;  // per query
  Rows<float> scores;            // becomes p
  Rows<float> dp;                // becomes ds
};

void differentiate(const GradientBlock& block);

[[nodiscard]] float sink_gradient(float sink, const float* lse, const float* delta, std::int64_t count);

void dot_rows(Rows<const float> a, Rows<const float> b, std::int64_t rows, std::int64_t columns, float* sums);
void dot_rows(Rows<const bf16> a, Rows<const bf16> b, std::int64_t rows, std::int64_t columns, float* sums);

}  // namespace gpubench::cpu
