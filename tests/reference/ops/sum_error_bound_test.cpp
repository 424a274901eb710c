// Simulations with fixed seeds; prints the worst ratios. The bound accepts correct sums in any order, also with drift
// along k that cancels, and is no wider than |C| + Q without drift.
#include "reference/ops/sum_error_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "harness/core/dtype.h"
#include "tests/reference/ops/summation_orders.h"
#include "tests/reference/ops/tensor_core.h"

namespace gpubench::testing {
namespace {

constexpr double u32 = 0x1p-24;
constexpr std::size_t lengths[] = {8, 17, 32, 64, 128, 200, 512, 1024, 4096};
constexpr std::size_t products_per_trial = 100000;

// About normal numbers, the same on every machine.
class Normal {
 public:
  explicit Normal(std::uint32_t seed) : random_(seed) {}
  double operator()() {
    double sum = 0.0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(random_()) * 0x1p-32;
    return (sum - 2.0) * std::sqrt(3.0);
  }
  double uniform() { return static_cast<double>(random_()) * 0x1p-32; }

 private:
  std::mt19937 random_;
};

// Terms along k: a[k] is positive, about 1; b[k] follows the distribution.
struct Distribution {
  const char* name;
  std::function<void(Normal&, std::vector<double>&)> fill;
};

// `strength`: of the drift, relative to steps of one.
Distribution drifting(const char* name, double strength, double (*drift)(double)) {
  return {name, [=](Normal& normal, std::vector<double>& b) {
            const double phase = normal.uniform();
            for (std::size_t k = 0; k < b.size(); ++k) {
              const double at = (static_cast<double>(k) + phase) / static_cast<double>(b.size());
              b[k] = normal() + strength * drift(at);
            }
          }};
}

double up_and_down(double at) { return at < 0.5 ? 1.0 : -1.0; }
double down_up_down(double at) { return at < 0.25 || at >= 0.75 ? -1.0 : 1.0; }
double wave(double at) { return std::sin(2.0 * M_PI * at); }
double shifted_wave(double at) { return std::cos(2.0 * M_PI * at); }
double back_at_once(double at) { return at < 0.5 ? -1.0 : at < 0.55 ? 10.0 : 0.0; }
double waves(double at) { return std::sin(14.0 * M_PI * at); }

void in_sequences(Normal& normal, std::vector<double>& b) {  // of 32 tokens, each with a different mean
  double mean = 0.0;
  for (std::size_t k = 0; k < b.size(); ++k) {
    if (k % 32 == 0) mean = 2.0 * normal();
    b[k] = normal() + mean;
  }
}

void wandering(Normal& normal, std::vector<double>& b) {  // the drift is a random walk
  double mean = 0.0;
  for (double& value : b) value = normal() + (mean += 0.2 * normal());
}

void large_ends(Normal& normal, std::vector<double>& b) {
  for (double& value : b) value = normal();
  b.front() = 1000.0 * (1.0 + normal.uniform());
  b.back() = -b.front();
}

void skewed(Normal& normal, std::vector<double>& b) {
  for (double& value : b) value = std::copysign(std::exp(1.5 * normal()), normal());
}

const std::vector<Distribution>& distributions() {
  static const std::vector<Distribution> all{
      {"normal", [](Normal& normal, auto& b) { std::generate(b.begin(), b.end(), std::ref(normal)); }},
      {"positive",
       [](Normal& normal, auto& b) { std::generate(b.begin(), b.end(), [&] { return normal.uniform(); }); }},
      {"skewed", skewed},
      drifting("up and down, weak", 0.3, up_and_down),
      drifting("up and down", 1.0, up_and_down),
      drifting("up and down, strong", 5.0, up_and_down),
      drifting("down, up, down", 3.0, down_up_down),
      drifting("back at once", 1.0, back_at_once),
      drifting("back at once, strong", 5.0, back_at_once),
      drifting("wave", 2.0, wave),
      drifting("shifted wave", 2.0, shifted_wave),
      drifting("seven waves", 3.0, waves),
      {"sequences", in_sequences},
      {"wandering", wandering},
      {"large ends", large_ends},
  };
  return all;
}

// Factors of `type` whose products have that distribution: calls judge(a, b, distribution) for each trial.
template <class Consume>
void for_each_trial(DType type, std::size_t products, Consume consume) {
  std::uint32_t seed = 0;
  for (const Distribution& distribution : distributions()) {
    for (const std::size_t k : lengths) {
      std::vector<double> a(k), b(k);
      for (std::size_t trial = 0; trial < std::max<std::size_t>(20, products / k); ++trial) {
        Normal normal(++seed);
        distribution.fill(normal, b);
        for (std::size_t i = 0; i < k; ++i) {
          a[i] = round_to(type, 0.75 + 0.5 * normal.uniform());
          b[i] = round_to(type, std::clamp(b[i], -400.0, 400.0));  // e4m3 ends at 448
        }
        consume(std::span<const double>(a), std::span<const double>(b), distribution);
      }
    }
  }
}

struct Worst {
  double ratio = 0.0;
  std::string where;
  long outside = 0;
  long all = 0;

