// A task per batch entry and kv head (or a share of its keys, if there are more threads). For each block of keys and
// queries it recomputes the scores transposed, keys by queries: the products for dv and dk then read them in place, and
// log-sum-exp and delta run along vectors.
//
//   p = exp(scale k q^T - lse)   dp = v do^T   ds = p (dp - delta)   delta_i = sum_d do_i o_i
//   dv += p do                   dk += ds q    dq^T += k^T ds        dq and dk times scale at the end
//   with softcap, scores x = cap t:   p = exp(x - lse)   ds = p (dp - delta) (1 - t^2)
//   dsink = -sum of exp(sink - lse) delta
//
// Sums are f32 and every gradient is rounded once. Shares of dq are added in a fixed order, without atomics:
// deterministic.
#include <omp.h>

#include <algorithm>
#include <limits>

#include "reference/cpu/attention.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/runs.h"

namespace gpubench::cpu {
namespace {

constexpr std::int64_t block_size = 128;                // keys, and queries, per block of scores
constexpr std::int64_t score_stride = block_size + 16;  // not a power of two, see attention_forward.cpp
template <class T>
constexpr std::int64_t operand_stride = block_size + 64 / static_cast<std::int64_t>(sizeof(T));

// Per-thread scratch. Lengths and widths are padded. Operands that products read by blocks are stored as one small
// matrix per block, so that rows do not compete for the same cache sets.
template <class T>
struct BackwardArrays {
  Arena& arena;
  const AttentionProblem& problem;
  const std::int64_t length = problem.length(), key_length = problem.key_length(), width = problem.width(),
                     value_width = problem.value_width();
  Rows<T> k{arena.take<T>(key_length * width), width}, v{arena.take<T>(key_length * value_width), value_width};
  T* k_columns = arena.take<T>(key_length * width);  // per block of keys [d, keys]
  Rows<T> q{arena.take<T>(length * width), width};
  Rows<T> d_o{arena.take<T>(length * value_width), value_width}, o{arena.take<T>(length * value_width), value_width};
  // Per block of queries: [queries, d] and [d, queries]; likewise with dv.
  T *packed_q = arena.take<T>(length * width), *packed_q_columns = arena.take<T>(length * width);
  T *packed_d_o = arena.take<T>(length * value_width), *packed_d_o_columns = arena.take<T>(length * value_width);
  float *lse = arena.take<float>(length), *delta = arena.take<float>(length);
  Rows<float> dk{arena.take<float>(key_length * width), width};  // over all query heads; likewise dv
  Rows<float> dv{arena.take<float>(key_length * value_width), value_width};
  float* dq_columns = arena.take<float>(length * width);  // of one head, per block of queries [d, queries]
  Rows<float> scores{arena.take<float>(block_size * score_stride), score_stride};
  Rows<float> dp{arena.take<float>(block_size * score_stride), score_stride};
  Rows<T> p{arena.take<T>(block_size * operand_stride<T>), operand_stride<T>};  // bf16 only; likewise ds
  Rows<T> ds{arena.take<T>(block_size * operand_stride<T>), operand_stride<T>};
  T* packed_ds = arena.take<T>(block_size * block_size);
  Rows<float> dq_block{arena.take<float>(block_size * width), width};  // [queries, d]
  // GradientBlock::first and end.
  std::int32_t *first = arena.take<std::int32_t>(block_size), *end = arena.take<std::int32_t>(block_size);
};

// Number of shares of a head's keys with which the threads finish together.
int key_shares(std::int64_t heads, std::int64_t blocks, int threads) {
  int best = 1;
  double best_idle = 2.0;
  for (int shares = 1; shares <= threads && shares <= blocks; ++shares) {
    const std::int64_t tasks = heads * shares;
    const std::int64_t rounds = (tasks + threads - 1) / threads;
    const double idle = 1.0 - static_cast<double>(tasks) / static_cast<double>(rounds * threads);
    if (idle < best_idle - 0.05) {
      best = shares;
      best_idle = idle;
    }
  }
  return best;
}

template <class T>
class BackwardWork {
 public:
  BackwardWork(const AttentionProblem& problem, const Named<Tensor>& operand, Workspace workspace)
      : p_(problem),
        d_o_(operand["do"]),
        q_(operand["q"]),
        k_(operand["k"]),
        v_(operand["v"]),
        o_(operand["o"]),
        lse_(elements_of<const float>(operand["lse"])),
        dq_(operand["dq"]),
        dk_(operand["dk"]),
        dv_(operand["dv"]),
        sinks_(p_.attributes.sinks ? elements_of<const float>(operand["sinks"]) : nullptr),
        dsinks_(p_.attributes.sinks ? elements_of<float>(operand["dsinks"]) : nullptr),
        shares_(shares_of(problem)),
        arena_(workspace.data),
        mask_(problem, operand.find("documents"), arena_.take<std::int32_t>(problem.boundaries())),
        sink_sums_(arena_.take<float>(problem.extents.b * problem.extents.hq)),
        dq_shares_(arena_.take<float>(shared_elements(problem))),
        threads_(workspace.data + arena_.used()) {}

