#include "reference/cpu/own_kernel_proof.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/block_matmul.h"
#include "reference/cpu/norm_passes.h"
#include "reference/cpu/vector_avx512.h"
#include "reference/cpu/vector_math.h"

namespace gpubench::cpu {
namespace {

// Not a multiple of any vector: the ends are part of the kernel.
constexpr std::int64_t count = 203;
using Row = std::array<float, 256>;

// The two sides' exponentials are within 3 units of the last place each, and each rounds its argument in its own way,
// half a unit for every 1 of its size: 34 units for GELU's largest here, 28. Half as much again is left for the rest;
// a wrong instruction is wrong by thousands.
constexpr float largest_relative_error = 50.0F * 0x1p-24F;

bool near(float got, float wanted) { return std::fabs(got - wanted) <= largest_relative_error * std::fabs(wanted); }

// Whole numbers from -8 to 8 in no simple order: their sums and products are exact.
Row whole_numbers(int factor) {
  Row numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(static_cast<int>(i * static_cast<std::size_t>(factor) % 17) - 8);
  return numbers;
}

bool same(const Row& got, const Row& wanted) {
  return std::memcmp(got.data(), wanted.data(), count * sizeof(float)) == 0;
}

float silu(float x) { return x / (1.0F + vector_exp(-x)); }
float silu_derivative(float x) {
  const float s = 1.0F / (1.0F + vector_exp(-x));
  return s * (1.0F + x * (vector_exp(-x) * s));
}

bool activations_hold() {
  const auto both = [](const avx512::PointwiseKernel& kernel, float (*portable)(float a, float b)) {
    return pointwise_holds(kernel.plain, portable) && pointwise_holds(kernel.streaming, portable);
  };
  return both(avx512::gelu_tanh, [](float x, float) { return vector_gelu_tanh(x); }) &&
         both(avx512::gelu_tanh_backward, [](float x, float dy) { return dy * vector_gelu_tanh_derivative(x); }) &&
         both(avx512::silu, [](float x, float) { return silu(x); }) &&
         both(avx512::silu_backward, [](float x, float dy) { return dy * silu_derivative(x); }) &&
         both(avx512::swiglu, [](float gate, float up) { return silu(gate) * up; });
}

bool avx512_holds() {
  return product_holds(multiply_widened) && activations_hold() &&
         exponentials_hold(avx512::exp_block, avx512::softmax_block) &&
         streaming_holds(avx512::copy_lines, avx512::triad_lines) &&
         norm_passes_hold({avx512::sum, avx512::add, avx512::squared_deviations, avx512::stream_normalized});
}

bool avx512_bf16_holds() {
  return softmax_holds(avx512::softmax, avx512::softmax) && narrowing_holds(avx512::narrow_lines);
}

bool amx_bf16_holds() {
  amx::load_tile_shapes();
  const bool holds = product_holds(amx::multiply);
  amx::release_tiles();
  return holds;
}

}  // namespace

std::span<const OwnKernels> own_kernels() {
  static const std::array<OwnKernels, 3> all{
      OwnKernels{avx512::own_isa, avx512::announced, avx512_holds},
      OwnKernels{avx512::own_isa_bf16, avx512::announced_bf16, avx512_bf16_holds},
      OwnKernels{amx::own_isa, amx::announced, amx_bf16_holds},
  };
  return all;
}

bool vector_clones_hold() {
  const NormPasses passes{
      [](const float* values, std::int64_t n, const float*) { return sum_block(values, n); },
      [](const float* a, const float* b, std::int64_t n, float* sum, float* streamed, const float*, const float*) {
        add_block(a, b, n, sum);
        if (streamed != nullptr) std::copy_n(sum, n, streamed);
        return sum_block(sum, n);
      },
      [](const float* values, float mean, std::int64_t n, const float*) {
        return squared_deviation_block(values, mean, n);
      },
      normalize_block};
  return norm_passes_hold(passes) && product_holds(multiply_widened);
}

bool pointwise_holds(avx512::PointwiseFunction* kernel, float (*portable)(float a, float b)) {
  Row a{}, y{};
  const Row b = whole_numbers(3);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = 0.0625F * static_cast<float>(static_cast<int>(i) - 100);
  kernel(a.data(), b.data(), 0.0F, count, y.data());
  stream_fence();
  for (std::size_t i = 0; i < count; ++i) {
    // The derivatives have a zero, next to which their terms cancel; with them goes a part of the largest.
    const float wanted = portable(a[i], b[i]);
    if (!(std::fabs(y[i] - wanted) <= largest_relative_error * (std::fabs(wanted) + 0.125F))) return false;
  }
  return y[count] == 0.0F;
}

bool exponentials_hold(float (*exp)(const float* x, float largest, std::int64_t count, float* y),
                       void (*softmax)(const float* x, float shift, float factor, std::int64_t count, float* y)) {
  Row x{}, e{}, y{};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = -0.0625F * static_cast<float>(i * 7 % 256);
  const float sum = exp(x.data(), 1.0F, count, e.data());
  softmax(x.data(), 1.0F, 3.0F, count, y.data());
  float portable = 0.0F;
  for (std::size_t i = 0; i < count; ++i) {
    const float wanted = vector_exp(x[i] - 1.0F);
    portable += wanted;
    if (!near(e[i], wanted) || !near(y[i], 3.0F * wanted)) return false;
  }
  return near(sum, portable) && exp(x.data(), 1.0F, count, nullptr) == sum && e[count] == 0.0F && y[count] == 0.0F;
}

bool narrowing_holds(void (*narrow_lines)(const float* from, std::int64_t lines, bf16* to, bool streaming)) {
  constexpr std::size_t numbers = 160;  // five lines; subnormal numbers in the last two
  Row from{};
  for (std::size_t i = 0; i < numbers; ++i) {
    const auto bits = static_cast<std::uint32_t>(i * 0x01b3c7d5U);
    from[i] = std::bit_cast<float>(i < 96 ? bits | 0x00800000U : bits & 0x80ffffffU);
  }
  from[7] = std::numeric_limits<float>::infinity();
  from[8] = std::bit_cast<float>(0x7f800001U);
  for (const bool streaming : {false, true}) {
    alignas(64) std::array<bf16, 256> to{};
    narrow_lines(from.data(), numbers / 32, to.data(), streaming);
    stream_fence();
    for (std::size_t i = 0; i < numbers; ++i) {
      if (to[i].bits != narrow<bf16>(from[i]).bits) return false;
    }
    if (to[numbers].bits != 0) return false;
  }
  return true;
}

bool norm_passes_hold(const NormPasses& passes) {
  const Row x = whole_numbers(5), r = whole_numbers(3), gamma = whole_numbers(7), beta = whole_numbers(11);
  constexpr float mean = 2.0F, rstd = 0.5F;
  float total = 0.0F, both = 0.0F, squares = 0.0F;
  Row wanted_sum{}, wanted{};
  for (std::size_t i = 0; i < count; ++i) {
    total += x[i];
    wanted_sum[i] = x[i] + r[i];
    both += wanted_sum[i];
    squares += (x[i] - mean) * (x[i] - mean);
    wanted[i] = gamma[i] * ((x[i] - mean) * rstd) + beta[i];
  }
  Row sum{}, streamed{}, normalized{};
  const float got_total = passes.sum(x.data(), count, x.data());
  const float got_both = passes.add(x.data(), r.data(), count, sum.data(), streamed.data(), x.data(), r.data());
  const float got_squares = passes.squared_deviations(x.data(), mean, count, x.data());
  passes.stream_normalized(x.data(), gamma.data(), beta.data(), mean, rstd, count, normalized.data());
  stream_fence();
  return got_total == total && got_both == both && got_squares == squares && same(sum, wanted_sum) &&
         same(streamed, wanted_sum) && same(normalized, wanted) && normalized[count] == 0.0F;
}

bool streaming_holds(void (*copy_lines)(std::byte* to, const std::byte* from, std::size_t lines),
                     void (*triad_lines)(const float* b, const float* c, float factor, std::int64_t count, float* y)) {
  constexpr std::int64_t floats = 192;  // twelve lines
  const Row b = whole_numbers(5), c = whole_numbers(3);
  alignas(64) Row copied{};
  alignas(64) Row triad{};
  copy_lines(reinterpret_cast<std::byte*>(copied.data()), reinterpret_cast<const std::byte*>(b.data()), floats / 16);
  triad_lines(b.data(), c.data(), 3.0F, floats, triad.data());
  stream_fence();
  for (std::size_t i = 0; i < floats; ++i) {
    if (copied[i] != b[i] || triad[i] != b[i] + 3.0F * c[i]) return false;
  }
  return copied[floats] == 0.0F && triad[floats] == 0.0F;
}

bool softmax_holds(void (*wide)(const ScoreBlock& block, Rows<float> weights),
                   void (*rounding)(const ScoreBlock& block, Rows<bf16> weights)) {
  constexpr std::int64_t rows = 3, keys = 75, width = padded(keys);
  using Scores = std::array<float, rows * width>;
  struct Trial {
    Scores scores{};
    std::array<float, rows> maxima{}, sums{};
    std::array<float, rows * block_grain> o{};
    std::array<KeyRange, rows> seen{KeyRange{0, 40}, KeyRange{0, 41}, KeyRange{33, keys}};
    ScoreBlock block;
    Trial() {
      for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(i * 7 % 23) - 11.0F;
      maxima.fill(-std::numeric_limits<float>::infinity());
      block = {
          rows,        keys,          0,          seen.data(), 0.5F, {scores.data(), width}, {o.data(), block_grain},
          block_grain, maxima.data(), sums.data()};
    }
  };
  Trial portable, first, second;
  softmax_in_place(portable.block);
  wide(first.block, first.block.scores);
  std::array<bf16, rows * width> rounded{};
  rounding(second.block, {rounded.data(), width});
  for (std::size_t i = 0; i < portable.scores.size(); ++i) {
    const float weight = portable.scores[i];
    // To bf16: half a unit of 2^-8 more, for either side of a tie.
    if (!near(first.scores[i], weight) || !(std::fabs(widen(rounded[i]) - weight) <= 0x1p-8F * weight)) return false;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    for (const Trial* trial : {&first, &second}) {
      if (trial->maxima[row] != portable.maxima[row] || !near(trial->sums[row], portable.sums[row])) return false;
    }
  }
  return true;
}

bool product_holds(void (*multiply)(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c,
                                    bool accumulate)) {
  constexpr std::int64_t m = 32, n = 64, k = 64;
  std::array<bf16, m * k> a{};
  std::array<bf16, k * n> b{}, packed{};
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = narrow<bf16>(static_cast<float>(i * 5 % 13) - 6.0F);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = narrow<bf16>(static_cast<float>(i * 3 % 11) - 5.0F);
  for (std::int64_t column = 0; column < n; ++column) {  // as block_matmul.h says: panels of 32 columns of pairs
    for (std::int64_t row = 0; row < k; ++row) {
      const std::int64_t panel = column / block_grain, inside = column % block_grain;
      packed[static_cast<std::size_t>(panel * k * block_grain + row / 2 * 2 * block_grain + 2 * inside + row % 2)] =
          b[static_cast<std::size_t>(row * n + column)];
    }
  }
  std::array<float, m * n> c{};
  multiply({m, n, k, k}, {a.data(), k}, packed.data(), {c.data(), n}, false);
  multiply({m, n, k, k}, {a.data(), k}, packed.data(), {c.data(), n}, true);
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      float sum = 0.0F;
      for (std::size_t p = 0; p < k; ++p) sum += widen(a[row * k + p]) * widen(b[p * n + column]);
      if (c[row * n + column] != 2.0F * sum) return false;
    }
  }
  return true;
}

}  // namespace gpubench::cpu
