// Faults of real kernels, written as loops: the reason names each. Results without such a fault have no likely cause.
#include "harness/parity/likely_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "harness/parity/end_to_end.h"
#include "harness/parity/judge.h"
#include "reference/ops/attention.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/softmax.h"

namespace gpubench {
namespace likely_cause_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

using Tensors = std::vector<HostTensor>;
/// `out` holds the right numbers before the call.
using Kernel = std::function<void(const Tensors& in, Tensors& out)>;

/// The reason that the check gives for the kernel's outputs of a program with one op.
std::string reason(const Program& program, const Kernel& kernel) {
  TextbookMachine machine(program);
  machine.fill_sources("test/case", 42, program);
  Tensors in, out;
  for (const ValueId id : program.op(0).inputs) in.emplace_back(machine.view(id));
  machine.run();
  for (const ValueId id : program.op(0).outputs) out.emplace_back(machine.view(id));
  kernel(in, out);
  JudgePolicy policy{CheckMode::full};
  policy.cause_flop = 1e7;
  const std::vector<TensorView> read = views_of(in), written = views_of(out);
  return judge(program, 0, {read, written}, policy, "check").reason;
}

void expect_cause(const Program& program, const std::string& cause, const Kernel& kernel) {
  EXPECT_THAT(reason(program, kernel), EndsWith("; looks like: " + cause));
}

void set_each(HostTensor& tensor, const std::function<double(std::int64_t)>& value) {
  for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, value(e));
}

struct Tensor {
  Program& p;
  DType type = DType::f32;
  ValueId operator()(const char* name, const Shape& shape, const Fill& how = Fill::normal(1.0)) const {
    return p.add(tensor(name, type, shape, Role::activation, how));
  }
};

// c = 0.75 a b + bias, of odd sizes.
constexpr std::int64_t rows = 24, width = 40;
constexpr std::int64_t m = 22, n = 18, k = 26;
struct Product {
  Program p;
  explicit Product(DType type = DType::f32, bool with_bias = true) {
    const Tensor in{p, type};
    Gemm g;
    g.alpha = 0.75;
    g.bias = with_bias;
    GemmOperands more;
    if (with_bias) more.bias = in("bias", {n});
    gemm(p, g, {}, "c", in("a", {m, k}), in("b", {k, n}), more);
  }
  /// Sums of alpha a b with `terms` terms, b read where `b_at` says, and a part of the bias.
  static Kernel kernel(double alpha, std::int64_t terms, double bias,
                       const std::function<std::int64_t(std::int64_t, std::int64_t)>& b_at) {
    return [=](const Tensors& in, Tensors& out) {
      set_each(out[0], [&](std::int64_t e) {
        double sum = 0.0;
        for (std::int64_t i = 0; i < terms; ++i) sum += in[0].get(e / n * k + i) * in[1].get(b_at(i, e % n));
        return alpha * sum + (bias == 0.0 ? 0.0 : bias * in[2].get(e % n));
      });
    };
  }
};
std::int64_t row_major(std::int64_t row, std::int64_t column) { return row * n + column; }

TEST(LikelyCause, AProductNamesTheOperandThatIsLeftOutOrTransposed) {
  const Product product;
  expect_cause(product.p, "operand left out: 'bias'", Product::kernel(0.75, k, 0.0, row_major));
  expect_cause(product.p, "two axes of an operand swapped: axes 0 and 1 of 'b'",
               Product::kernel(0.75, k, 1.0, [](std::int64_t i, std::int64_t j) { return j * k + i; }));
  expect_cause(product.p, "end of an axis left out: axis 1 of 'a'", Product::kernel(0.75, k - 1, 1.0, row_major));
}

TEST(LikelyCause, AFactorAndAnOffsetOfAllElementsAreReported) {
  const Product product(DType::f32, false);
  expect_cause(product.p, "c is 1.33333 times what it should be", Product::kernel(1.0, k, 0.0, row_major));
  expect_cause(product.p, "c is 2 times what it should be", Product::kernel(1.5, k, 0.0, row_major));
  expect_cause(product.p, "c is off by 0.5 everywhere", [](const Tensors&, Tensors& out) {
    set_each(out[0], [&](std::int64_t e) { return out[0].get(e) + 0.5; });
  });
  expect_cause(product.p, "c is all zeros",
               [](const Tensors&, Tensors& out) { set_each(out[0], [](std::int64_t) { return 0.0; }); });
}