  static std::size_t workspace_bytes(const AttentionProblem& problem) {
    Arena arena;
    (void)arena.take<std::int32_t>(problem.boundaries());
    (void)arena.take<float>(problem.extents.b * problem.extents.hq);
    (void)arena.take<float>(shared_elements(problem));
    return arena.used() + static_cast<std::size_t>(problem.threads) * arena_bytes<BackwardArrays<T>>(problem);
  }

  void operator()() const {
    const AttentionExtents& e = p_.extents;
#pragma omp parallel num_threads(p_.threads)
    {
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      Arena arena(threads_ + thread * arena_bytes<BackwardArrays<T>>(p_));
      const BackwardArrays<T> own{arena, p_};
      const BlockMatmulScope scope;
      if (p_.attributes.documents) {
#pragma omp for schedule(dynamic, 1)
        for (std::int64_t batch = 0; batch < e.b; ++batch) mask_.find_documents(batch);
      }
      // Results do not depend on the assignment of tasks to threads.
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t task = 0; task < e.b * e.hkv * shares_; ++task)
        differentiate_keys(task / shares_, task % shares_, own);
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t head = 0; head < (shares_ > 1 ? e.b * e.hq : 0); ++head) add_shares_of_dq(head, own);
    }
    for (std::int64_t head = 0; head < (dsinks_ == nullptr ? 0 : e.hq); ++head) {
      dsinks_[head] = 0.0F;
      for (std::int64_t batch = 0; batch < e.b; ++batch) dsinks_[head] += sink_sums_[batch * e.hq + head];
    }
  }

 private:
  static int shares_of(const AttentionProblem& p) {
    return key_shares(p.extents.b * p.extents.hkv, (p.extents.t + block_size - 1) / block_size, p.threads);
  }
  static std::int64_t shared_elements(const AttentionProblem& p) {
    const int shares = shares_of(p);
    return shares > 1 ? shares * p.extents.b * p.extents.hq * p.length() * p.width() : 0;
  }

  [[nodiscard]] std::int64_t queries_from(std::int64_t first) const {
    return std::min(block_size, p_.extents.s - first);
  }
  [[nodiscard]] std::int64_t keys_from(std::int64_t first) const { return std::min(block_size, p_.extents.t - first); }

  [[nodiscard]] float* share_of_dq(std::int64_t batch_and_head, std::int64_t share) const {
    return dq_shares_ + (batch_and_head * shares_ + share) * p_.length() * p_.width();
  }