  void add(double error, double bound, const char* distribution, std::size_t k) {
    ++all;
    if (!(error <= bound)) ++outside;
    if (!(error / bound > ratio)) return;
    ratio = error / bound;
    where = std::string(distribution) + ", K = " + std::to_string(k);
  }
  void print(const char* order) const {
    std::printf("%-28s %8ld sums, %ld outside, worst %.2f of the bound (%s)\n", order, all, outside, ratio,
                where.c_str());
  }
};

TEST(SumErrorBound, HoldsForF32SumsInEveryOrderHoweverTheirTermsDrift) {
  std::vector<Worst> worst(std::size(summation_orders));
  for_each_trial(DType::f32, products_per_trial, [&](auto a, auto b, const Distribution& distribution) {
    const ProductSum exact = dot(a, b);
    const double bound = sum_error_bound(exact, u32);
    for (std::size_t i = 0; i < worst.size(); ++i) {
      const double got = static_cast<double>(summation_orders[i].sum({a, b}));
      worst[i].add(std::fabs(got - exact.value), bound, distribution.name, a.size());
    }
  });
  for (std::size_t i = 0; i < worst.size(); ++i) {
    worst[i].print(summation_orders[i].name);
    EXPECT_EQ(worst[i].outside, 0) << summation_orders[i].name << ": " << worst[i].where;
    EXPECT_GT(worst[i].ratio, 0.1) << summation_orders[i].name << ": the trial says nothing";
  }
}

// |C| + Q alone would reject correct sums.
TEST(SumErrorBound, TermsThatDriftNeedTheirSumsOfNeighbours) {
  long outside = 0;
  for_each_trial(DType::f32, 10000, [&](auto a, auto b, const Distribution&) {
    ProductSum sum = dot(a, b);
    const double error = std::fabs(static_cast<double>(in_order({a, b})) - sum.value);
    sum.neighbours = 0.0;
    outside += error <= sum_error_bound(sum, u32) ? 0 : 1;
  });
  EXPECT_GT(outside, 10);
}

struct Core {
  const char* name;
  DType type;
  Math math;
  TensorCore core;
  std::size_t promote_every = 0;
};

const Core cores[] = {
    {"sm_80, bf16", DType::bf16, {}, ampere_16_bit, 0},
    {"sm_80, f16", DType::f16, {}, ampere_16_bit, 0},
    {"sm_90, bf16", DType::bf16, {}, hopper_16_bit, 0},
    {"sm_80, tf32", DType::f32, {.inputs = Math::Inputs::tf32}, ampere_tf32, 0},
    {"sm_90, tf32", DType::f32, {.inputs = Math::Inputs::tf32}, hopper_tf32, 0},
    {"sm_90, e4m3 promoted", DType::f8_e4m3, {}, hopper_8_bit, 128},
    {"sm_89, e4m3 promoted", DType::f8_e4m3, {}, ada_8_bit, 128},
    {"sm_90, e4m3 fast", DType::f8_e4m3, {.fast_accumulation = true}, hopper_8_bit, 0},
    {"sm_100, e4m3", DType::f8_e4m3, {}, blackwell_8_bit, 0},
};

// Ten thousand sums per tensor core test the bound, but do not prove it.
TEST(SumErrorBound, HoldsForTensorCoresThatCutWhateverDrifts) {
  for (const Core& core : cores) {
    const ContractionRule rule = contraction_rule(core.math, core.type, core.type, DType::f32);
    Worst whole, split;
    for_each_trial(core.type, 10000, [&](auto a, auto b, const Distribution& distribution) {
      const ProductSum exact = dot(a, b);
      const double bound = rule.bound(exact);
      std::vector<double> left(a.begin(), a.end()), right(b.begin(), b.end());
      if (core.math.inputs == Math::Inputs::tf32) {
        for (double& value : left) value = cut_bits(value, 11);
        for (double& value : right) value = cut_bits(value, 11);
      }
      const Factors terms{left, right};
      const auto sum = [&core](const Factors& t) { return tensor_core_sum(core.core, t.a, t.b, core.promote_every); };
      whole.add(std::fabs(sum(terms) - exact.value), bound, distribution.name, a.size());
      float parts = 0.0F;
      const std::size_t part = (a.size() + 3) / 4;
      for (std::size_t k = 0; k < a.size(); k += part)
        parts += static_cast<float>(sum(terms.part(k, std::min(part, a.size() - k))));
      split.add(std::fabs(static_cast<double>(parts) - exact.value), bound, distribution.name, a.size());
    });
    whole.print(core.name);
    split.print("  in 4 parts");
    EXPECT_EQ(whole.outside, 0) << core.name << ": " << whole.where;
    EXPECT_EQ(split.outside, 0) << core.name << " in 4 parts: " << split.where;
  }
}

// Ratio to |C| + Q: 1 for the median sum without drift, at most 2 / sqrt(3) for terms of one sign.
TEST(SumErrorBound, IsAsTightAsBeforeForTermsThatDoNotDrift) {
  const auto widened = [](const ProductSum& sum) {
    return partial_sum_size(sum) / (std::fabs(sum.value) + std::sqrt(sum.squares));
  };
  std::vector<double> normal, positive;
  for (std::uint32_t seed = 1; seed <= 2000; ++seed) {
    Normal random(seed);
    ProductSum zero_mean, one_signed;
    for (int k = 0; k < 1024; ++k) {
      zero_mean.add(random());
      one_signed.add(random.uniform());
    }
    normal.push_back(widened(zero_mean));
    positive.push_back(widened(one_signed));
  }
  std::sort(normal.begin(), normal.end());
  std::sort(positive.begin(), positive.end());
  const auto wider = normal.end() - std::upper_bound(normal.begin(), normal.end(), 1.0);
  std::printf("normal: %.1f%% wider, the widest %.2f; positive: the widest %.3f\n", 0.05 * static_cast<double>(wider),
              normal.back(), positive.back());
  EXPECT_EQ(normal[1000], 1.0);
  EXPECT_LE(positive.back(), 2.0 / std::sqrt(3.0) + 0.01);
}

TEST(SumErrorBound, CountsTheLargestSumOfNeighboursThatEndsAtEachTerm) {
  // 3; 3 + 4; -7: sum 0, Q^2 = 9 + 16 + 49, K S^2 = 9 + 49 + 49
  ProductSum sum;
  for (const double term : {3.0, 4.0, -7.0}) sum.add(term);
  EXPECT_EQ(sum.value, 0.0);
  EXPECT_EQ(sum.squares, 74.0);
  EXPECT_EQ(sum.neighbours, 107.0);
  EXPECT_EQ(sum.terms, 3.0);
  EXPECT_DOUBLE_EQ(partial_sum_size(sum), 2.0 * std::sqrt(107.0 / 3.0));  // 11.9 > Q = 8.60
  EXPECT_DOUBLE_EQ(sum_error_bound(sum, u32), 2.0 * u32 * std::sqrt(3.0) * 2.0 * std::sqrt(107.0 / 3.0));
  EXPECT_EQ(sum_error_bound({}, u32), 0.0);
}

TEST(SumErrorBound, ALongDotProductLooksAtSumsOfNeighboursBehindEveryEighthTerm) {
  std::vector<double> a(65, 1.0);
  for (std::size_t k = 0; k < 8; ++k) a[k] = static_cast<double>(k + 1);
  a.back() = 10.0;
  std::vector<double> b(a.size(), -1.0);
  b.back() = 1.0;
  const ProductSum sum = dot(a, b);
  EXPECT_EQ(sum.value, -82.0);    // -36 after 8 terms, 8 less after each further 8, 10 more at the end
  EXPECT_EQ(sum.squares, 360.0);  // 204 + 56 + 100
  double neighbours = 82.0 * 82.0;
  for (const double reached : {36.0, 44.0, 52.0, 60.0, 68.0, 76.0, 84.0, 92.0}) neighbours += 8.0 * reached * reached;
  EXPECT_EQ(sum.neighbours, neighbours);
  EXPECT_EQ(sum.terms, 65.0);
}

TEST(SumErrorBound, AShortDotProductLooksAtThemBehindEveryTerm) {
  const std::vector<double> a{3.0, 4.0, 7.0};
  const std::vector<double> b{1.0, 1.0, -1.0};
  EXPECT_EQ(dot(a, b).neighbours, 107.0);
}

}  // namespace
}  // namespace gpubench::testing