TEST(LikelyCause, AnOutputInAnotherLayoutIsReported) {
  const Product product;
  expect_cause(product.p, "c has axes 0 and 1 swapped", [](const Tensors&, Tensors& out) {
    const HostTensor right = out[0];
    for (std::int64_t e = 0; e < m * n; ++e) out[0].set(e % n * m + e / n, right.get(e));
  });
  expect_cause(product.p, "c has axis 0 shifted by 1", [](const Tensors&, Tensors& out) {
    const HostTensor right = out[0];
    for (std::int64_t e = 0; e < m * n; ++e) out[0].set((e + n) % (m * n), right.get(e));
  });
}

TEST(LikelyCause, AStoreThatCutsOrIsTooNarrowIsReported) {
  Program p;
  softmax_forward(p, {}, "y", Tensor{p}("x", {rows, width}));
  expect_cause(p, "y rounded to f16", [](const Tensors&, Tensors& out) {
    set_each(out[0], [&](std::int64_t e) { return round_to(DType::f16, out[0].get(e)); });
  });
  // Truncation to the upper half of an f32 number.
  const Product product(DType::bf16);
  expect_cause(product.p, "c rounded toward zero", [](const Tensors& in, Tensors& out) {
    Tensors all{HostTensor(tensor("c", DType::f32, {m, n}, Role::activation))};
    Product::kernel(0.75, k, 1.0, row_major)(in, all);
    for (std::int64_t e = 0; e < m * n; ++e)
      store_bits(DType::bf16, out[0].bytes.data(), e, load_bits(DType::f32, all[0].bytes.data() + 4 * e) >> 16U);
  });
}

constexpr double epsilon = 1e-5;

/// y = f((x - mean) rstd) gamma + beta of each row; null fields drop the mean or beta.
struct NormKernel {
  std::function<double(double variance)> rstd = [](double variance) { return 1.0 / std::sqrt(variance + epsilon); };
  std::function<double(double)> normalized = [](double value) { return value; };
  bool centered = true;
  double added_to_gamma = 0.0;
  void operator()(const Tensors& in, Tensors& out) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      double mean = 0.0, variance = 0.0;
      for (std::int64_t j = 0; j < width; ++j) mean += in[0].get(row * width + j) / width;
      if (!centered) mean = 0.0;
      for (std::int64_t j = 0; j < width; ++j) variance += std::pow(in[0].get(row * width + j) - mean, 2) / width;
      const double r = rstd(variance);
      out.back().set(row, r);
      for (std::int64_t j = 0; j < width; ++j) {
        const double beta = in.size() > 2 ? in[2].get(j) : 0.0;
        out[0].set(row * width + j,
                   normalized((in[0].get(row * width + j) - mean) * r) * (in[1].get(j) + added_to_gamma) + beta);
      }
    }
  }
};

Program layer_norm(DType type = DType::f32) {
  Program p;
  const Tensor in{p};
  layer_norm_forward(p, {epsilon}, {}, "y", Tensor{p, type}("x", {rows, width}, Fill::norm_rows(1.0)),
                     in("gamma", {width}), in("beta", {width}));
  return p;
}
Program rms_norm(DType type) {
  Program p;
  rms_norm_forward(p, {{epsilon}}, {}, "y", Tensor{p, type}("x", {rows, width}, Fill::norm_rows(1.0)),
                   Tensor{p}("gamma", {width}));
  return p;
}

TEST(LikelyCause, ANormNamesItsEpsilonItsVarianceAndItsRounding) {
  NormKernel kernel;
  kernel.rstd = [](double variance) { return 1.0 / (std::sqrt(variance) + epsilon); };
  expect_cause(layer_norm(), "epsilon added to the root", kernel);
  kernel.rstd = [](double variance) { return 1.0 / std::sqrt(variance * width / (width - 1) + epsilon); };
  expect_cause(layer_norm(), "variance over n - 1", kernel);
  kernel.rstd = [](double variance) { return 1.0 / std::sqrt(variance + 1e-6); };
  expect_cause(layer_norm(), "epsilon 1e-06 for 1e-05", kernel);
  kernel.rstd = [](double variance) { return 1.0 / std::sqrt(variance + 1e-4); };
  expect_cause(layer_norm(), "epsilon tenfold: epsilon 1e-04 for 1e-05", kernel);
  kernel = {};
  kernel.centered = false;
  expect_cause(layer_norm(), "mean not subtracted", kernel);
  kernel.added_to_gamma = 1.0;
  expect_cause(rms_norm(DType::f32), "gamma + 1 for gamma", kernel);
  kernel = {};
  kernel.centered = false;
  kernel.normalized = [](double value) { return round_to(DType::bf16, value); };
  expect_cause(rms_norm(DType::bf16), "switch the other way: rounds_before_gamma on", kernel);
}

struct Heads {
  std::int64_t s = 20, heads = 6, kv = 3, d = 8;
};

