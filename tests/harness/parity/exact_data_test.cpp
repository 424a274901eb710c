#include "harness/parity/exact_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/core/hash.h"
#include "harness/parity/judge.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/conv2d.h"
#include "reference/ops/conv2d_batch_norm.h"
#include "reference/ops/gemm.h"
#include "reference/ops/grouped_gemm.h"
#include "reference/ops/shared_textbook.h"

namespace gpubench {
namespace exact_data_test {

class Exact {
 public:
  explicit Exact(Program program, std::uint64_t seed = 1) : program_(std::move(program)) {
    for (const ValueId id : call().inputs) inputs_.push_back(program_.spec(id));
    for (const ValueId id : call().outputs) outputs_.push_back(program_.spec(id));
    data = exact_data({call(), inputs_, outputs_}, seed);
    if (data) left = textbook_outputs({call(), views_of(data->inputs), outputs_, {}, true});
  }
  [[nodiscard]] const OpCall& call() const { return program_.op(0); }
  [[nodiscard]] OpParity judged(std::uint64_t seed = 1, CheckMode mode = CheckMode::sample) const {
    const std::vector<TensorView> in = views_of(data->inputs), out = views_of(left);
    return judge(program_, 0, {in, out}, {mode, 20e6, seed, 2, {true, data->multiple_of}}, "exact");
  }
  /// The op's correct outputs on other inputs.
  [[nodiscard]] std::vector<HostTensor> with(const std::vector<HostTensor>& inputs) const {
    return textbook_outputs({call(), views_of(inputs), outputs_, {}, true});
  }

  std::optional<ExactData> data;
  std::vector<HostTensor> left;

