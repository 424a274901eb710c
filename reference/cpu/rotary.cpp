// A thread works on a run of heads of one token, which share a row of the tables, in the first-level cache. Large
// outputs are computed in a scratch block there and stored around the caches.
#include "reference/cpu/kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "reference/cpu/block_io.h"
#include "reference/cpu/parallel.h"
#include "reference/ops/rotary.h"

namespace gpubench::cpu {
namespace {

/// Some heads of one token. Strides are in elements, from one head to the next.
struct HeadRun {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  std::int64_t x_stride = 0, y_stride = 0;
  std::int64_t heads = 0;
  std::int64_t pairs = 0;
  const float* cos = nullptr;
  const float* sin = nullptr;
  float sign = 1.0F;  ///< -1 for the inverse
};

// x and y may be the same memory: each pair is read before it is written, and no other touches it.

template <class T>
inline void turn_half(const HeadRun& run) {
  const std::int64_t pairs = run.pairs;
  for (std::int64_t head = 0; head < run.heads; ++head) {
    const T* x = reinterpret_cast<const T*>(run.x) + head * run.x_stride;
    T* y = reinterpret_cast<T*>(run.y) + head * run.y_stride;
#pragma omp simd
    for (std::int64_t i = 0; i < pairs; ++i) {
      const float c = run.cos[i];
      const float s = run.sign * run.sin[i];
      const float a = widen(x[i]);
      const float b = widen(x[i + pairs]);
      y[i] = narrow<T>(a * c - b * s);
      y[i + pairs] = narrow<T>(b * c + a * s);
    }
  }
}

GPUBENCH_VECTOR_CLONES
void turn_half_f32(const HeadRun& run) { turn_half<float>(run); }

GPUBENCH_VECTOR_CLONES
void turn_half_bf16(const HeadRun& run) { turn_half<bf16>(run); }

GPUBENCH_VECTOR_CLONES
void turn_interleaved_f32(const HeadRun& run) {
  for (std::int64_t head = 0; head < run.heads; ++head) {
    const float* x = reinterpret_cast<const float*>(run.x) + head * run.x_stride;
    float* y = reinterpret_cast<float*>(run.y) + head * run.y_stride;
#pragma omp simd
    for (std::int64_t i = 0; i < run.pairs; ++i) {
      const float c = run.cos[i];
      const float s = run.sign * run.sin[i];
      const float a = x[2 * i];
      const float b = x[2 * i + 1];
      y[2 * i] = a * c - b * s;
      y[2 * i + 1] = b * c + a * s;
    }
  }
}

// A pair of neighbours is one 32-bit number, which vector code need not deinterleave.
static_assert(std::endian::native == std::endian::little);

GPUBENCH_VECTOR_CLONES
void turn_interleaved_bf16(const HeadRun& run) {
  const float* cos = run.cos;
  const float* sin = run.sin;
  const float sign = run.sign;
  const std::int64_t pairs = run.pairs;
  for (std::int64_t head = 0; head < run.heads; ++head) {
    const std::byte* x = run.x + head * run.x_stride * static_cast<std::int64_t>(sizeof(bf16));
    std::byte* y = run.y + head * run.y_stride * static_cast<std::int64_t>(sizeof(bf16));
#pragma omp simd
    for (std::int64_t i = 0; i < pairs; ++i) {
      std::uint32_t pair = 0;
      std::memcpy(&pair, x + 4 * i, sizeof pair);
      const float c = cos[i];
      const float s = sign * sin[i];
      const auto a = std::bit_cast<float>(pair << 16U);
      const auto b = std::bit_cast<float>(pair & 0xFFFF0000U);
      const std::uint32_t first = narrow<bf16>(a * c - b * s).bits;
      const std::uint32_t second = narrow<bf16>(b * c + a * s).bits;
      pair = first | second << 16U;
      std::memcpy(y + 4 * i, &pair, sizeof pair);
    }
  }
}

using TurnHeads = void (*)(const HeadRun&);

TurnHeads kernel_for(Rotary::Pairing pairing, DType dtype) {
  if (pairing == Rotary::Pairing::half) return dtype == DType::f32 ? turn_half_f32 : turn_half_bf16;
  return dtype == DType::f32 ? turn_interleaved_f32 : turn_interleaved_bf16;
}

/// Elements between sequences, tokens and heads.
struct Strides {
  std::int64_t sequence = 0, token = 0, head = 0;
};

Strides strides_of(const TensorSpec& tensor) {
  const std::vector<std::int64_t>& strides = tensor.layout.strides;
  return {strides[0], strides[1], strides[2]};
}

constexpr std::int64_t scratch_bytes = 8192;

/// The output, and whether it is stored around the caches.
struct Target {
  std::byte* data = nullptr;
  bool streaming = false;
  Target() = default;
  Target(const Tensor& tensor, bool around) : data(tensor.data), streaming(around) {}
};

struct RotaryWork {
  TurnHeads turn = nullptr;
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
    run.x_stride = x_strides.head;
    run.y_stride = y_strides.head;
    run.heads = heads;
    run.pairs = extents.d / 2;
    run.cos = cos + position * run.pairs;
    run.sin = sin + position * run.pairs;
    run.sign = sign;
    if (!streaming) return turn(run);
    alignas(64) std::array<std::byte, scratch_bytes> scratch;
    std::byte* to = run.y;
    run.y = scratch.data();
    turn(run);
    stream_store(to, scratch.data(), static_cast<std::size_t>(heads * extents.d * element_bytes));
  }
};

}  // namespace

Plan plan_rotary(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Rotary& attributes = call.attributes.as<Rotary>();
  const Named<TensorSpec> operand(call, tensors);
  const TensorSpec& x = operand["x"];
  expect_f32_or_bf16(call, x);
  expect_type(call, operand["y"], x.dtype);
  expect_type(call, operand, {"cos", "sin"}, DType::f32);
  expect_row_major(call, operand, {"cos", "sin"});
  RotaryWork work;
  work.turn = kernel_for(attributes.pairing, x.dtype);
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

}  // namespace gpubench::cpu
