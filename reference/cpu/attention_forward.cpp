// One task per batch entry, head and block of queries: scores of a chunk of keys, softmax with a running maximum, and
// the weighted sum of values, chunk by chunk. Keys and values are packed once for all tasks.
//
// A value that is NaN or infinite also reaches earlier queries of its own block of queries (0 * NaN); a key does not.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reference/cpu/attention.h"
#include "reference/cpu/attention_problem.h"
#include "reference/cpu/vector_clones.h"
#include "reference/cpu/vector_math.h"

namespace gpubench::cpu {
namespace {

constexpr std::int64_t query_block = 64;
constexpr std::int64_t key_chunk = 512;
// Rows of whole powers of two would fall on the same few cache lines' places; one line more spreads them.
constexpr std::int64_t score_stride = key_chunk + 16;
template <class T>
constexpr std::int64_t weight_stride = key_chunk + 64 / static_cast<std::int64_t>(sizeof(T));

constexpr float infinity = std::numeric_limits<float>::infinity();

// One block of scores on its way through the softmax.
struct ScoreBlock {
  std::int64_t rows = 0;
  std::int64_t keys = 0;           // in this chunk
  std::int64_t first_visible = 0;  // how many of them row 0 sees; each further row sees one more (causal)
  float scale = 1.0F;
  Rows<float> scores;  // becomes exp(scale score - maximum); 0 for what is cut off
  Rows<float> o;       // shrinks where the maximum grows
  std::int64_t width = 0;
  float* maxima = nullptr;  // of scaled scores, per row
  float* sums = nullptr;    // of exp(scale score - maximum)
};

constexpr std::int64_t lanes = 16;

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

GPUBENCH_VECTOR_CLONES void softmax(const ScoreBlock& block) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float* scores = block.scores[row];
    const std::int64_t visible = std::clamp<std::int64_t>(block.first_visible + row, 0, block.keys);
    // Whole vectors only: what is cut off gets weight 0 by a score of -infinity.
    const std::int64_t processed = (visible + lanes - 1) / lanes * lanes;
    std::fill(scores + visible, scores + processed, -infinity);
    std::fill(scores + processed, scores + padded(block.keys), 0.0F);
    if (visible == 0) continue;

    const float before = block.maxima[row];
    const float chunk_largest = largest(scores, processed) * block.scale;
    const float maximum = chunk_largest > before ? chunk_largest : before;
    const float sum = exponentiate(scores, processed, block.scale, maximum);
    const float shrink = vector_exp(before - maximum);
    block.maxima[row] = maximum;
    block.sums[row] = block.sums[row] * shrink + sum;
    if (shrink == 1.0F) continue;
    float* o = block.o[row];
    for (std::int64_t i = 0; i < block.width; ++i) o[i] *= shrink;
  }
}

// Divides by the sums.
GPUBENCH_VECTOR_CLONES void normalize(Rows<float> o, const float* sums, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float share = 1.0F / sums[row];
    float* values = o[row];
    for (std::int64_t i = 0; i < width; ++i) values[i] *= share;
  }
}

// What every thread works with.
template <class T>
struct ThreadArrays {
  T* raw;  // [key_chunk, width]: keys or values, padded, before packing
  T* q;
  Rows<float> scores;
  Rows<T> weights;  // bf16 only
  Rows<float> o;
  float* maxima;
  float* sums;

  ThreadArrays(Arena& arena, std::int64_t width)
      : raw(arena.take<T>(key_chunk * width)),
        q(arena.take<T>(query_block * width)),
        scores{arena.take<float>(query_block * score_stride), score_stride},
        weights{arena.take<T>(query_block * weight_stride<T>), weight_stride<T>},
        o{arena.take<float>(query_block * width), width},
        maxima(arena.take<float>(query_block)),
        sums(arena.take<float>(query_block)) {}
};

template <class T>
std::size_t bytes_per_thread(std::int64_t width) {
  Arena arena;
  const ThreadArrays<T> measured(arena, width);
  return arena.used();
}

template <class T>
class Forward {
 public:
  Forward(const AttentionProblem& problem, std::span<const Tensor> tensors, Workspace workspace)
      : p_(problem),
        q_(tensors[0]),
        k_(tensors[1]),
        v_(tensors[2]),
        o_(tensors[3]),
        lse_(elements_of<float>(tensors[4])) {
    Arena arena(workspace.data);
    packed_k_ = arena.take<T>(packed_elements(problem));
    packed_v_ = arena.take<T>(packed_elements(problem));
    threads_ = workspace.data + arena.used();
  }

  static std::size_t workspace_bytes(const AttentionProblem& problem) {
    Arena arena;
    (void)arena.take<T>(packed_elements(problem));
    (void)arena.take<T>(packed_elements(problem));
    return arena.used() + static_cast<std::size_t>(problem.threads) * bytes_per_thread<T>(problem.width());
  }