 private:
  Program program_;
  std::vector<TensorSpec> inputs_, outputs_;
};

struct Sizes {
  std::int64_t m, n, k;
};

Program product(DType type, const Sizes& s, const Gemm& g = {}, const Math& math = {}, std::int64_t batch = 0) {
  Program p;
  const auto shape = [&](std::int64_t rows, std::int64_t columns) {
    return batch > 0 ? Shape{batch, rows, columns} : Shape{rows, columns};
  };
  const ValueId a = p.add(tensor("a", type, g.transpose_a ? shape(s.k, s.m) : shape(s.m, s.k), Role::input));
  const ValueId b = p.add(tensor("b", type, g.transpose_b ? shape(s.n, s.k) : shape(s.k, s.n), Role::parameter));
  GemmOperands others;
  if (g.bias) others.bias = p.add(tensor("bias", type, {s.n}, Role::parameter));
  if (g.beta != 0.0) others.c_in = p.add(tensor("c_in", type, shape(s.m, s.n), Role::state));
  if (g.epilogue == Gemm::Epilogue::gelu_gradient)
    others.pre = p.add(tensor("pre", type, shape(s.m, s.n), Role::activation));
  gemm(p, g, math, "op", a, b, others);
  return p;
}

Program convolution(int direction, DType type, const Conv2d& conv, std::int64_t images, std::int64_t channels,
                    std::int64_t filters, std::int64_t taps) {
  Program p;
  const std::int64_t h = 9;
  const std::int64_t q = (h + 2 * conv.pad_h - conv.dilation_h * (taps - 1) - 1) / conv.stride_h + 1;
  const auto x = [&] { return p.add(tensor("x", type, {images, h, h, channels}, Role::input)); };
  const auto dy = [&] { return p.add(tensor("dy", type, {images, q, q, filters}, Role::gradient)); };
  const auto w = [&] {
    return p.add(tensor("w", type, {filters, taps, taps, channels / conv.groups}, Role::parameter));
  };
  if (direction == 0) {
    const ValueId data = x(), filter = w();
    conv2d_forward(p, conv, Math{}, "op", data, filter);
  } else if (direction == 1) {
    const ValueId data = dy(), filter = w();
    conv2d_backward_data(p, conv, Math{}, "op", data, filter, h, h);
  } else {
    const ValueId data = x(), gradient = dy();
    conv2d_backward_filter(p, conv, Math{}, "op", data, gradient, taps, taps);
  }
  return p;
}

Program of_groups(int direction, DType type, std::int64_t rows, std::int64_t groups) {
  Program p;
  const ValueId a = p.add(tensor("a", type, {rows, 40}, Role::input));
  const ValueId b = p.add(tensor("b", type,
                                 direction == 2   ? Shape{rows, 36}
                                 : direction == 1 ? Shape{groups, 36, 40}
                                                  : Shape{groups, 40, 36},
                                 Role::parameter));
  const ValueId sizes = p.add(tensor("sizes", DType::i32, {groups}, Role::input));
  if (direction == 2) {
    grouped_gemm_backward_weight(p, Math{}, "op", a, b, sizes);
  } else {
    grouped_gemm(p, {direction == 1}, Math{}, "op", a, b, sizes);
  }
  return p;
}

Program fused(int which, DType type) {
  Program p;
  if (which == 2) {
    const ValueId x = p.add(tensor("x", type, {3, 9, 9, 32}, Role::input));
    const ValueId filter = p.add(tensor("filter", type, {40, 3, 3, 32}, Role::parameter));
    const auto of_channel = [&](const char* name) { return p.add(tensor(name, DType::f32, {40}, Role::parameter)); };
    const ValueId gamma = of_channel("gamma"), beta = of_channel("beta");
    const ValueId mean = of_channel("running_mean"), variance = of_channel("running_var");
    Conv2dBatchNorm attributes;
    attributes.conv.pad_h = attributes.conv.pad_w = 1;
    conv2d_batch_norm_forward(p, attributes, Math{}, "op", x, filter, {gamma, beta, mean, variance});
    return p;
  }
  const ValueId a = p.add(tensor("a", type, {301, 40}, Role::input));
  const ValueId b = p.add(tensor("b", type, {301, 70}, Role::gradient));
  Gemm g;
  g.transpose_a = true;
  if (which == 0) {
    gemm_weight_bias_gradient(p, {g, GemmWeightBiasGradient::Operand::b}, Math{}, "op", a, b);
  } else {
    g.epilogue = Gemm::Epilogue::gelu_gradient;
    gemm_gelu_bias_gradient(p, g, Math{}, "op", a, b, p.add(tensor("pre", type, {40, 70}, Role::activation)));
  }
  return p;
}

struct Problem {
  std::string name;
  std::function<Program()> build;
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const std::string of(name(type));
    Math math;
    if (type == DType::f64) math.accumulate = DType::f64;
    for (int transposes = 0; transposes < 4; ++transposes) {
      Gemm g;
      g.transpose_a = (transposes & 1) != 0;
      g.transpose_b = (transposes & 2) != 0;
      all.push_back({of + " gemm " + std::to_string(transposes), [=] {
                       return product(type, {40, 70, 301}, g, math);
                     }});
      g.bias = true;
      g.alpha = 0.125;
      g.beta = 0.5;
      all.push_back({of + " gemm with bias and c_in " + std::to_string(transposes), [=] {
                       return product(type, {40, 70, 44}, g, math);
                     }});
    }
    all.push_back({of + " batched gemm", [=] { return product(type, {16, 40, 64}, {}, math, 3); }});
    if (type == DType::f64) continue;
    for (int direction = 0; direction < 3; ++direction) {
      const std::string which = " conv " + std::to_string(direction);
      Conv2d conv;
      conv.pad_h = conv.pad_w = 1;
      all.push_back({of + which, [=] { return convolution(direction, type, conv, 3, 32, 40, 3); }});
      conv.stride_h = conv.stride_w = 2;
      all.push_back({of + which + " by twos", [=] { return convolution(direction, type, conv, 2, 8, 6, 3); }});
      conv.groups = 2;
      all.push_back({of + which + " in groups", [=] { return convolution(direction, type, conv, 2, 8, 6, 3); }});
      Conv2d stem;
      stem.pad_h = stem.pad_w = 3;
      all.push_back(
          {of + which + " of three channels", [=] { return convolution(direction, type, stem, 1, 3, 16, 7); }});
      all.push_back(
          {of + " grouped gemm " + std::to_string(direction), [=] { return of_groups(direction, type, 61, 5); }});
    }
  }
  return all;
}

TEST(ExactData, HasOneRightAnswerThatIsAcceptedBitForBit) {
  for (const Problem& problem : problems()) {
    Exact op(problem.build());
    ASSERT_TRUE(op.data.has_value()) << problem.name;
    const OpParity parity = op.judged();
    EXPECT_EQ(parity.verdict, Verdict::pass) << problem.name << ": " << parity.reason;
    EXPECT_EQ(parity.error_over_bound, 0.0) << problem.name;
    EXPECT_EQ(parity.mutations, parity.mutations_rejected) << problem.name;
    HostTensor& output = op.left[0];
    for (std::int64_t e = 0; e < output.elements(); e += 1 + output.elements() / 17) {
      const HostTensor right = output;
      output.flip(e, 1);  // the last bit
      EXPECT_EQ(op.judged().verdict, Verdict::fail) << problem.name << " element " << e;
      output = right;
    }
  }
}

TEST(ExactData, ExistsForAProductWithFurtherOutputs) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const int which : {0, 2}) {
      Exact op(fused(which, type));
      ASSERT_TRUE(op.data && op.data->multiple_of > 0.0);
      const OpParity parity = op.judged();
      EXPECT_EQ(parity.verdict, Verdict::pass) << which << ": " << parity.reason;
      HostTensor& product = op.left[0];
      int tried = 0, worst = 0;  // a norm's y is computed from the product, so the same element may be worse
      for (std::int64_t e = 0; e < product.elements(); e += 1 + product.elements() / 17, ++tried) {
        product.flip(e, 1);
        const OpParity wrong = op.judged();
        EXPECT_EQ(wrong.verdict, Verdict::fail) << which << " element " << e;
        if (wrong.worst && wrong.worst->tensor == product.spec.name) ++worst;
        product.flip(e, 1);
      }
      EXPECT_GT(worst, tried / 2) << which;
    }
  }
  Exact op(fused(1, DType::f32));
  ASSERT_TRUE(op.data.has_value());
  EXPECT_EQ(op.judged().verdict, Verdict::pass) << op.judged().reason;
  for (std::int64_t e = 0; e < op.left[0].elements(); ++e) op.left[0].set(e, op.left[0].get(e) * (1.0 + 0x1p-18));
  EXPECT_EQ(op.judged().verdict, Verdict::fail);
}

