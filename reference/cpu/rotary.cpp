// A thread rotates a run of heads of one token, which share a table row, in the L1 cache. Large outputs are computed in
// a scratch block and streamed.
#include "reference/cpu/kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/vector_targets.h"
#include "reference/ops/rotary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/rotary.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

#ifndef GPUBENCH_ROTARY_HEADS
#define GPUBENCH_ROTARY_HEADS
namespace gpubench::cpu {

/// Heads of one token, whose pairs rotate by the same angles. Strides in bytes between heads. x and y may be the same
/// memory: each pair is read before it is written.
struct HeadRun {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  std::int64_t x_stride = 0, y_stride = 0;
  std::int64_t heads = 0;
  std::int64_t pairs = 0;
  const float *cos = nullptr, *sin = nullptr;
  float sign = 1.0F;  ///< -1 for the inverse
};

}  // namespace gpubench::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

template <class T>
HWY_INLINE void turn_half(const std::byte* x, std::byte* y, const HeadRun& run) {
  const T* from = reinterpret_cast<const T*>(x);
  T* to = reinterpret_cast<T*>(y);
  const std::int64_t pairs = run.pairs;
  const auto turn = [=, cos = run.cos, sin = run.sin, sign = all(run.sign)](auto lanes, std::int64_t i) HWY_ATTR {
    const V c = lanes.from(cos + i), s = hn::Mul(sign, lanes.from(sin + i));
    const V a = lanes.from(from + i), b = lanes.from(from + i + pairs);
    lanes.to(hn::NegMulAdd(b, s, hn::Mul(a, c)), to + i);
    lanes.to(hn::MulAdd(a, s, hn::Mul(b, c)), to + i + pairs);
  };
  each_vector(pairs, turn);
}

HWY_INLINE void turn_interleaved_f32(const std::byte* x, std::byte* y, const HeadRun& run) {
  const std::int64_t pairs = run.pairs;
  const float *cos = run.cos, *sin = run.sin;
  const auto turn = [=, sign = all(run.sign)](const float* from, V c, V of_sin, float* to) HWY_ATTR {
    const V s = hn::Mul(sign, of_sin);
    V a, b;
    hn::LoadInterleaved2(Floats(), from, a, b);
    hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), Floats(), to);
  };
  const float* from = reinterpret_cast<const float*>(x);
  float* to = reinterpret_cast<float*>(y);
  std::int64_t i = 0;
  for (; i + lane_count <= pairs; i += lane_count) turn(from + 2 * i, load(cos + i), load(sin + i), to + 2 * i);
  if (i == pairs) return;
  float some[2 * lane_count] = {};
  std::copy_n(from + 2 * i, 2 * (pairs - i), some);
  turn(some, load_some(cos + i, pairs - i), load_some(sin + i, pairs - i), some);
  std::copy_n(some, 2 * (pairs - i), to + 2 * i);
}

// A pair of neighbouring bf16 is one 32-bit number, kept in a float: no deinterleaving needed.
static_assert(std::endian::native == std::endian::little);

HWY_INLINE void turn_interleaved_bf16(const std::byte* x, std::byte* y, const HeadRun& run) {
  const std::int64_t pairs = run.pairs;
  const float *cos = run.cos, *sin = run.sin;
  const auto turn = [=, sign = all(run.sign)](V pair, V c, V of_sin) HWY_ATTR {
    const V s = hn::Mul(sign, of_sin);
    const auto bits = hn::BitCast(Words(), pair), upper = hn::Set(Words(), 0xFFFF0000U);
    const V a = hn::BitCast(Floats(), hn::ShiftLeft<16>(bits)), b = hn::BitCast(Floats(), hn::And(bits, upper));
    const auto first = rounded_words(hn::NegMulAdd(b, s, hn::Mul(a, c)));
    const auto second = rounded_words(hn::MulAdd(a, s, hn::Mul(b, c)));
    return hn::BitCast(Floats(), hn::Or(first, hn::ShiftLeft<16>(second)));
  };
  std::int64_t i = 0;
  for (; i + lane_count <= pairs; i += lane_count) {
    const auto from = hn::LoadU(Words(), reinterpret_cast<const std::uint32_t*>(x + 4 * i));
    const V turned = turn(hn::BitCast(Floats(), from), load(cos + i), load(sin + i));
    hn::StoreU(hn::BitCast(Words(), turned), Words(), reinterpret_cast<std::uint32_t*>(y + 4 * i));
  }
  if (i == pairs) return;
  float some[lane_count] = {};
  const auto bytes = static_cast<std::size_t>(4 * (pairs - i));
  std::memcpy(some, x + 4 * i, bytes);
  store(turn(load(some), load_some(cos + i, pairs - i), load_some(sin + i, pairs - i)), some);
  std::memcpy(y + 4 * i, some, bytes);
}

