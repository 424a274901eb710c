// Products of block-scaled operands by oneDNN, from dense copies.
//
// The copies are exact. A narrow number has 4 significant bits (f8) or 2 (f4), an e4m3 scale 4 and an E8M0 scale 1: at
// most 6 in a product, and bf16 has 8.
// bf16 has f32's exponents, whose subnormals reach 2^-149, below the smallest product, 2^-16 2^-127. bf16 units flush
// subnormals to zero, so operands with subnormals are multiplied in f32. Values beyond f32's largest number are
// infinite in both.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <optional>
#include <type_traits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/onednn.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/runs.h"
#include "reference/cpu/vector_targets.h"
#include "reference/ops/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/block_scaled_gemm.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

// Writes blocks of numbers densely: f8, or f4, two per byte; `value` and `scale` by code. Returns whether a product is
// subnormal. The loops vectorize.
template <class T, bool halves>
bool expand_blocks(const std::uint8_t* codes, const float* value, const std::uint8_t* scales, const float* scale,
                   std::int64_t block, std::int64_t blocks, T* to) {
  std::uint32_t subnormal = 0;
  const auto put = [&](std::int64_t i, float number) HWY_ATTR {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(number);
    if constexpr (std::is_same_v<T, bf16>) {
      to[i].bits = static_cast<std::uint16_t>(bits >> 16U);
    } else {
      to[i] = number;
    }
    return ((bits & 0x7fffffffU) - 1U) < 0x7fffffU ? 1U : 0U;
  };
  for (std::int64_t b = 0; b < blocks; ++b) {
    const float factor = scale[scales[b]];
    const std::int64_t first = b * block;
    if (halves) {
      const std::uint8_t* pairs = codes + first / 2;
#pragma omp simd reduction(| : subnormal)
      for (std::int64_t i = 0; i < block / 2; ++i) {
        subnormal |= put(first + 2 * i, value[pairs[i] & 15U] * factor);
        subnormal |= put(first + 2 * i + 1, value[pairs[i] >> 4U] * factor);
      }
    } else {
#pragma omp simd reduction(| : subnormal)
      for (std::int64_t i = 0; i < block; ++i) subnormal |= put(first + i, value[codes[first + i]] * factor);
    }
  }
  return subnormal != 0;
}