  void operator()() const {
    const AttentionExtents& e = p_.extents;
    const std::int64_t chunks = (e.s + key_chunk - 1) / key_chunk;
    const std::int64_t blocks = (e.s + query_block - 1) / query_block;
#pragma omp parallel num_threads(p_.threads)
    {
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      Arena arena(threads_ + thread * bytes_per_thread<T>(p_.width()));
      const ThreadArrays<T> own(arena, p_.width());
      const BlockMatmulScope scope;
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t task = 0; task < e.b * e.hkv * chunks; ++task) pack_chunk(task / chunks, task % chunks, own);
        // Who takes which block does not matter to the result. Late blocks of a head are the long ones (causal), so
        // first.
#pragma omp for schedule(dynamic, 1)
      for (std::int64_t task = 0; task < e.b * e.hq * blocks; ++task) {
        attend(task / blocks, blocks - 1 - task % blocks, own);
      }
    }
  }

 private:
  static std::int64_t packed_elements(const AttentionProblem& p) {
    return p.extents.b * p.extents.hkv * p.length() * p.width();
  }

  // Where chunk `chunk` of the packed keys or values of `pair` (batch entry and kv head) begins.
  [[nodiscard]] std::int64_t packed_at(std::int64_t pair, std::int64_t chunk) const {
    return (pair * p_.length() + chunk * key_chunk) * p_.width();
  }

  void pack_chunk(std::int64_t pair, std::int64_t chunk, const ThreadArrays<T>& own) const {
    const std::int64_t batch = pair / p_.extents.hkv;
    const std::int64_t head = pair % p_.extents.hkv;
    const std::int64_t first = chunk * key_chunk;
    const std::int64_t keys = std::min(key_chunk, p_.extents.s - first);
    const Rows<T> raw{own.raw, p_.width()};
    const Rows<T> k = k_(batch, head).from(first);
    const Rows<T> v = v_(batch, head).from(first);
    copy_padded<T>({k.data, k.stride}, keys, p_.extents.d, raw);
    pack_transposed({raw.data, raw.stride}, p_.width(), padded(keys), packed_k_ + packed_at(pair, chunk));
    copy_padded<T>({v.data, v.stride}, keys, p_.extents.d, raw);
    pack({raw.data, raw.stride}, padded(keys), p_.width(), packed_v_ + packed_at(pair, chunk));
  }

  // Queries [64 block, 64 block + 64) of one head.
  void attend(std::int64_t batch_and_head, std::int64_t block, const ThreadArrays<T>& own) const {
    const AttentionExtents& e = p_.extents;
    const std::int64_t batch = batch_and_head / e.hq;
    const std::int64_t head = batch_and_head % e.hq;
    const std::int64_t pair = batch * e.hkv + head / p_.group();
    const std::int64_t first = block * query_block;
    const std::int64_t rows = std::min(query_block, e.s - first);
    const std::int64_t seen = p_.causal ? first + rows : e.s;
    const Rows<T> q = q_(batch, head).from(first);
    copy_padded<T>({q.data, q.stride}, rows, e.d, {own.q, p_.width()});
    std::fill(own.maxima, own.maxima + rows, -infinity);
    std::fill(own.sums, own.sums + rows, 0.0F);

    for (std::int64_t key = 0; key < seen; key += key_chunk) {
      const std::int64_t keys = std::min(key_chunk, seen - key);
      const std::int64_t packed_chunk = packed_at(pair, key / key_chunk);
      multiply({padded(rows), padded(keys), p_.width(), p_.width()}, {own.q, p_.width()}, packed_k_ + packed_chunk,
               own.scores, false);
      const Rows<const T> weights = weigh(rows, keys, p_.causal ? first + 1 - key : keys, key == 0, own);
      // Values are packed by whole chunks; where fewer keys are seen, the sum ends early.
      const std::int64_t chunk_keys = padded(std::min(key_chunk, e.s - key));
      multiply({padded(rows), p_.width(), padded(keys), chunk_keys}, weights, packed_v_ + packed_chunk, own.o,
               key != 0);
    }
    normalize(own.o, own.sums, rows, p_.width());
    store_rows({own.o.data, own.o.stride}, rows, e.d, o_(batch, head).from(first));
    float* lse = lse_ + batch_and_head * e.s + first;
    for (std::int64_t row = 0; row < rows; ++row) lse[row] = own.maxima[row] + std::log(own.sums[row]);
  }

  // Scores to weights, as operand. Few rows at a time, so that they are still in the nearest cache when they are
  // rounded.
  [[nodiscard]] Rows<const T> weigh(std::int64_t rows, std::int64_t keys, std::int64_t first_visible,
                                    bool is_first_chunk, const ThreadArrays<T>& own) const {
    constexpr std::int64_t step = 4;
    for (std::int64_t row = 0; row < rows; row += step) {
      const std::int64_t count = std::min(step, rows - row);
      softmax({count, keys, p_.causal ? first_visible + row : first_visible, p_.scale, own.scores.from(row),
               own.o.from(row), is_first_chunk ? 0 : p_.width(), own.maxima + row, own.sums + row});
      (void)operand({own.scores[row], own.scores.stride}, count, padded(keys), own.weights.from(row));
    }
    return operand({own.scores.data, own.scores.stride}, 0, 0, own.weights);
  }

  AttentionProblem p_;
  Heads<T> q_, k_, v_, o_;
  float* lse_;
  T* packed_k_ = nullptr;
  T* packed_v_ = nullptr;
  std::byte* threads_ = nullptr;
};

template <class T>
Plan plan_as(const AttentionProblem& problem) {
  return plan_of(block_matmul_implementation(problem.is_bf16), Forward<T>::workspace_bytes(problem),
                 [problem](std::span<const Tensor> tensors, Workspace workspace) {
                   return Forward<T>(problem, tensors, workspace);
                 });
}

}  // namespace

Plan plan_attention_forward(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  constexpr std::array<std::size_t, 4> heads{0, 1, 2, 3};
  const AttentionProblem problem = attention_problem(call, tensors, 0, heads, 4, context);
  return problem.is_bf16 ? plan_as<bf16>(problem) : plan_as<float>(problem);
}

}  // namespace gpubench::cpu