using TurnHeads = void (*)(const HeadRun& run);

template <void turn(const std::byte* x, std::byte* y, const HeadRun& run)>
void turn_heads(const HeadRun& given) {
  const HeadRun run = given;
  for (std::int64_t head = 0; head < run.heads; ++head)
    turn(run.x + head * run.x_stride, run.y + head * run.y_stride, run);
}

TurnHeads FindTurn(bool interleaved, bool is_bf16) {
  if (interleaved) return is_bf16 ? turn_heads<turn_interleaved_bf16> : turn_heads<turn_interleaved_f32>;
  return is_bf16 ? turn_heads<turn_half<bf16>> : turn_heads<turn_half<float>>;
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {
namespace {

HWY_EXPORT(FindTurn);

/// In elements.
struct Strides {
  std::int64_t sequence = 0, token = 0, head = 0;
};

Strides strides_of(const TensorSpec& tensor) {
  const std::vector<std::int64_t>& strides = tensor.layout.strides;
  return {strides[0], strides[1], strides[2]};
}

constexpr std::int64_t scratch_bytes = 8192;

struct RotaryWork {
  void (*turn)(const HeadRun& run) = nullptr;
  RotaryExtents extents;
  Strides x_strides, y_strides;
  std::int64_t element_bytes = 4;
  float sign = 1.0F;
  int threads = 1;
  bool heads_touch = false;  // the heads of y are contiguous
  const std::byte* x = nullptr;
  Target y;
  const float* cos = nullptr;
  const float* sin = nullptr;

  void operator()() const {
    const std::int64_t rows = extents.b * extents.s * extents.h;
    const bool streaming = y.streaming && heads_touch;
    parallel_chunks(threads, rows, row_grain(extents.d), [this, streaming](std::int64_t begin, std::int64_t end) {
      const std::int64_t most = streaming ? scratch_bytes / (extents.d * element_bytes) : extents.h;
      while (begin < end) {
        const std::int64_t head = begin % extents.h;
        const std::int64_t heads = std::min({extents.h - head, most, end - begin});
        turn_heads(begin / extents.h, head, heads, streaming);
        begin += heads;
      }
      stream_fence();
    });
  }

  void turn_heads(std::int64_t token, std::int64_t head, std::int64_t heads, bool streaming) const {
    const std::int64_t sequence = token / extents.s;
    const std::int64_t position = token % extents.s;
    const auto place = [&](const Strides& strides) {
      return (sequence * strides.sequence + position * strides.token + head * strides.head) * element_bytes;
    };
    HeadRun run;
    run.x = x + place(x_strides);
    run.y = y.data + place(y_strides);
    run.x_stride = x_strides.head * element_bytes;
    run.y_stride = y_strides.head * element_bytes;
    run.heads = heads;
    run.pairs = extents.d / 2;
    run.cos = cos + position * run.pairs;
    run.sin = sin + position * run.pairs;
    run.sign = sign;
    if (!streaming) return turn(run);
    alignas(64) std::array<std::byte, scratch_bytes> scratch;
    std::byte* const to = run.y;
    run.y = scratch.data();
    turn(run);
    stream_store(to, scratch.data(), static_cast<std::size_t>(heads * extents.d * element_bytes));
  }
};

// Any strides between heads, tokens and sequences.
Plan plan_rotary(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Rotary& attributes = call.attributes.as<Rotary>();
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec& x = operand["x"];
  expect_f32_or_bf16(call, x);
  expect_type(call, operand["y"], x.dtype);
  expect_type(call, operand, {"cos", "sin"}, DType::f32);
  expect_row_major(call, operand, {"cos", "sin"});
  RotaryWork work;
  work.turn =
      HWY_DYNAMIC_DISPATCH(FindTurn)(attributes.pairing == Rotary::Pairing::interleaved, x.dtype == DType::bf16);
  work.extents = rotary_extents(x);
  work.x_strides = strides_of(x);
  work.y_strides = strides_of(operand["y"]);
  work.element_bytes = static_cast<std::int64_t>(size_of(x.dtype));
  work.sign = attributes.inverse ? -1.0F : 1.0F;
  work.threads = context.threads;
  const std::int64_t d = work.extents.d;
  work.heads_touch = work.y_strides.head == d && d * work.element_bytes <= scratch_bytes;
  return own_plan(call, work,
                  {{"x", to<&RotaryWork::x>},
                   {"cos", to<&RotaryWork::cos>},
                   {"sin", to<&RotaryWork::sin>},
                   {"y", to<&RotaryWork::y>}});
}

}  // namespace

Ops rotary_ops() { return {{rotary_kind, plan_rotary}}; }

}  // namespace gpubench::cpu
#endif
