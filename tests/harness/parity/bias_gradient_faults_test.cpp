// Faults in a bias gradient that is computed with its product; all columns are judged, on the dz in memory. The op
// under test is a loop in f32 with switchable mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/parity/judge.h"
#include "reference/ops/bias_gradient.h"
#include "tests/harness/parity/judged_program.h"

namespace gpubench {
namespace bias_gradient_faults_test {

using testing::HasSubstr;

enum class Fault { none, before_rounding, last_row_missing, row_twice, no_slope, of_product_in_dz, next_column, zero };

// dz [m, n] = (a b) gelu'(pre) with erf; db [n] in f32, whose rounding hides nothing.
struct BiasGradient {
  static constexpr std::int64_t m = 512, n = 40, k = 24;
  DType type;
  ValueId a, b, pre;
  GemmBiasGradientResult out;
  JudgedProgram memory;

  explicit BiasGradient(DType type_) : type(type_), memory(program()) {}

  Program program() {
    Program p;
    a = p.add(tensor("dy", type, {m, k}, Role::gradient, Fill::normal(0.03125)));
    b = p.add(tensor("w", type, {k, n}, Role::parameter, Fill::normal(1.0 / std::sqrt(24.0))));
    pre = p.add(tensor("pre", type, {m, n}, Role::activation, Fill::pointwise()));
    const ValueId db = p.reserve(tensor("db", DType::f32, {n}, Role::gradient));
    Gemm attributes;
    attributes.epilogue = Gemm::Epilogue::gelu_gradient;
    attributes.gelu_form = GeluForm::erf;
    out = gemm_gelu_bias_gradient(p, attributes, Math{}, "dz", a, b, pre, db);
    return p;
  }

  [[nodiscard]] float product(std::int64_t i, std::int64_t j) const {
    float sum = 0.0F;
    for (std::int64_t l = 0; l < k; ++l)
      sum += static_cast<float>(memory.get(a, i * k + l)) * static_cast<float>(memory.get(b, l * n + j));
    return sum;
  }
  [[nodiscard]] float slope(std::int64_t i, std::int64_t j) const {
    const auto x = static_cast<float>(memory.get(pre, i * n + j));
    return 0.5F * std::erfc(-0.70710678F * x) + x * 0.39894228F * std::exp(-0.5F * x * x);
  }

  [[nodiscard]] OpParity run(Fault fault) {
    std::vector<float> unrounded;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        unrounded.push_back(product(i, j) * slope(i, j));
        memory.set(out.c, i * n + j, fault == Fault::of_product_in_dz ? product(i, j) : unrounded.back());
      }
    }
    for (std::int64_t j = 0; j < n; ++j) memory.set(out.db, j, sum(fault, unrounded, j));
    return memory.judged();
  }

  [[nodiscard]] float sum(Fault fault, const std::vector<float>& unrounded, std::int64_t j) const {
    const std::int64_t column = fault == Fault::next_column ? (j + 1) % n : j;
    float sum = fault == Fault::row_twice ? unrounded[static_cast<std::size_t>(j)] : 0.0F;
    if (fault == Fault::zero) return sum;
    for (std::int64_t i = 0; i < m - (fault == Fault::last_row_missing ? 1 : 0); ++i) {
      const std::int64_t at = i * n + column;
      sum += fault == Fault::before_rounding ? unrounded[static_cast<std::size_t>(at)]
             : fault == Fault::no_slope      ? product(i, column)
                                             : static_cast<float>(memory.get(out.c, at));
    }
    return sum;
  }
};

TEST(BiasGradientFaults, SumsBeforeAndAfterRoundingPass) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const Fault fault : {Fault::none, Fault::before_rounding}) {
      const OpParity parity = BiasGradient(type).run(fault);
      EXPECT_EQ(parity.verdict, Verdict::pass) << name(type) << ": " << parity.reason;
      EXPECT_EQ(parity.judged, parity.elements);
      EXPECT_EQ(parity.mutations, parity.mutations_rejected);
    }
  }
}

TEST(BiasGradientFaults, AWrongSumIsFoundInIt) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const Fault fault :
         {Fault::last_row_missing, Fault::row_twice, Fault::no_slope, Fault::next_column, Fault::zero}) {
      const OpParity parity = BiasGradient(type).run(fault);
      EXPECT_EQ(parity.verdict, Verdict::fail) << name(type) << ", fault " << static_cast<int>(fault);
      EXPECT_THAT(parity.reason, HasSubstr("worst at db[")) << name(type) << ", fault " << static_cast<int>(fault);
    }
  }
}

TEST(BiasGradientFaults, AnOpWithoutTheSlopeIsFoundInItsProduct) {
  const OpParity parity = BiasGradient(DType::bf16).run(Fault::of_product_in_dz);

  EXPECT_EQ(parity.verdict, Verdict::fail);
  EXPECT_THAT(parity.reason, HasSubstr("worst at dz["));
}

}  // namespace bias_gradient_faults_test
}  // namespace gpubench