  // dk and dv of every shares_-th block of keys of a kv head, and these keys' contribution to dq of its query heads.
  void differentiate_keys(std::int64_t pair, std::int64_t share, const BackwardArrays<T>& own) const {
    const AttentionExtents& e = p_.extents;
    const std::int64_t batch = pair / e.hkv;
    const std::int64_t kv_head = pair % e.hkv;
    load_keys(batch, kv_head, own);
    for (std::int64_t head = kv_head * p_.group(); head < (kv_head + 1) * p_.group(); ++head) {
      const std::int64_t batch_and_head = batch * e.hq + head;
      load_queries(batch, head, own);
      if (sinks_ != nullptr && share == 0) {
        sink_sums_[batch_and_head] = sink_gradient(sinks_[head], own.lse, own.delta, e.s);
      }
      float* dq_columns = shares_ > 1 ? share_of_dq(batch_and_head, share) : own.dq_columns;
      std::fill(dq_columns, dq_columns + p_.length() * p_.width(), 0.0F);
      for (std::int64_t key = share * block_size; key < e.t; key += shares_ * block_size) {
        for (std::int64_t query = 0; query < e.s; query += block_size) {
          const KeyRange seen = mask_.of(batch, query, queries_from(query));
          if (seen.first < key + block_size && key < seen.end) add_block(batch, key, query, dq_columns, own);
        }
      }
      if (shares_ == 1) write_dq(batch, head, dq_columns, own);
    }
    for (std::int64_t key = share * block_size; key < e.t; key += shares_ * block_size) {
      const std::int64_t keys = keys_from(key);
      runs().scale(own.dk[key], p_.scale, keys * p_.width(), own.dk[key]);
      store_rows(own.dk.from(key), keys, e.d, dk_(batch, kv_head).from(key));
      store_rows(own.dv.from(key), keys, e.d_v, dv_(batch, kv_head).from(key));
    }
  }

  void load_keys(std::int64_t batch, std::int64_t kv_head, const BackwardArrays<T>& own) const {
    const AttentionExtents& e = p_.extents;
    copy_padded<T>(k_(batch, kv_head), e.t, e.d, own.k);
    copy_padded<T>(v_(batch, kv_head), e.t, e.d_v, own.v);
    for (std::int64_t key = 0; key < e.t; key += block_size) {
      const std::int64_t keys = padded(keys_from(key));
      transpose(own.k.from(key), keys, p_.width(), {own.k_columns + key * p_.width(), keys});
    }
    std::fill(own.dk[0], own.dk[p_.key_length()], 0.0F);
    std::fill(own.dv[0], own.dv[p_.key_length()], 0.0F);
  }

  void load_queries(std::int64_t batch, std::int64_t head, const BackwardArrays<T>& own) const {
    const AttentionExtents& e = p_.extents;
    copy_padded<T>(q_(batch, head), e.s, e.d, own.q);
    copy_padded<T>(d_o_(batch, head), e.s, e.d_v, own.d_o);
    copy_padded<T>(o_(batch, head), e.s, e.d_v, own.o);
    dot_rows(own.d_o, own.o, p_.length(), p_.value_width(), own.delta);
    const float* lse = lse_ + (batch * e.hq + head) * e.s;
    std::copy(lse, lse + e.s, own.lse);
    std::fill(own.lse + e.s, own.lse + p_.length(), std::numeric_limits<float>::infinity());
    for (std::int64_t query = 0; query < e.s; query += block_size) {
      const std::int64_t queries = padded(queries_from(query));
      const std::int64_t width = p_.width(), value_width = p_.value_width();
      pack(own.q.from(query), queries, width, own.packed_q + query * width);
      pack(own.d_o.from(query), queries, value_width, own.packed_d_o + query * value_width);
      pack_transposed(own.q.from(query), width, queries, own.packed_q_columns + query * width);
      pack_transposed(own.d_o.from(query), value_width, queries, own.packed_d_o_columns + query * value_width);
    }
  }

