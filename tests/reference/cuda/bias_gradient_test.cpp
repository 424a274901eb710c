// Products with a bias gradient on the CUDA backend: every candidate against the textbook, with own kernels and a
// stand-in for cuBLASLt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "reference/ops/bias_gradient.h"
#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench {
namespace bias_gradient_test {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::EmulatedRun;
using ::testing::EndsWith;
using testing::last_candidates;
using ::testing::Not;
using testing::ProgramRun;
using testing::run_in_every_order;

using Operand = GemmWeightBiasGradient::Operand;

Math math_of(DType type) {
  Math math;
  if (type == DType::f64) math.accumulate = DType::f64;
  return math;
}

struct Experiment {
  Program program;
  ValueId a, b;
  std::optional<ValueId> pre;

  /// Candidates for `how`; sets `fault` to "" if the first is right.
  std::vector<std::string> candidates(EmulatedRun how = {}) {
    how.stride = std::max<std::int64_t>(how.stride, 1);
    fault = run(how);
    return last_candidates();
  }
  std::string run(const EmulatedRun& how) const {
    return run_in_every_order(
        program,
        [this](ProgramRun& r) {
          r.set_random(a, 1);
          r.set_random(b, 2, 0.25);
          if (pre) r.set_random(*pre, 3, 1.5);
        },
        how);
  }
  void expect_every_candidate_right(const std::string& what) {
    for (const std::string& candidate : candidates())
      EXPECT_EQ(run({.pinned = candidate}), "") << what << ": " << candidate;
  }
  std::string fault;
};

struct GeluExperiment : Experiment {
  GeluExperiment(DType type, std::int64_t m, std::int64_t n, std::int64_t k, Gemm attributes = {},
                 std::optional<DType> sum = {}) {
    const auto matrix = [](std::int64_t rows, std::int64_t columns, bool transposed) {
      return transposed ? Shape{columns, rows} : Shape{rows, columns};
    };
    attributes.epilogue = Gemm::Epilogue::gelu_gradient;
    a = program.add(tensor("dy", type, matrix(m, k, attributes.transpose_a), Role::gradient));
    b = program.add(tensor("w", type, matrix(k, n, attributes.transpose_b), Role::parameter));
    pre = program.add(tensor("pre", type, Shape{m, n}, Role::activation));
    std::optional<ValueId> db;
    if (sum) db = program.reserve(tensor("db", *sum, Shape{n}, Role::gradient));
    (void)gemm_gelu_bias_gradient(program, attributes, math_of(type), "op", a, b, *pre, db);
  }
};

TEST(CudaGemmGeluBiasGradient, EveryCandidateLiesWithinItsBounds) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [m, n, k] : {std::tuple{1, 8, 3}, {70, 40, 9}, {3, 264, 2}}) {
      for (const bool transposed : {false, true}) {
        GeluExperiment e(type, m, n, k, {.transpose_a = transposed, .transpose_b = transposed, .alpha = 0.5});
        e.expect_every_candidate_right(std::string(name(type)) + ", " + std::to_string(m) + " x " + std::to_string(n) +
                                       ", transposed " + std::to_string(transposed));
      }
    }
  }
}

TEST(CudaGemmGeluBiasGradient, TheLibrarysSumRunsAgainstOwnKernelsBehindItsProducts) {
  GeluExperiment e(DType::bf16, 16, 8, 4);

  EXPECT_THAT(e.candidates(),
              ElementsAre(EndsWith("cluster=0"), EndsWith("cluster=0"), EndsWith("+gpubench:sm90:column_sum"),
                          EndsWith("+gpubench:sm90:column_sum"), EndsWith("+gpubench:sm90:slope_and_sum"),
                          EndsWith("+gpubench:sm90:slope_and_sum")));
}