// In f32, in several orders; sums that are stored exactly must also be numbers of the output's type.
TEST(ExactData, IsSummedWithoutRoundingInAnyOrder) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const std::int64_t k : {1, 2, 3, 64, 4099}) {
      const Sizes s{7, 9, k};
      const Exact op(product(type, s));
      ASSERT_TRUE(op.data && op.data->multiple_of > 0.0);
      std::vector<std::int64_t> order(static_cast<std::size_t>(k));
      std::iota(order.begin(), order.end(), 0);
      for (std::uint64_t trial = 0; trial < 4; ++trial) {
        for (std::int64_t i = 0; i < s.m; ++i) {
          for (std::int64_t j = 0; j < s.n; ++j) {
            float sum = 0.0F;
            for (const std::int64_t at : order)
              sum += static_cast<float>(op.data->inputs[0].get(i * k + at) * op.data->inputs[1].get(at * s.n + j));
            ASSERT_EQ(static_cast<double>(sum), op.left[0].get(i * s.n + j)) << k;
            ASSERT_EQ(round_to(type, static_cast<double>(sum)), static_cast<double>(sum)) << k;
          }
        }
        std::ranges::sort(order, {},
                          [trial](std::int64_t at) { return hash_at(trial, static_cast<std::uint64_t>(at)); });
      }
    }
  }
}

