#include "harness/parity/lower_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "reference/ops/gemm.h"
#include "tests/harness/parity/judged_program.h"

namespace gpubench {
namespace lower_precision_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t m = 16, n = 16, k = 256;

/// c = a b of m x k and k x n; `dot` computes an element from its k pairs of factors.
struct Product {
  explicit Product(DType type, const Math& math = {}) : judged(build(type, math)) {}

  static Program build(DType type, const Math& math) {
    Program p;
    gemm(p, {}, math, "c", p.add(tensor("a", type, {m, k}, Role::input, Fill::normal(1.0))),
         p.add(tensor("b", type, {k, n}, Role::parameter, Fill::normal(1.0))));
    return p;
  }
  void compute(
      const std::function<double(const std::function<double(int)>& a, const std::function<double(int)>& b)>& dot) {
    const OpCall& call = judged.program().op(0);
    const TensorView a = judged.view(call.inputs[0]), b = judged.view(call.inputs[1]);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double c = dot([&](int l) { return a[i * k + l]; }, [&](int l) { return b[l * n + j]; });
        judged.set(call.outputs[0], i * n + j, c);
      }
    }
  }
  [[nodiscard]] OpParity parity() const { return judged.judged({CheckMode::full, 1e9, 42, 1}); }

  JudgedProgram judged;
};

double cut(int bits, double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

/// Products of factors in `bits` bits, in `parts` sums; additions are rounded to `sum`, the sum of the parts to `part`.
auto sums(int bits, DType sum, int parts = 1, DType part = DType::f64) {
  return [=](const auto& a, const auto& b) {
    double total = 0.0;
    for (int p = 0; p < parts; ++p) {
      double partial = 0.0;
      for (int l = p * static_cast<int>(k) / parts; l < (p + 1) * static_cast<int>(k) / parts; ++l)
        partial = round_to(sum, partial + cut(bits, a(l)) * cut(bits, b(l)));
      total = round_to(part, total + round_to(part, partial));
    }
    return total;
  };
}

TEST(LowerPrecision, OfAProductThatIsAsDeclaredIsNone) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    Product product(type);
    product.compute(sums(24, DType::f32));
    EXPECT_EQ(product.parity().verdict, Verdict::pass) << product.parity().reason;
  }
}

TEST(LowerPrecision, OfTf32InputsUnderAnF32LabelIsNamed) {
  Product product(DType::f32);
  product.compute(sums(11, DType::f32));
  EXPECT_EQ(product.parity().verdict, Verdict::downgraded);
  EXPECT_THAT(product.parity().reason, HasSubstr("; all are right within the bound of tf32 inputs"));
  Math declared;
  declared.inputs = Math::Inputs::tf32;
  Product honest(DType::f32, declared);
  honest.compute(sums(11, DType::f32));
  EXPECT_EQ(honest.parity().verdict, Verdict::pass) << honest.parity().reason;
}

// An accepted arithmetic replaces a higher one only, and in products only if it concerns sums.
TEST(LowerPrecision, AcceptedByTheUserReplacesTheDeclaredOne) {
  Program p = Product::build(DType::f32, {});
  scale(p, {2.0}, {}, "scaled", p.op(0).outputs[0]);
  const auto math_of = [&](const std::vector<std::string>& names, int op) {
    const Program lower = with_arithmetic(p, names);
    EXPECT_EQ(lower.ops().size(), 2U);
    EXPECT_EQ(lower.op(op).label, p.op(op).label);
    EXPECT_EQ(lower.op(op).inputs, p.op(op).inputs);
    return lower.op(op).math;
  };
  EXPECT_EQ(math_of({}, 0), Math{});
  EXPECT_EQ(math_of({"tf32"}, 0).inputs, Math::Inputs::tf32);
  EXPECT_EQ(math_of({"bf16"}, 0).inputs, Math::Inputs::bf16);
  EXPECT_EQ(math_of({"bf16x2"}, 0).inputs, Math::Inputs::two_bf16);
  EXPECT_EQ(math_of({"f16_sums"}, 0).accumulate, DType::f16);
  EXPECT_EQ(math_of({"bf16_sums"}, 0).accumulate, DType::bf16);
  EXPECT_TRUE(math_of({"fast_f8", "tf32"}, 0).fast_accumulation);
  EXPECT_TRUE(math_of({"split_k_in_output"}, 0).split_k_in_output);
  EXPECT_EQ(math_of({"fewer_sum_bits", "fewer_input_bits"}, 0), Math{}) << "these have no separate bound";
  EXPECT_EQ(math_of({"f16_sums", "fast_f8", "split_k_in_output"}, 1), Math{}) << "of the op that is no product";
}

TEST(LowerPrecision, OfBf16InputsUnderAnF32LabelIsNamed) {
  Product product(DType::f32);
  product.compute(sums(8, DType::f32));
  EXPECT_EQ(product.parity().verdict, Verdict::downgraded);
  EXPECT_THAT(product.parity().reason, HasSubstr("; all are right within the bound of bf16 inputs"));
}

TEST(LowerPrecision, OfSumsIn16BitsIsNamed) {
  Product product(DType::f32);
  product.compute(sums(24, DType::f16));
  EXPECT_EQ(product.parity().verdict, Verdict::downgraded);
  EXPECT_THAT(product.parity().reason, HasSubstr("the bound of sums in f16"));
  product.compute(sums(24, DType::bf16));
  EXPECT_EQ(product.parity().verdict, Verdict::downgraded);
  EXPECT_THAT(product.parity().reason, HasSubstr("the bound of sums in bf16"));
}

TEST(LowerPrecision, OfPartialSumsInTheOutputsTypeIsNamed) {
  Product product(DType::bf16);
  product.compute(sums(24, DType::f32, 8, DType::bf16));
  EXPECT_EQ(product.parity().verdict, Verdict::downgraded);
  EXPECT_THAT(product.parity().reason, HasSubstr("the bound of partial sums rounded to the output's type"));
}

TEST(LowerPrecision, IsNotWhatOtherFaultsLookLike) {
  Product product(DType::f32);
  const auto right = sums(24, DType::f32);
  product.compute(right);
  const ValueId c = product.judged.program().op(0).outputs[0];
  const double element = product.judged.get(c, 77);
  product.judged.set(c, 77, element + 0.01);  // one element alone, by as much as tf32 inputs would
  EXPECT_EQ(product.parity().verdict, Verdict::fail);
  product.compute([&](const auto& a, const auto& b) { return right(a, b) * (1.0 + 0x1p-17); });  // far less than these
  EXPECT_EQ(product.parity().verdict, Verdict::fail);
  product.compute([&](const auto& a, const auto& b) { return right(a, b) * 2.0; });
  EXPECT_EQ(product.parity().verdict, Verdict::fail);
  product.compute([&](const auto& a, const auto& b) { return right(a, b) * 1.02; });  // as large as those of bf16 sums
  EXPECT_EQ(product.parity().verdict, Verdict::fail);
  product.compute([&](const auto& a, const auto& b) { return right(a, b) - a(0) * b(0); });
  EXPECT_EQ(product.parity().verdict, Verdict::fail);
  EXPECT_THAT(product.parity().reason, Not(HasSubstr("within the bound of")));
}

}  // namespace lower_precision_test
}  // namespace gpubench
