#include "reference/cpu/own_kernel_proof.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/usable_isa.h"

namespace gpubench::cpu {
namespace {

// Not a multiple of any vector length, to test the ends.
constexpr std::int64_t count = 203;
using Row = std::array<float, 256>;

// exp is within 3 ulp, plus half a unit per unit of its rounded argument: 17 at GELU's largest here, 28. Twice that is
// left for the rest; a wrong instruction is off by thousands.
constexpr double largest_relative_error = 50.0 * 0x1p-24;

bool near(float got, double wanted) {
  return std::fabs(static_cast<double>(got) - wanted) <= largest_relative_error * std::fabs(wanted);
}

// Whole numbers from -8 to 8 in irregular order: sums and products are exact.
Row whole_numbers(int factor) {
  Row numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(static_cast<int>(i * static_cast<std::size_t>(factor) % 17) - 8);
  return numbers;
}

bool same(const Row& got, const Row& wanted) {
  return std::memcmp(got.data(), wanted.data(), count * sizeof(float)) == 0 && got[count] == 0.0F;
}

bool reductions_hold(const Runs& runs) {
  const Row x = whole_numbers(5), r = whole_numbers(3);
  constexpr float mean = 2.0F;
  float total = 0.0F, squares = 0.0F, products = 0.0F, largest = x[0];
  for (std::size_t i = 0; i < count; ++i) {
    total += x[i];
    squares += (x[i] - mean) * (x[i] - mean);
    products += x[i] * r[i];
    largest = std::max(largest, x[i]);
  }
  return runs.sum(x.data(), count, x.data()) == total && runs.dot(x.data(), r.data(), count) == products &&
         runs.squared_deviations(x.data(), mean, count, nullptr) == squares && runs.largest(x.data(), count) == largest;
}

bool elements_hold(const Runs& runs) {
  const Row x = whole_numbers(5), r = whole_numbers(3), gamma = whole_numbers(7), beta = whole_numbers(11);
  Row expected_sum{}, wanted{};
  for (std::size_t i = 0; i < count; ++i) {
    expected_sum[i] = 2.0F * x[i] + r[i];
    wanted[i] = gamma[i] * ((x[i] - 2.0F) * 0.5F) + beta[i];
  }
  Row sum{}, normalized{}, streamed{};
  alignas(64) Row copied{};
  runs.blend(x.data(), 2.0F, r.data(), 1.0F, count, sum.data());
  runs.normalize(x.data(), gamma.data(), beta.data(), 2.0F, 0.5F, count, normalized.data(), false);
  runs.normalize(x.data(), gamma.data(), beta.data(), 2.0F, 0.5F, count, streamed.data(), true);
  runs.stream(x.data(), x.size() - 16, copied.data());
  stream_fence();
  return same(sum, expected_sum) && same(normalized, wanted) && same(streamed, wanted) &&
         std::equal(copied.begin(), copied.end() - 16, x.begin()) && copied[x.size() - 16] == 0.0F;
}

bool exponentials_hold(const Runs& runs) {
  Row x{}, e{}, y{};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = -0.0625F * static_cast<float>(i * 7 % 256);
  const float sum = runs.exp(x.data(), 1.0F, count, e.data());
  runs.softmax(x.data(), 1.0F, 3.0F, count, y.data());
  double total = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    const double wanted = std::exp(static_cast<double>(x[i]) - 1.0);
    total += wanted;
    if (!near(e[i], wanted) || !near(y[i], 3.0 * wanted)) return false;
  }
  return near(sum, total) && near(runs.exp(x.data(), 1.0F, count, nullptr), total) && e[count] == 0.0F &&
         y[count] == 0.0F;
}

bool amx_bf16_holds() {
  amx::load_tile_shapes();
  const bool holds = product_holds(amx::multiply);
  amx::release_tiles();
  return holds;
}

bool avx512_bf16_holds() {
  const auto stored = [](const float* from, bf16* to) { avx512_bf16::narrow_lines(from, 160 / 32, to, false); };
  const auto streamed = [](const float* from, bf16* to) {
    avx512_bf16::narrow_lines(from, 160 / 32, to, true);
    stream_fence();
  };
  return narrowing_holds(stored) && narrowing_holds(streamed);
}

bool avx2_announced() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") > 0 && __builtin_cpu_supports("fma") > 0;
#else
  return false;
#endif
}
bool avx512_announced() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") > 0 && __builtin_cpu_supports("avx512bw") > 0 &&
         __builtin_cpu_supports("avx512vl") > 0 && __builtin_cpu_supports("avx512dq") > 0;
#else
  return false;
#endif
}

}  // namespace