TEST(CudaGemmGeluBiasGradient, WhereTheLibraryHasNoEpilogueOwnKernelsRemain) {
  // cuBLASLt's epilogue needs pre-activation rows a multiple of 8 elements apart, and has only the tanh form of GELU.
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    GeluExperiment odd(type, 33, 13, 5);
    EXPECT_THAT(odd.candidates(), Each(EndsWith(":slope_and_sum"))) << name(type);
    odd.expect_every_candidate_right("13 columns in " + std::string(name(type)));

    GeluExperiment erf(type, 33, 16, 5, {.gelu_form = GeluForm::erf});
    EXPECT_THAT(erf.candidates(), Each(EndsWith(":slope_and_sum"))) << name(type);
    erf.expect_every_candidate_right("erf in " + std::string(name(type)));
  }
  GeluExperiment wide(DType::bf16, 33, 16, 5, {}, DType::f32);  // the bias gradient has dz's type
  EXPECT_THAT(wide.candidates(), Each(AnyOf(EndsWith(":column_sum"), EndsWith(":slope_and_sum"))));
  wide.expect_every_candidate_right("db in f32");
}

TEST(CudaGemmGeluBiasGradient, DeterministicSumsAreOwnKernels) {
  GeluExperiment e(DType::bf16, 16, 8, 4);

  EXPECT_THAT(e.candidates({.deterministic = true}),
              AllOf(Contains(EndsWith(":column_sum")), Contains(EndsWith(":slope_and_sum")),
                    Not(Contains(EndsWith("cluster=0")))));
  EXPECT_EQ(e.fault, "");
}

TEST(CudaGemmGeluBiasGradient, ManyRowsAreSummedInPartsOnManyProcessors) {
  GeluExperiment e(DType::bf16, 700, 16, 2);
  for (const std::string& candidate : e.candidates())
    EXPECT_EQ(e.run({.multiprocessors = 132, .pinned = candidate}), "") << candidate;
}

struct WeightExperiment : Experiment {
  WeightExperiment(DType type, Operand gradient, bool other_transposed, std::int64_t tokens, Math math,
                   std::optional<DType> sum = {}) {
    constexpr std::int64_t out = 24, in = 10;
    const ValueId dy = program.add(tensor("dy", type, Shape{tokens, out}, Role::gradient));
    const bool first = gradient == Operand::a;
    const ValueId x =
        program.add(tensor("x", type, other_transposed ? Shape{in, tokens} : Shape{tokens, in}, Role::activation));
    GemmWeightBiasGradient attributes{{}, gradient};
    attributes.gemm.transpose_a = first || !other_transposed;
    attributes.gemm.transpose_b = first && other_transposed;
    std::optional<ValueId> db;
    if (sum) db = program.reserve(tensor("db", *sum, Shape{out}, Role::gradient));
    a = first ? dy : x;
    b = first ? x : dy;
    (void)gemm_weight_bias_gradient(program, attributes, math, "op", a, b, {}, db);
  }
};

// cuBLASLt sums its B for a weight [out, in], its A for [in, out].
TEST(CudaGemmWeightBiasGradient, EveryCandidateLiesWithinItsBoundsForBothLayouts) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const Operand gradient : {Operand::a, Operand::b}) {
      for (const bool other_transposed : {false, true}) {
        for (const std::int64_t tokens : {1, 77}) {
          WeightExperiment e(type, gradient, other_transposed, tokens, math_of(type));
          EXPECT_THAT(e.candidates(), ElementsAre(EndsWith("cluster=0"), EndsWith("cluster=0"), EndsWith(":column_sum"),
                                                  EndsWith(":column_sum")));
          e.expect_every_candidate_right(std::string(name(type)) + ", " + std::to_string(tokens) + " tokens");
        }
      }
    }
  }
}

TEST(CudaGemmWeightBiasGradient, WhereTheLibrarysSumIsAnotherOwnKernelsRemain) {
  const Math tf32{.inputs = Math::Inputs::tf32};
  WeightExperiment cut(DType::f32, Operand::a, false, 40, tf32);  // the sum's terms could be cut to tf32 too
  EXPECT_THAT(cut.candidates(), Each(EndsWith(":column_sum")));
  EXPECT_EQ(cut.fault, "");

  WeightExperiment wide(DType::bf16, Operand::a, false, 40, Math{}, DType::f32);
  EXPECT_THAT(wide.candidates(), Each(EndsWith(":column_sum")));
  wide.expect_every_candidate_right("db in f32");

  WeightExperiment same_bits(DType::bf16, Operand::a, false, 40, Math{});
  EXPECT_THAT(same_bits.candidates({.deterministic = true}), Each(EndsWith(":column_sum")));
}

}  // namespace bias_gradient_test
}  // namespace gpubench