/// A softmax of scale q k^T times v; places of elements, and the head of k and v for each head of q.
struct AttentionKernel {
  Heads of;
  double scale = 1.0;
  bool causal = true;
  bool is_heads_first = false;
  std::function<std::int64_t(std::int64_t)> kv_head = [](std::int64_t head) { return head / 2; };

  [[nodiscard]] std::int64_t at(std::int64_t row, std::int64_t head, std::int64_t heads) const {
    return (is_heads_first ? head * of.s + row : row * heads + head) * of.d;
  }
  void operator()(const Tensors& in, Tensors& out) const {
    for (std::int64_t head = 0; head < of.heads; ++head) {
      for (std::int64_t row = 0; row < of.s; ++row) {
        std::vector<double> weights;
        double sum = 0.0;
        const std::int64_t seen = causal ? row + 1 : of.s, other = kv_head(head);
        for (std::int64_t key = 0; key < seen; ++key) {
          double score = 0.0;
          for (std::int64_t i = 0; i < of.d; ++i)
            score += in[0].get(at(row, head, of.heads) + i) * in[1].get(at(key, other, of.kv) + i);
          sum += weights.emplace_back(std::exp(scale * score));
        }
        for (std::int64_t i = 0; i < of.d; ++i) {
          double value = 0.0;
          for (std::int64_t key = 0; key < seen; ++key)
            value += weights[static_cast<std::size_t>(key)] / sum * in[2].get(at(key, other, of.kv) + i);
          out[0].set(at(row, head, of.heads) + i, value);
        }
      }
    }
  }
};

TEST(LikelyCause, AttentionNamesItsScaleItsMaskItsHeadsAndItsLayout) {
  const Heads of;
  Program p;
  const Tensor in{p};
  const double scale = 1.0 / std::sqrt(8.0);
  attention_forward(p, {.scale = scale}, {}, "o", in("q", {1, of.s, of.heads, of.d}), in("k", {1, of.s, of.kv, of.d}),
                    in("v", {1, of.s, of.kv, of.d}));
  AttentionKernel kernel{of, 1.0};
  expect_cause(p, "scale 1 for 0.353553", kernel);
  kernel.scale = 1.0 / 8.0;
  expect_cause(p, "scale 0.125 for 0.353553", kernel);
  kernel.scale = scale;
  EXPECT_EQ(reason(p, kernel), "");
  kernel.causal = false;
  expect_cause(p, "switch the other way: causal full for causal", kernel);
  kernel.causal = true;
  kernel.kv_head = [](std::int64_t head) { return head % 3; };
  expect_cause(p, "query head h on head h % hkv of k and v", kernel);
  kernel.kv_head = [](std::int64_t head) { return head / 2; };
  kernel.is_heads_first = true;
  expect_cause(p, "axes 1 and 2 of every tensor swapped", kernel);
}

// The budget of a fault pays for few rows; the check adds the largest elements.
TEST(LikelyCause, IsFoundFromFewRowsWhereTheTextbookIsExpensive) {
  const Heads of{256, 2, 1, 64};
  Program p;
  const Tensor in{p};
  attention_forward(p, {.scale = 0.125}, {}, "o", in("q", {1, of.s, of.heads, of.d}), in("k", {1, of.s, of.kv, of.d}),
                    in("v", {1, of.s, of.kv, of.d}));
  expect_cause(p, "scale 0.015625 for 0.125", AttentionKernel{of, 1.0 / 64.0});
}

TEST(LikelyCause, AConvolutionWithAFlippedFilterIsReported) {
  Program p;
  const Tensor in{p};
  constexpr std::int64_t size = 9, channels = 3, outputs = 4;
  conv2d_forward(p, {}, {}, "y", in("x", {1, size, size, channels}), in("filter", {outputs, 3, 3, channels}));
  expect_cause(p, "filter flipped along its height and width", [](const Tensors& from, Tensors& out) {
    set_each(out[0], [&](std::int64_t e) {
      const std::int64_t o = e % outputs, column = e / outputs % (size - 2), row = e / outputs / (size - 2);
      double sum = 0.0;
      for (std::int64_t tap = 0; tap < 9; ++tap) {
        for (std::int64_t c = 0; c < channels; ++c)
          sum += from[0].get(((row + tap / 3) * size + column + tap % 3) * channels + c) *
                 from[1].get((o * 9 + 8 - tap) * channels + c);
      }
      return sum;
    });
  });
}

