// A task per batch entry, head and block of queries. For each chunk of keys it computes scores, softmax with a running
// maximum, and the weighted sum of values. Keys and values are packed once for all tasks.
//
// Products of blocks multiply masked values by 0. If that may have produced a NaN (0 * NaN), the block of queries is
// repeated without them.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/cpu/attention.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/runs.h"

namespace gpubench::cpu {
namespace {

constexpr std::int64_t query_block = 64;
constexpr std::int64_t key_chunk = 512;
// With this many pairs of batch entry and kv head per thread, each thread packs its own pairs and uses them from its
// cache.
constexpr std::int64_t pairs_per_thread = 6;
// Rows a power of two apart would share few cache sets; an additional line spreads them.
constexpr std::int64_t chunk_stride = key_chunk + 16;
template <class T>
constexpr std::int64_t weight_stride = key_chunk + 64 / static_cast<std::int64_t>(sizeof(T));

// Divides by the sums, which are 0 for queries without keys; false if an element is NaN or infinite.
bool normalize(Rows<float> o, const float* sums, std::int64_t rows, std::int64_t width) {
  bool finite = true;
  for (std::int64_t row = 0; row < rows; ++row)
    finite = !runs().unscale(o[row], sums[row] == 0.0F ? 0.0F : 1.0F / sums[row], width, o[row]) && finite;
  return finite;
}

// Per-thread scratch.
template <class T>
struct ForwardArrays {
  Arena& arena;
  const AttentionProblem& problem;
  // [key_chunk, larger width]: padded keys or values before packing.
  T* raw = arena.take<T>(key_chunk * std::max(problem.width(), problem.value_width()));
  T* q = arena.take<T>(query_block * problem.width());
  Rows<float> scores{arena.take<float>(query_block * chunk_stride), chunk_stride};
  Rows<T> weights{arena.take<T>(query_block * weight_stride<T>), weight_stride<T>};  // bf16 only
  Rows<float> o{arena.take<float>(query_block * problem.value_width()), problem.value_width()};
  float* maxima = arena.take<float>(query_block);
  float* sums = arena.take<float>(query_block);
  KeyRange* seen = arena.take<KeyRange>(query_block);
};

template <class T>
class ForwardWork {
 public:
  ForwardWork(const AttentionProblem& problem, const Named<Tensor>& operand, Workspace workspace)
      : p_(problem),
        q_(operand["q"]),
        k_(operand["k"]),
        v_(operand["v"]),
        o_(operand["o"]),
        lse_(elements_of<float>(operand["lse"])),
        sinks_(p_.attributes.sinks ? elements_of<const float>(operand["sinks"]) : nullptr),
        arena_(workspace.data),
        mask_(problem, operand.find("documents"), arena_.take<std::int32_t>(problem.boundaries())),
        packed_k_(arena_.take<T>(packed_rows(problem) * problem.width())),
        packed_v_(arena_.take<T>(packed_rows(problem) * problem.value_width())),
        threads_(workspace.data + arena_.used()) {}

  static std::size_t workspace_bytes(const AttentionProblem& problem) {
    Arena arena;
    (void)arena.take<std::int32_t>(problem.boundaries());
    (void)arena.take<T>(packed_rows(problem) * problem.width());
    (void)arena.take<T>(packed_rows(problem) * problem.value_width());
    return arena.used() + static_cast<std::size_t>(problem.threads) * arena_bytes<ForwardArrays<T>>(problem);
  }