  // For each key of a block, the queries of a block that attend to it.
  void find_queries(std::int64_t batch, std::int64_t key, std::int64_t query, const BackwardArrays<T>& own) const {
    const auto queries = static_cast<std::int32_t>(queries_from(query));
    std::int32_t first = 0, end = 0;
    for (std::int64_t j = 0; j < keys_from(key); ++j) {
      while (first < queries && mask_.of(batch, query + first).end <= key + j) ++first;
      while (end < queries && mask_.of(batch, query + end).first <= key + j) ++end;
      own.first[j] = first;
      own.end[j] = end;
    }
  }

  void add_block(std::int64_t batch, std::int64_t key, std::int64_t query, float* dq_columns,
                 const BackwardArrays<T>& own) const {
    const std::int64_t width = p_.width(), value_width = p_.value_width();
    const std::int64_t keys = padded(keys_from(key));
    const std::int64_t queries = padded(queries_from(query));
    const std::int64_t at = query * width, values_at = query * value_width;
    multiply({keys, queries, width, width}, own.k.from(key), own.packed_q_columns + at, own.scores, false);
    multiply({keys, queries, value_width, value_width}, own.v.from(key), own.packed_d_o_columns + values_at, own.dp,
             false);
    find_queries(batch, key, query, own);
    const auto cap = static_cast<float>(p_.attributes.softcap);
    const GradientBlock block{keys_from(key),  queries,           own.first,  own.end, p_.scale, cap,
                              own.lse + query, own.delta + query, own.scores, own.dp};
    differentiate(block);
    const Rows<const T> p = operand(own.scores, keys, queries, own.p);
    const Rows<const T> ds = operand(own.dp, keys, queries, own.ds);
    multiply({keys, value_width, queries, queries}, p, own.packed_d_o + values_at, own.dv.from(key), true);
    multiply({keys, width, queries, queries}, ds, own.packed_q + at, own.dk.from(key), true);
    pack(ds, keys, queries, own.packed_ds);
    multiply({width, queries, keys, keys}, {own.k_columns + key * width, keys}, own.packed_ds,
             {dq_columns + at, queries}, true);
  }

  void add_shares_of_dq(std::int64_t batch_and_head, const BackwardArrays<T>& own) const {
    float* sum = share_of_dq(batch_and_head, 0);
    for (int share = 1; share < shares_; ++share)
      runs().add(share_of_dq(batch_and_head, share), p_.length() * p_.width(), sum);
    write_dq(batch_and_head / p_.extents.hq, batch_and_head % p_.extents.hq, sum, own);
  }

  void write_dq(std::int64_t batch, std::int64_t head, const float* dq_columns, const BackwardArrays<T>& own) const {
    for (std::int64_t query = 0; query < p_.extents.s; query += block_size) {
      const std::int64_t queries = padded(queries_from(query));
      transpose({dq_columns + query * p_.width(), queries}, p_.width(), queries, own.dq_block);
      runs().scale(own.dq_block.data, p_.scale, queries * p_.width(), own.dq_block.data);
      store_rows(own.dq_block, queries_from(query), p_.extents.d, dq_(batch, head).from(query));
    }
  }

  AttentionProblem p_;
  Heads<T> d_o_, q_, k_, v_, o_;
  const float* lse_;
  Heads<T> dq_, dk_, dv_;
  const float* sinks_;  // or null
  float* dsinks_;
  int shares_;
  Arena arena_;
  KeyMask mask_;
  float* sink_sums_;  // [b, hq]
  float* dq_shares_;
  std::byte* threads_;
};

// Blocks of scores stay in cache; the whole matrix is not stored (Dao et al., arXiv 2205.14135). Scores, log-sum-exp
// and sums are f32; probabilities and score gradients are rounded to bf16 only as operands of products.
// q, k, v, o and their gradients have a contiguous last axis; lse is f32 and dense; scale > 0.
Plan plan_attention_backward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return attention_plan<BackwardWork>(call, tensors, context);
}

}  // namespace

Ops attention_backward_ops() { return {{attention_backward_kind, plan_attention_backward}}; }

}  // namespace gpubench::cpu