TEST(ExactData, ShowsAnyProductLeftOutOrTakenTwiceInEveryElement) {
  const Sizes s{33, 40, 500};
  Exact op(product(DType::bf16, s));
  const std::vector<HostTensor> right = op.left;
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{1}, std::int64_t{249}, std::int64_t{250}, s.k - 1}) {
    for (const double factor : {0.0, 2.0, -1.0}) {
      std::vector<HostTensor> inputs = op.data->inputs;
      for (std::int64_t i = 0; i < s.m; ++i) inputs[0].set(i * s.k + at, factor * inputs[0].get(i * s.k + at));
      op.left = op.with(inputs);
      for (std::int64_t e = 0; e < s.m * s.n; ++e) ASSERT_NE(op.left[0].get(e), right[0].get(e)) << at;
      EXPECT_EQ(op.judged().verdict, Verdict::fail) << at;
    }
  }
}

TEST(ExactData, ShowsRowsColumnsAndPlacesThatAreSwapped) {
  const Sizes s{64, 96, 128};
  Exact op(product(DType::bf16, s));
  const std::vector<HostTensor> inputs = op.data->inputs;
  const auto swap = [&](HostTensor& t, std::int64_t first, std::int64_t second, std::int64_t step, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double held = t.get(first + i * step);
      t.set(first + i * step, t.get(second + i * step));
      t.set(second + i * step, held);
    }
  };
  std::vector<std::vector<HostTensor>> wrong(4, inputs);
  swap(wrong[0][0], 3 * s.k, 4 * s.k, 1, s.k);    // rows of a
  swap(wrong[1][1], 17, 18, s.n, s.k);            // columns of b
  swap(wrong[2][0], 31, 32, s.k, s.m);            // two places of the sum, in a
  swap(wrong[3][1], 31 * s.n, 32 * s.n, 1, s.n);  // and in b
  for (const std::vector<HostTensor>& one : wrong) {
    op.left = op.with(one);
    EXPECT_EQ(op.judged().verdict, Verdict::fail);
  }
}

// See harness/parity/EXACT_DATA.md.
TEST(ExactData, ShowsAScaleOffBy2ToTheMinus18InF32) {
  Conv2d conv;
  conv.pad_h = conv.pad_w = 1;
  for (Program (*build)() : {+[] {
                               return product(DType::f32, {64, 96, 768});
                             },
                             +[] {
                               return product(DType::f32, {33, 40, 16384});
                             }}) {
    Exact op(build());
    for (std::int64_t e = 0; e < op.left[0].elements(); ++e) op.left[0].set(e, op.left[0].get(e) * (1.0 + 0x1p-18));
    EXPECT_EQ(op.judged().verdict, Verdict::fail);
  }
  Exact op(convolution(0, DType::f32, conv, 1, 512, 40, 3));  // sums of 4,608 products
  for (std::int64_t e = 0; e < op.left[0].elements(); ++e) op.left[0].set(e, op.left[0].get(e) * (1.0 + 0x1p-18));
  EXPECT_EQ(op.judged().verdict, Verdict::fail);
}

TEST(ExactData, ShowsTheLastOfHalfAMillionProductsLeftOutOrTakenTwiceInBf16) {
  const Sizes s{2, 40, 500'000};
  Exact op(product(DType::bf16, s));
  ASSERT_TRUE(op.data && op.data->multiple_of > 0.0);
  EXPECT_EQ(op.judged().verdict, Verdict::pass) << op.judged().reason;
  for (const double factor : {0.0, 2.0}) {
    for (const std::int64_t last : {1, 8}) {
      std::vector<HostTensor> inputs = op.data->inputs;
      for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t at = s.k - last; at < s.k; ++at)
          inputs[0].set(i * s.k + at, factor * inputs[0].get(i * s.k + at));
      }
      op.left = op.with(inputs);
      EXPECT_EQ(op.judged().verdict, Verdict::fail) << factor << " of " << last;
    }
  }
}