  void operator()() const {
    const AttentionExtents& e = p_.extents;
    const std::int64_t chunks = (e.t + key_chunk - 1) / key_chunk;
    const std::int64_t blocks = (e.s + query_block - 1) / query_block;
    const std::int64_t pairs = e.b * e.hkv;
#pragma omp parallel num_threads(p_.threads)
    {
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      Arena arena(threads_ + thread * arena_bytes<ForwardArrays<T>>(p_));
      const ForwardArrays<T> own{arena, p_};
      const BlockMatmulScope scope;
      if (p_.attributes.documents) {
#pragma omp for schedule(dynamic, 1)
        for (std::int64_t batch = 0; batch < e.b; ++batch) mask_.find_documents(batch);
      }
      if (pairs >= pairs_per_thread * p_.threads) {
        const auto slot = static_cast<std::int64_t>(thread);
#pragma omp for schedule(dynamic, 1)
        for (std::int64_t pair = 0; pair < pairs; ++pair) {
          for (std::int64_t chunk = 0; chunk < chunks; ++chunk) pack_chunk(pair, chunk, slot, own);
          for (std::int64_t task = 0; task < p_.group() * blocks; ++task) {
            attend(pair * p_.group() + task / blocks, task % blocks, slot, own);
          }
        }
      } else {
#pragma omp for schedule(dynamic, 1)
        for (std::int64_t task = 0; task < pairs * chunks; ++task) {
          pack_chunk(task / chunks, task % chunks, task / chunks, own);
        }
        // Results do not depend on the assignment of blocks to threads. The last blocks of a head are the longest
        // (causal) and start first.
#pragma omp for schedule(dynamic, 1)
        for (std::int64_t task = 0; task < e.b * e.hq * blocks; ++task) {
          const std::int64_t head = task / blocks;
          attend(head, blocks - 1 - task % blocks, head / p_.group(), own);
        }
      }
    }
  }

 private:
  static std::int64_t packed_rows(const AttentionProblem& p) { return p.extents.b * p.extents.hkv * p.key_length(); }

  // First row of chunk `chunk` in the packed keys or values of `slot`, which holds one pair of batch entry and kv head.
  [[nodiscard]] std::int64_t packed_row(std::int64_t slot, std::int64_t chunk) const {
    return slot * p_.key_length() + chunk * key_chunk;
  }

  void pack_chunk(std::int64_t pair, std::int64_t chunk, std::int64_t slot, const ForwardArrays<T>& own) const {
    const std::int64_t batch = pair / p_.extents.hkv;
    const std::int64_t head = pair % p_.extents.hkv;
    const std::int64_t first = chunk * key_chunk;
    const std::int64_t keys = std::min(key_chunk, p_.extents.t - first);
    const std::int64_t row = packed_row(slot, chunk), width = p_.width(), value_width = p_.value_width();
    const Rows<const T> k = as_padded(k_(batch, head).from(first), keys, p_.extents.d, {own.raw, width});
    pack_transposed(k, width, padded(keys), packed_k_ + row * width);
    const Rows<const T> v = as_padded(v_(batch, head).from(first), keys, p_.extents.d_v, {own.raw, value_width});
    pack(v, padded(keys), value_width, packed_v_ + row * value_width);
  }

  // `rows` rows of d elements, zero-padded: in place if no padding is needed, else copied to `room`. Packing reads
  // pairs, so the stride must be even.
  [[nodiscard]] static Rows<const T> as_padded(Rows<T> from, std::int64_t rows, std::int64_t d, Rows<T> room) {
    if (d == room.stride && rows == padded(rows) && from.stride % 2 == 0) return from;
    copy_padded<T>(from, rows, d, room);
    return room;
  }

  struct Block {
    std::int64_t batch = 0, head = 0, first = 0, rows = 0;
  };

  void attend(std::int64_t batch_and_head, std::int64_t block, std::int64_t slot, const ForwardArrays<T>& own) const {
    const AttentionExtents& e = p_.extents;
    const std::int64_t batch = batch_and_head / e.hq;
    const std::int64_t head = batch_and_head % e.hq;
    const std::int64_t first = block * query_block;
    const std::int64_t rows = std::min(query_block, e.s - first);
    copy_padded<T>(q_(batch, head).from(first), rows, e.d, {own.q, p_.width()});
    const Block queries{batch, head, first, rows};
    weigh(queries, slot, own, false);
    if (!normalize(own.o, own.sums, rows, p_.value_width()) && p_.masks()) {
      weigh(queries, slot, own, true);
      (void)normalize(own.o, own.sums, rows, p_.value_width());
    }
    store_rows(own.o, rows, e.d_v, o_(batch, head).from(first));
    float* lse = lse_ + batch_and_head * e.s + first;
    for (std::int64_t row = 0; row < rows; ++row) lse[row] = own.maxima[row] + std::log(own.sums[row]);
  }

