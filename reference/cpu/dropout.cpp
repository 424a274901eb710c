// Draws the mask in blocks that stay in the L1 cache: 64 counters at a time, along vector registers.
#include "reference/ops/dropout.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/dropout.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

using Counters = hn::Repartition<std::uint64_t, Floats>;
constexpr std::int64_t groups_of_vector = hn::MaxLanes(Counters());
constexpr std::int64_t words_of_group = 4;

// Philox4x32-10 (Salmon et al., SC 2011): words[4 g .. 4 g + 4) are those of counter (first + g, offset), g < groups,
// rounded up to whole vectors; 32 bits each, stored as floats. A word is the lower half of 64 bits: the multiplication
// reads only that.
void Draw(const std::int32_t* seed, const std::int32_t* offset, std::uint64_t first, std::int64_t groups,
          float* words) {
  const Counters counters;
  const auto set = [](std::uint64_t value) HWY_ATTR { return hn::Set(Counters(), value); };
  const auto product = [](auto a, auto b)
                           HWY_ATTR { return hn::MulEven(hn::BitCast(Words(), a), hn::BitCast(Words(), b)); };
  const auto multiply_0 = set(0xD2511F53), multiply_2 = set(0xCD9E8D57);
  auto group = hn::Iota(counters, first);
  for (std::int64_t g = 0; g < groups; g += groups_of_vector) {
    auto c0 = group, c1 = hn::ShiftRight<32>(group);
    auto c2 = set(static_cast<std::uint32_t>(offset[0])), c3 = set(static_cast<std::uint32_t>(offset[1]));
    auto k0 = static_cast<std::uint32_t>(seed[0]), k1 = static_cast<std::uint32_t>(seed[1]);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const auto left = product(c0, multiply_0), right = product(c2, multiply_2);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(right), c1), set(k0));
      c1 = right;
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(left), c3), set(k1));
      c3 = left;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    const auto pair = [&](auto low, auto high) HWY_ATTR {
      return hn::BitCast(counters,
                         hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<32>(high)), hn::BitCast(Words(), low)));
    };
    alignas(64) std::uint64_t pairs[2 * groups_of_vector];
    hn::StoreInterleaved2(pair(c0, c1), pair(c2, c3), counters, pairs);
    std::memcpy(words + words_of_group * g, pairs, sizeof pairs);
    group = hn::Add(group, set(static_cast<std::uint64_t>(groups_of_vector)));
  }
}

void Drop(const float* x, const float* words, std::uint32_t least, float factor, std::int64_t count, float* y) {
  const auto drop = [=](V of, V word) HWY_ATTR {
    const auto dropped = hn::BitCast(Words(), word) < hn::Set(Words(), least);
    return hn::IfThenZeroElse(hn::RebindMask(Floats(), dropped), hn::Mul(all(factor), of));
  };
  map(y, count, drop, x, words);
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {
namespace {

HWY_EXPORT(Draw);
HWY_EXPORT(Drop);

constexpr std::int64_t words_of_group = 4;
// An additional group for blocks that start within one; whole vectors.
constexpr std::int64_t max_groups = (block_elements / words_of_group + 1 + 7) / 8 * 8;

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

  // Elements [index, index + count) of one row.
  void run_block(std::int64_t index, std::int64_t row, std::int64_t column, std::int64_t count) const {
    BlockBuffer x_buffer, y_buffer;
    std::array<float, static_cast<std::size_t>(max_groups * words_of_group)> words;
    const std::int64_t group = index / words_of_group, within = index % words_of_group;
    const std::int64_t groups = (within + count + words_of_group - 1) / words_of_group;
    HWY_DYNAMIC_DISPATCH(Draw)(seed, offset, static_cast<std::uint64_t>(group), groups, words.data());
    const std::int64_t to = row * y_rows.stride + column;
    const float* from = x.read(row * x_rows.stride + column, count, x_buffer);
    float* block = y.place(to, y_buffer);
    HWY_DYNAMIC_DISPATCH(Drop)(from, words.data() + within, least, factor, count, block);
    y.commit(to, count, block);
  }
};

// Dense tensors with equal strides, or strided rows.
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
  return own_plan(call, work,
                  {{"x", to<&DropoutWork::x>},
                   {"seed", to<&DropoutWork::seed>},
                   {"offset", to<&DropoutWork::offset>},
                   {"y", to<&DropoutWork::y>}});
}

}  // namespace

Ops dropout_ops() { return {{dropout_kind, plan_dropout}}; }

}  // namespace gpubench::cpu
#endif
