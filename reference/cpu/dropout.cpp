// The mask is drawn beside the data, in blocks that stay in the first-level cache: 64 counters at a time, whose rounds
// run along vector registers.
#include "reference/ops/dropout.h"

#include <algorithm>
#include <array>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/vector_avx512.h"

namespace gpubench::cpu {
namespace {

constexpr std::int64_t words_of_group = 4;
// Of a block that begins within a group: one group more.
constexpr std::int64_t most_groups = block_elements / words_of_group + 1;

/// Philox4x32-10 (Salmon et al., SC 2011): words[4 g .. 4 g + 4) are those of counter (first + g, offset).
GPUBENCH_VECTOR_CLONES void draw(const std::int32_t* seed, const std::int32_t* offset, std::uint64_t first,
                                 std::int64_t groups, std::uint32_t* words) {
  const auto seed_0 = static_cast<std::uint32_t>(seed[0]), seed_1 = static_cast<std::uint32_t>(seed[1]);
  const auto offset_0 = static_cast<std::uint32_t>(offset[0]), offset_1 = static_cast<std::uint32_t>(offset[1]);
#pragma omp simd
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::uint64_t group = first + static_cast<std::uint64_t>(g);
    auto c0 = static_cast<std::uint32_t>(group), c1 = static_cast<std::uint32_t>(group >> 32U);
    std::uint32_t c2 = offset_0, c3 = offset_1, k0 = seed_0, k1 = seed_1;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t left = std::uint64_t{0xD2511F53U} * c0, right = std::uint64_t{0xCD9E8D57U} * c2;
      c0 = static_cast<std::uint32_t>(right >> 32U) ^ c1 ^ k0;
      c1 = static_cast<std::uint32_t>(right);
      c2 = static_cast<std::uint32_t>(left >> 32U) ^ c3 ^ k1;
      c3 = static_cast<std::uint32_t>(left);
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    std::uint32_t* to = words + words_of_group * g;
    to[0] = c0;
    to[1] = c1;
    to[2] = c2;
    to[3] = c3;
  }
}

GPUBENCH_VECTOR_CLONES void drop(const float* x, const std::uint32_t* words, std::uint32_t least, float factor,
                                 std::int64_t count, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = words[i] < least ? 0.0F : factor * x[i];
}

#if defined(GPUBENCH_HAS_AVX512_CODE)

/// The same for a multiple of 8 groups. A word is the lower half of 64 bits, of which the multiplication reads no
/// more; loops of the compiler multiply whole ones, at half the speed.
GPUBENCH_AVX512 void draw_eights(const std::int32_t* seed, const std::int32_t* offset, std::uint64_t first,
                                 std::int64_t groups, std::uint32_t* words) {
  const __m512i multiply_0 = _mm512_set1_epi64(0xD2511F53), multiply_2 = _mm512_set1_epi64(0xCD9E8D57);
  const __m512i even = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), odd = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  __m512i group =
      _mm512_add_epi64(_mm512_set1_epi64(static_cast<long long>(first)), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
  for (std::int64_t g = 0; g < groups; g += 8, group = _mm512_add_epi64(group, _mm512_set1_epi64(8))) {
    __m512i c0 = group, c1 = _mm512_srli_epi64(group, 32);
    __m512i c2 = _mm512_set1_epi64(offset[0]), c3 = _mm512_set1_epi64(offset[1]);
    auto k0 = static_cast<std::uint32_t>(seed[0]), k1 = static_cast<std::uint32_t>(seed[1]);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const __m512i left = _mm512_mul_epu32(c0, multiply_0), right = _mm512_mul_epu32(c2, multiply_2);
      constexpr int xor_of_three = 0x96;
      c0 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(right, 32), c1, _mm512_set1_epi64(k0), xor_of_three);
      c1 = right;
      c2 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(left, 32), c3, _mm512_set1_epi64(k1), xor_of_three);
      c3 = left;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    constexpr __mmask16 upper = 0xAAAA;
    const __m512i c01 = _mm512_mask_blend_epi32(upper, c0, _mm512_slli_epi64(c1, 32));
    const __m512i c23 = _mm512_mask_blend_epi32(upper, c2, _mm512_slli_epi64(c3, 32));
    std::uint32_t* to = words + words_of_group * g;
    _mm512_storeu_si512(to, _mm512_permutex2var_epi64(c01, even, c23));
    _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi64(c01, odd, c23));
  }
}

#endif

struct DropoutWork {
  Source x;
  Sink y;
  RowView x_rows, y_rows;
  const std::int32_t *seed = nullptr, *offset = nullptr;
  std::uint32_t least = 0;
  float factor = 1.0F;
  int threads = 1;

  void operator()() const {
    parallel_chunks(threads, y_rows.elements(), element_grain, [this](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const std::int64_t column = begin % y_rows.columns;
        const std::int64_t count = std::min({y_rows.columns - column, end - begin, block_elements});
        run_block(begin, begin / y_rows.columns, column, count);
        begin += count;
      }
      stream_fence();
    });
  }

  // Elements [index, index + count), which are of one row.
  void run_block(std::int64_t index, std::int64_t row, std::int64_t column, std::int64_t count) const {
    BlockBuffer x_buffer, y_buffer;
    std::array<std::uint32_t, static_cast<std::size_t>(most_groups * words_of_group)> words;
    const std::int64_t group = index / words_of_group, within = index % words_of_group;
    const std::int64_t groups = (within + count + words_of_group - 1) / words_of_group;
    std::int64_t eights = 0;
#if defined(GPUBENCH_HAS_AVX512_CODE)
    if (avx512::available()) {
      eights = groups / 8 * 8;
      draw_eights(seed, offset, static_cast<std::uint64_t>(group), eights, words.data());
    }
#endif
    draw(seed, offset, static_cast<std::uint64_t>(group + eights), groups - eights,
         words.data() + words_of_group * eights);
    const std::int64_t to = row * y_rows.stride + column;
    const float* from = x.read(row * x_rows.stride + column, count, x_buffer);
    float* block = y.place(to, y_buffer);
    drop(from, words.data() + within, least, factor, count, block);
    y.commit(to, count, block);
  }
};

}  // namespace

Plan plan_dropout(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const double p = call.attributes.as<Dropout>().p;
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec &x = operand["x"], &y = operand["y"];
  expect_f32_or_bf16(call, x);
  expect_type(call, y, x.dtype);
  expect_type(call, operand, {"seed", "offset"}, DType::i32);
  expect_row_major(call, operand, {"seed", "offset"});
  DropoutWork work;
  const bool one_run = share_one_run(std::array{x, y});
  const std::int64_t elements = x.shape.elements();
  work.x_rows = one_run ? RowView{1, elements, elements} : rows_of(call, x);
  work.y_rows = one_run ? work.x_rows : rows_of(call, y);
  work.least = static_cast<std::uint32_t>(p * 0x1p32);
  work.factor = static_cast<float>(1.0 / (1.0 - p));
  work.threads = context.threads;
  return plan_of(own_implementation(), 0,
                 [work, call, streaming = worth_streaming(y.bytes())](std::span<const Tensor> bound, Workspace) {
                   const Named<Tensor> tensor(call, bound);
                   DropoutWork result = work;
                   result.x = Source(tensor["x"]);
                   result.y = Sink(tensor["y"], streaming && tensor["x"].data != tensor["y"].data);
                   result.seed = elements_of<const std::int32_t>(tensor["seed"]);
                   result.offset = elements_of<const std::int32_t>(tensor["offset"]);
                   return result;
                 });
}

}  // namespace gpubench::cpu