  // Maxima and sums of the queries in own.q, and the unnormalized weighted sum of values in own.o. `only_seen`: key by
  // key, without multiplying masked values by 0.
  void weigh(const Block& queries, std::int64_t slot, const ForwardArrays<T>& own, bool only_seen) const {
    const AttentionExtents& e = p_.extents;
    const std::int64_t rows = queries.rows;
    const auto cap = static_cast<float>(p_.attributes.softcap);
    const KeyRange seen = mask_.of(queries.batch, queries.first, rows);
    for (std::int64_t row = 0; row < rows; ++row) own.seen[row] = mask_.of(queries.batch, queries.first + row);
    // A sink is an earlier score with a value of 0.
    std::fill(own.maxima, own.maxima + rows,
              sinks_ == nullptr ? -std::numeric_limits<float>::infinity() : sinks_[queries.head]);
    std::fill(own.sums, own.sums + rows, sinks_ == nullptr ? 0.0F : 1.0F);

    if (seen.end == 0) std::fill(own.o[0], own.o[rows], 0.0F);
    const std::int64_t begin = seen.first / block_grain * block_grain;
    std::int64_t keys = 0;
    for (std::int64_t key = begin; key < seen.end; key += keys) {
      const std::int64_t inside = key % key_chunk;  // windows may start within a chunk
      keys = std::min(key_chunk - inside, seen.end - key);
      const std::int64_t chunk_row = packed_row(slot, key / key_chunk);
      multiply({padded(rows), padded(keys), p_.width(), p_.width()}, {own.q, p_.width()},
               packed_k_ + (chunk_row + inside) * p_.width(), own.scores, false);
      if (cap > 0.0F) cap_scores(own.scores, rows, keys, p_.scale, cap);
      const float scale = cap > 0.0F ? 1.0F : p_.scale;
      const std::int64_t width = key == begin ? 0 : p_.value_width();
      const ScoreBlock block{rows, keys, key, own.seen, scale, own.scores, own.o, width, own.maxima, own.sums};
      const Rows<const T> weights = softmax(block, own.weights);
      if (only_seen) {
        if (key == begin) std::fill(own.o[0], own.o[rows], 0.0F);
        add_seen(queries, block, weights);
        continue;
      }
      // Values are packed by whole chunks; with fewer visible keys the sum ends early.
      const std::int64_t chunk_keys = padded(std::min(key_chunk, e.t - (key - inside)));
      multiply({padded(rows), p_.value_width(), padded(keys), chunk_keys}, weights,
               packed_v_ + chunk_row * p_.value_width() + inside * block_grain, own.o, key != begin);
    }
  }

  // o += weights v over the keys of a block, only those visible to each query.
  void add_seen(const Block& queries, const ScoreBlock& block, Rows<const T> weights) const {
    const Rows<T> v = v_(queries.batch, queries.head / p_.group()).from(block.first_key);
    for (std::int64_t row = 0; row < queries.rows; ++row) {
      const KeyRange seen = seen_in(block, row);
      for (std::int64_t j = seen.first; j < seen.end; ++j) {
        const float weight = widen(weights[row][j]);
        for (std::int64_t c = 0; c < p_.extents.d_v; ++c) block.o[row][c] += weight * widen(v[j][c]);
      }
    }
  }

  AttentionProblem p_;
  Heads<T> q_, k_, v_, o_;
  float* lse_;
  const float* sinks_;  // or null
  Arena arena_;
  KeyMask mask_;
  T *packed_k_, *packed_v_;
  std::byte* threads_;
};

// Blocks of scores stay in cache; the whole matrix is not stored (Dao et al., arXiv 2205.14135). Scores, log-sum-exp
// and sums are f32; probabilities are rounded to bf16 only as operands of products.
// q, k, v, o have a contiguous last axis; lse is f32 and dense; scale > 0.
Plan plan_attention_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  return attention_plan<ForwardWork>(call, tensors, context);
}

}  // namespace

Ops attention_forward_ops() { return {{attention_forward_kind, plan_attention_forward}}; }

}  // namespace gpubench::cpu