TEST(LikelyCause, AdamWNamesAMissingCorrectionAndADecayWithoutTheRate) {
  Program p;
  const Tensor in{p};
  const ValueId lr = in("lr", {1}, Fill::constant(0.01)),
                step = p.add(tensor("step", DType::i32, {1}, Role::scalar, Fill::constant(3.0)));
  const AdamW attributes;
  const std::vector<AdamWTensor> parameters{
      {in("w", {64}), in("g", {64}), in("m", {64}), in("v", {64}, Fill::positive(1.0)), {}}};
  adamw(p, attributes, {}, "op", lr, step, parameters);
  const auto kernel = [&](bool corrected, double decay_rate) -> Kernel {
    return [=](const Tensors& from, Tensors& out) {
      set_each(out[0], [&](std::int64_t e) {
        const double g = from[3].get(e), w = from[2].get(e);
        const double moment = attributes.beta1 * from[4].get(e) + (1.0 - attributes.beta1) * g;
        const double second = attributes.beta2 * from[5].get(e) + (1.0 - attributes.beta2) * g * g;
        const double c1 = corrected ? 1.0 - std::pow(attributes.beta1, 3) : 1.0;
        const double c2 = corrected ? 1.0 - std::pow(attributes.beta2, 3) : 1.0;
        const double rate = from[0].get(0);
        return w - rate * (moment / c1 / (std::sqrt(second / c2) + attributes.epsilon)) -
               decay_rate * attributes.weight_decay * w;
      });
    };
  };
  EXPECT_EQ(reason(p, kernel(true, round_to(DType::f32, 0.01))), "");
  expect_cause(p, "no bias correction", kernel(false, round_to(DType::f32, 0.01)));
  expect_cause(p, "weight decay without the learning rate", kernel(true, 1.0));
}

TEST(LikelyCause, ASoftmaxWithoutItsMaximumIsReported) {
  Program p;
  softmax_forward(p, {}, "y", Tensor{p}("x", {rows, width}, Fill::normal(60.0)));
  expect_cause(p, "exponentials without a maximum", [](const Tensors& in, Tensors& out) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto exp = [&](std::int64_t j) { return std::exp(static_cast<float>(in[0].get(row * width + j))); };
      float sum = 0.0F;
      for (std::int64_t j = 0; j < width; ++j) sum += exp(j);
      for (std::int64_t j = 0; j < width; ++j) out[0].set(row * width + j, exp(j) / sum);
    }
  });
}

// Rows of usual variance don't distinguish a missing epsilon from a tiny one.
TEST(LikelyCause, OfCausesThatPredictDifferentNumbersNoneIsReported) {
  Program p;
  const Tensor in{p};
  layer_norm_forward(p, {1e-3}, {}, "y", in("x", {rows, width}), in("gamma", {width}), in("beta", {width}));
  NormKernel kernel;
  kernel.rstd = [](double variance) { return 1.0 / std::sqrt(variance); };
  const std::string why = reason(p, kernel);
  EXPECT_THAT(why, ::testing::AllOf(HasSubstr("outside their bound"), Not(HasSubstr("looks like"))));
}

TEST(LikelyCause, OfCausesThatPredictTheSameNumbersTheFirstIsReported) {
  Program p;
  const Tensor in{p};
  add(p, {}, "y", in("a", {8}, Fill::constant(1.0)), in("b", {8}, Fill::constant(1.0)));
  expect_cause(p, "operand left out: 'a'",
               [](const Tensors&, Tensors& out) { set_each(out[0], [](std::int64_t) { return 1.0; }); });
}

TEST(LikelyCause, AThousandRandomWrongResultsHaveNone) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const Product single, half(DType::bf16), quarter(DType::f16);
  const Program norm = layer_norm(), narrow_norm = rms_norm(DType::bf16);
  const std::vector<const Program*> programs{&single.p, &half.p, &quarter.p, &norm, &narrow_norm};
  int wrong = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const Program& program = *programs[static_cast<std::size_t>(trial) % programs.size()];
    const std::string why = reason(program, [&](const Tensors&, Tensors& out) {
      const HostTensor right = out[0];
      const double part = std::pow(0.5, static_cast<double>(trial / 5 % 6));
      set_each(out[0], [&](std::int64_t e) {
        if (std::generate_canonical<double, 53>(random) >= part) return right.get(e);
        if (trial / 30 % 3 == 0) return normal(random);
        if (trial / 30 % 3 == 1) return right.get(e) * (1.0 + 0.25 * normal(random));
        return right.get(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(right.elements())));
      });
    });
    EXPECT_THAT(why, Not(HasSubstr("looks like"))) << trial;
    wrong += why.empty() ? 0 : 1;
  }
  EXPECT_EQ(wrong, 1000);
}

}  // namespace likely_cause_test
}  // namespace gpubench