TEST(ExactData, ShowsPartialSumsInBf16) {
  const Sizes s{40, 64, 4096};
  for (const std::int64_t parts : {2, 4, 16}) {
    Exact op(product(DType::bf16, s));
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) {
        double sum = 0.0;
        for (std::int64_t part = 0; part < parts; ++part) {
          double of_part = 0.0;
          for (std::int64_t at = part * s.k / parts; at < (part + 1) * s.k / parts; ++at)
            of_part += op.data->inputs[0].get(i * s.k + at) * op.data->inputs[1].get(at * s.n + j);
          sum = round_to(DType::bf16, sum + round_to(DType::bf16, of_part));
        }
        op.left[0].set(i * s.n + j, sum);
      }
    }
    EXPECT_EQ(op.judged().verdict, Verdict::fail) << parts;
  }
}

TEST(ExactData, ShowsTheLastBitOfAnyElementOfALargeSum) {
  for (const DType type : {DType::f32, DType::bf16}) {
    Exact op(product(type, {34, 65, 16384}));
    for (std::int64_t e = 0; e < op.left[0].elements(); e += 101) {
      op.left[0].flip(e, 1);
      EXPECT_EQ(op.judged(static_cast<std::uint64_t>(e)).verdict, Verdict::fail) << e;
      op.left[0].flip(e, 1);
    }
  }
}

// A constant off by little changes a bf16 result by less than its last bit, except for those of thousands near a
// boundary.
TEST(ExactData, ShowsConstantsOfGelusEpilogueThatAreOff) {
  Gemm forward, backward;
  forward.epilogue = Gemm::Epilogue::gelu;
  forward.bias = true;
  backward.epilogue = Gemm::Epilogue::gelu_gradient;
  for (const DType type : {DType::f32, DType::bf16}) {
    Exact op(product(type, {64, 256, 768}, forward));
    EXPECT_EQ(op.judged().verdict, Verdict::pass) << op.judged().reason;
    std::set<double> seen;
    for (std::int64_t e = 0; e < op.left[1].elements(); ++e) seen.insert(op.left[1].get(e));
    EXPECT_LE(*seen.rbegin(), 4.0);
    EXPECT_GE(*seen.begin(), -4.0);
    EXPECT_GT(seen.size(), 250U);
    for (const auto& [square, cube] :
         {std::pair(0.7979, 0.044715), std::pair(std::sqrt(2.0 / 3.14159265358979), 0.0447)}) {
      for (std::int64_t e = 0; e < op.left[0].elements(); ++e) {
        const double z = op.left[1].get(e);
        op.left[0].set(e, 0.5 * z * (1.0 + std::tanh(square * (z + cube * z * z * z))));
      }
      EXPECT_EQ(op.judged(1, CheckMode::full).verdict, Verdict::fail) << name(type) << square << " " << cube;
    }
    Exact gradient(product(type, {64, 256, 768}, backward));
    EXPECT_EQ(gradient.judged().verdict, Verdict::pass) << gradient.judged().reason;
  }
}

TEST(ExactData, DoesNotExistWhereSumsMayRound) {
  Math narrow;
  narrow.accumulate = DType::f16;
  EXPECT_FALSE(Exact(product(DType::f16, {8, 8, 4096}, {}, narrow)).data);
  EXPECT_TRUE(Exact(product(DType::f16, {8, 8, 128}, {}, narrow)).data);
  Math split;
  split.split_k_in_output = true;
  EXPECT_FALSE(Exact(product(DType::bf16, {8, 8, 64}, {}, split)).data);
  Gemm third;
  third.alpha = 1.0 / 3.0;
  EXPECT_FALSE(Exact(product(DType::f32, {8, 8, 64}, third)).data);
}

TEST(ExactData, OfGroupsHasSizesThatAddUpAndSomeOfThemEmpty) {
  std::set<double> all;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Exact op(of_groups(0, DType::f32, 61, 5), seed);
    double sum = 0.0;
    for (std::int64_t g = 0; g < 5; ++g) {
      sum += op.data->inputs[2].get(g);
      all.insert(op.data->inputs[2].get(g));
      EXPECT_GE(op.data->inputs[2].get(g), 0.0);
    }
    EXPECT_EQ(sum, 61.0);
  }
  EXPECT_TRUE(all.contains(0.0));
  EXPECT_GT(all.size(), 20U);
}

}  // namespace exact_data_test
}  // namespace gpubench