bool ExpandF32(bool halves, const std::uint8_t* codes, const float* value, const std::uint8_t* scales,
               const float* scale, std::int64_t block, std::int64_t blocks, float* to) {
  return (halves ? expand_blocks<float, true> : expand_blocks<float, false>)(codes, value, scales, scale, block, blocks,
                                                                             to);
}
bool ExpandBf16(bool halves, const std::uint8_t* codes, const float* value, const std::uint8_t* scales,
                const float* scale, std::int64_t block, std::int64_t blocks, bf16* to) {
  return (halves ? expand_blocks<bf16, true> : expand_blocks<bf16, false>)(codes, value, scales, scale, block, blocks,
                                                                           to);
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {
namespace {

HWY_EXPORT(ExpandF32);
HWY_EXPORT(ExpandBf16);

using Table = std::array<float, 256>;

/// [rows, k] in f8, or f4, two per byte, with a scale per `block` of a row.
struct BlockScaled {
  std::int64_t rows = 0, k = 0, block = 32;
  bool halves = false;
  Table value{}, scale{};
  const std::uint8_t* values = nullptr;
  const std::uint8_t* scales = nullptr;

  /// Writes rows [begin, end) densely. Returns whether a number is subnormal.
  template <class T>
  bool expand_rows(std::int64_t begin, std::int64_t end, T* to) const {
    const std::uint8_t* codes = values + begin * k / (halves ? 2 : 1);
    const std::int64_t blocks = k / block;
    const auto expand = [&](auto* by) {
      return by(halves, codes, value.data(), scales + begin * blocks, scale.data(), block, (end - begin) * blocks,
                to + begin * k);
    };
    if constexpr (std::is_same_v<T, bf16>) return expand(HWY_DYNAMIC_DISPATCH(ExpandBf16));
    if constexpr (std::is_same_v<T, float>) return expand(HWY_DYNAMIC_DISPATCH(ExpandF32));
  }
};

template <class T>
bool expand(int threads, const BlockScaled& from, std::byte* to) {
  std::atomic<bool> subnormal = false;
  parallel_chunks(threads, from.rows, row_grain(from.k), [&](std::int64_t begin, std::int64_t end) {
    if (from.expand_rows(begin, end, reinterpret_cast<T*>(to))) subnormal = true;
  });
  return subnormal;
}

struct BlockScaledWork {
  int threads = 1;
  BlockScaled a, b;
  std::byte *dense_a = nullptr, *dense_b = nullptr;
  std::optional<OneDnnLaunch> in_bf16, in_f32;
  const float* sums = nullptr;  ///< [m, n]; c itself if it is f32
  float alpha = 1.0F;
  const float *scale_a = nullptr, *scale_b = nullptr;
  std::optional<Source> bias;
  Sink c;

  void operator()() const {
    const bool narrow = in_bf16 && !expand<bf16>(threads, a, dense_a) && !expand<bf16>(threads, b, dense_b);
    if (narrow) {
      (*in_bf16)();
    } else {
      (void)expand<float>(threads, a, dense_a);
      (void)expand<float>(threads, b, dense_b);
      (*in_f32)();
    }
    const float factor = scale_a == nullptr ? alpha : alpha * *scale_a * *scale_b;
    const std::int64_t n = b.rows;
    parallel_rows(threads, a.rows, n, [&](std::int64_t row) {
      BlockBuffer staged, added;
      in_blocks(n, block_elements, [&](std::int64_t column, std::int64_t count) {
        const std::int64_t first = row * n + column;
        float* to = c.place(first, staged);
        runs().scale(sums + first, factor, count, to);
        if (bias) runs().add(bias->read(column, count, added), count, to);
        c.commit(first, count, to);
      });
    });
  }
};

BlockScaled operand_of(const TensorSpec& operand, const TensorSpec& scales) {
  BlockScaled result;
  result.rows = operand.shape[0];
  result.k = operand.shape[1];
  result.block = block_of_scale(scales.dtype);
  result.halves = bits_of(operand.dtype) == 4;
  result.value = values_by_code(operand.dtype);
  result.scale = values_by_code(scales.dtype);
  for (std::size_t code = 0; code < 256; ++code) {
    const float power = code == 255 ? std::nanf("") : std::ldexp(1.0F, static_cast<int>(code) - 127);
    result.scale[code] = scales.dtype == DType::u8 ? power : std::fabs(result.scale[code]);
  }
  return result;
}

OneDnnWork product_in(DType type, const BlockScaled& a, const BlockScaled& b, const OneDnn& onednn) {
  return matmul_work(onednn, {.a = dense_matrix(type, a.rows, a.k),
                              .b = dense_matrix(type, b.k, b.rows, true),
                              .c = dense_matrix(DType::f32, a.rows, b.rows)});
}

std::optional<OneDnnWork> fast_product_in_bf16(const BlockScaled& a, const BlockScaled& b, const OneDnn& onednn) {
  try {
    OneDnnWork work = product_in(DType::bf16, a, b, onednn);
    if (!work.is_reference_code()) return work;
  } catch (const Unsupported&) {
    // f32 is always available.
  }
  return std::nullopt;
}

}  // namespace

Plan plan_block_scaled_gemm(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Gemm& attributes = call.attributes.as<Gemm>();
  const Named<TensorSpec> operand(call, tensors);
  if (attributes.beta != 0.0 || attributes.epilogue != Gemm::Epilogue::none) {
    refuse(call, describe(attributes) + "; expected neither beta nor GELU with block-scaled operands");
  }
  expect_f32_sums(call);
  expect_f32_or_bf16(call, operand, {"bias", "c"});
  expect_row_major(call, operand, {"a", "b", "blocks_a", "blocks_b", "bias", "c"});
  BlockScaledWork work;
  work.threads = context.threads;
  work.a = operand_of(operand["a"], operand["blocks_a"]);
  work.b = operand_of(operand["b"], operand["blocks_b"]);
  work.alpha = static_cast<float>(attributes.alpha);
  const OneDnnWork wide = product_in(DType::f32, work.a, work.b, context.onednn);
  const std::optional<OneDnnWork> narrow = fast_product_in_bf16(work.a, work.b, context.onednn);

  // Scratch memory: dense a, dense b, sums unless they are c, the library's.
  const auto f32_bytes = [](std::int64_t rows, std::int64_t columns) {
    return whole_lines(static_cast<std::size_t>(rows * columns) * sizeof(float));
  };
  const std::size_t b_at = f32_bytes(work.a.rows, work.a.k), sums_at = b_at + f32_bytes(work.b.rows, work.b.k);
  const bool in_place = operand["c"].dtype == DType::f32;
  const std::size_t library_at = sums_at + (in_place ? 0 : f32_bytes(work.a.rows, work.b.rows));
  const std::size_t library_bytes = std::max(wide.workspace_bytes(), narrow ? narrow->workspace_bytes() : 0);
  const auto binder = [=, call = call](std::span<const Tensor> bound, Workspace space) {
    const Named<Tensor> at(call, bound);
    BlockScaledWork placed = work;
    placed.a.values = elements_of<const std::uint8_t>(at["a"]);
    placed.b.values = elements_of<const std::uint8_t>(at["b"]);
    placed.a.scales = elements_of<const std::uint8_t>(at["blocks_a"]);
    placed.b.scales = elements_of<const std::uint8_t>(at["blocks_b"]);
    if (attributes.scaled) {
      placed.scale_a = elements_of<const float>(at["scale_a"]);
      placed.scale_b = elements_of<const float>(at["scale_b"]);
    }
    if (attributes.bias) placed.bias = Source(at["bias"]);
    placed.c = Sink(at["c"], false);
    placed.dense_a = space.data;
    placed.dense_b = space.data + b_at;
    std::byte* sums = in_place ? at["c"].data : space.data + sums_at;
    placed.sums = reinterpret_cast<const float*>(sums);
    const std::array operands{placed.dense_a, placed.dense_b, sums};
    if (narrow) placed.in_bf16 = narrow->bind(operands, space.data + library_at);
    placed.in_f32 = wide.bind(operands, space.data + library_at);
    return placed;
  };
  return plan_of(own_implementation() + "+" + (narrow ? *narrow : wide).implementation(), library_at + library_bytes,
                 binder);
}

}  // namespace gpubench::cpu
#endif