std::span<const OwnKernels> own_kernels() {
  static const std::array<OwnKernels, 4> all{
      OwnKernels{"avx2", avx2_announced, vector_kernels_hold},
      OwnKernels{"avx512", avx512_announced, vector_kernels_hold},
      OwnKernels{avx512_bf16::own_isa, avx512_bf16::announced, avx512_bf16_holds},
      OwnKernels{amx::own_isa, amx::announced, amx_bf16_holds},
  };
  return all;
}

bool vector_kernels_hold() {
  const auto gelu_tanh = [](double x) {
    return 0.5 * x * (1.0 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  };
  const auto gelu_erf = [](double x) { return 0.5 * x * (1.0 + std::erf(x * std::sqrt(0.5))); };
  return runs_hold(runs()) && product_holds(multiply_widened) && softmax_holds(softmax_in_place) &&
         pointwise_holds(pointwise_kernel(gelu_forward_kind, GeluForm::tanh), gelu_tanh) &&
         pointwise_holds(pointwise_kernel(gelu_forward_kind, GeluForm::erf), gelu_erf) &&
         pointwise_holds(pointwise_kernel(silu_forward_kind), [](double x) { return x / (1.0 + std::exp(-x)); });
}

bool runs_hold(const Runs& runs) {
  const auto narrow = [&](const float* from, bf16* to) { runs.narrow(from, 160, to); };
  return reductions_hold(runs) && elements_hold(runs) && exponentials_hold(runs) && narrowing_holds(narrow);
}

bool pointwise_holds(const PointwiseKernel& kernel, double (*expected)(double x)) {
  Row x{};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.0625F * static_cast<float>(static_cast<int>(i) - 100);
  for (const PointwiseKernel::Function run : {kernel.block, kernel.streaming}) {
    Row y{};
    const float* from = x.data();
    float* to = y.data();
    run(&from, 0.0F, count, &to);
    stream_fence();
    for (std::size_t i = 0; i < count; ++i) {
      // Near 0, and where the normal distribution's tail cancels, relative to the largest value.
      const double wanted = expected(static_cast<double>(x[i]));
      const double error = std::fabs(static_cast<double>(y[i]) - wanted);
      if (!(error <= largest_relative_error * (std::fabs(wanted) + 0.125))) return false;
    }
    if (y[count] != 0.0F) return false;
  }
  return true;
}

bool narrowing_holds(const std::function<void(const float* from, bf16* to)>& narrow) {
  constexpr std::size_t numbers = 160;  // five lines; subnormal numbers in the last two
  Row from{};
  for (std::size_t i = 0; i < numbers; ++i) {
    const auto bits = static_cast<std::uint32_t>(i * 0x01b3c7d5U);
    from[i] = std::bit_cast<float>(i < 96 ? bits | 0x00800000U : bits & 0x80ffffffU);
  }
  from[7] = std::numeric_limits<float>::infinity();
  from[8] = std::bit_cast<float>(0x7f800001U);
  alignas(64) std::array<bf16, 256> to{};
  narrow(from.data(), to.data());
  for (std::size_t i = 0; i < numbers; ++i) {
    if (to[i].bits != gpubench::cpu::narrow<bf16>(from[i]).bits) return false;
  }
  return to[numbers].bits == 0;
}

bool softmax_holds(void (*in_place)(const ScoreBlock& block)) {
  constexpr std::int64_t rows = 3, keys = 75, width = padded(keys);
  constexpr float scale = 0.5F, infinity = std::numeric_limits<float>::infinity();
  std::array<float, rows * width> scores{}, given{};
  for (std::size_t i = 0; i < scores.size(); ++i) given[i] = scores[i] = static_cast<float>(i * 7 % 23) - 11.0F;
  std::array<float, rows> maxima{}, sums{};
  maxima.fill(-infinity);
  std::array<float, rows * block_grain> o{};
  const std::array<KeyRange, rows> seen{KeyRange{0, 40}, KeyRange{0, 41}, KeyRange{33, keys}};
  in_place({rows,
            keys,
            0,
            seen.data(),
            scale,
            {scores.data(), width},
            {o.data(), block_grain},
            block_grain,
            maxima.data(),
            sums.data()});
  for (std::size_t row = 0; row < rows; ++row) {
    const auto is_seen = [&](std::int64_t key) { return key >= seen[row].first && key < seen[row].end; };
    const float* of_row = given.data() + row * width;
    const float largest = scale * *std::max_element(of_row + seen[row].first, of_row + seen[row].end);
    double sum = 0.0;
    for (std::int64_t key = 0; key < width; ++key) {
      const double weight = is_seen(key) ? std::exp(static_cast<double>(scale * of_row[key] - largest)) : 0.0;
      if (!near(scores[row * width + static_cast<std::size_t>(key)], weight)) return false;
      sum += weight;
    }
    if (maxima[row] != largest || !near(sums[row], sum)) return false;
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
  for (std::int64_t column = 0; column < n; ++column) {  // panels of 32 columns of pairs (block_matmul.h)
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
