// gemm on the CUDA backend: what it tells cuBLASLt, judged by what a stand-in that follows the library's manual makes
// of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "reference/ops/gemm.h"
#include "tests/reference/cuda/emulated_choice.h"
#include "tests/reference/cuda/emulated_cublaslt.h"
#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench {
namespace gemm_test {

using ::testing::Contains;
using testing::CublasLtTrouble;
using ::testing::HasSubstr;
using testing::last_candidates;
using testing::ProgramRun;
using testing::run_in_every_order;
using testing::WithTrouble;

/// A product of a [19, 11] and a [11, 24] as the attributes say, judged for every candidate.
void expect_right(DType type, const Gemm& attributes) {
  constexpr std::int64_t m = 19, n = 24, k = 11;
  Program program;
  Math math;
  if (type == DType::f64) math.accumulate = DType::f64;
  const auto add = [&program, type](const char* name, std::int64_t rows, std::int64_t columns, bool transposed) {
    return program.add(tensor(name, type, transposed ? Shape{columns, rows} : Shape{rows, columns}, Role::activation));
  };
  const ValueId a = add("a", m, k, attributes.transpose_a);
  const ValueId b = add("b", k, n, attributes.transpose_b);
  GemmOperands operands;
  if (attributes.beta != 0.0) operands.c_in = add("c_in", m, n, false);
  if (attributes.bias) operands.bias = program.add(tensor("bias", type, Shape{n}, Role::parameter));
  if (attributes.epilogue == Gemm::Epilogue::gelu_gradient) operands.pre = add("pre", m, n, false);
  (void)gemm(program, attributes, math, "op", a, b, operands);
  const auto fill = [&](ProgramRun& run) {
    std::uint64_t seed = 1;
    for (const ValueId input : run.program().op(0).inputs) run.set_random(input, seed++);
  };

  const std::string what = std::string(name(type)) + ", " + describe(attributes);
  EXPECT_EQ(run_in_every_order(program, fill), "") << what;
  const std::vector<std::string> candidates = last_candidates();
  EXPECT_GE(candidates.size(), 2U) << what;
  for (const std::string& candidate : candidates)
    EXPECT_EQ(run_in_every_order(program, fill, {.pinned = candidate}), "") << what << " by " << candidate;
}

TEST(CudaGemm, EveryTransposeAndFactorIsTheProductThatWasAskedFor) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        expect_right(type, {.transpose_a = transpose_a, .transpose_b = transpose_b, .alpha = -0.5, .bias = true});
        expect_right(type, {.transpose_a = transpose_a, .transpose_b = transpose_b, .beta = 2.0});
      }
    }
  }
}

TEST(CudaGemm, GeluAndItsSlopeAreWithinOrBehindTheProduct) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    expect_right(type, {.transpose_b = true, .bias = true, .epilogue = Gemm::Epilogue::gelu});
    expect_right(type, {.epilogue = Gemm::Epilogue::gelu_gradient});
  }
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {  // of which the library knows none
    expect_right(type, {.bias = true, .epilogue = Gemm::Epilogue::gelu, .gelu_form = GeluForm::erf});
    expect_right(type, {.alpha = 0.5, .epilogue = Gemm::Epilogue::gelu, .gelu_form = GeluForm::erf});
    expect_right(type, {.epilogue = Gemm::Epilogue::gelu_gradient, .gelu_form = GeluForm::erf});
  }
}

/// A layer with GELU: [16, 24] of sums over 8.
struct Layer {
  explicit Layer(DType type, std::int64_t n = 24)
      : x(program.add(tensor("x", type, Shape{16, 8}, Role::activation))),
        w(program.add(tensor("w", type, Shape{n, 8}, Role::parameter))),
        bias(program.add(tensor("bias", type, Shape{n}, Role::parameter))) {
    (void)gemm(program, {.transpose_b = true, .bias = true, .epilogue = Gemm::Epilogue::gelu}, Math{}, "op", x, w,
               {.bias = bias});
  }
  [[nodiscard]] std::string run(const std::string& pinned = {}) const {
    return run_in_every_order(program,
                              [this](ProgramRun& r) {
                                r.set_random(x, 1);
                                r.set_random(w, 2, 0.25);
                                r.set_random(bias, 3, 0.25);
                              },
                              {.pinned = pinned});
  }
  Program program;
  ValueId x, w, bias;
};

TEST(CudaGemm, OwnGeluBehindTheProductIsThereForEveryTypeAndWidth) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t n : {24, 13}) {  // 13: the library's own epilogue wants rows of a multiple of 8
      const Layer layer(type, n);
      EXPECT_EQ(layer.run(), "") << name(type) << ", " << n;
      const std::vector<std::string> candidates = last_candidates();
      EXPECT_THAT(candidates, Contains(HasSubstr("+gpubench:sm90"))) << name(type) << ", " << n;
      for (const std::string& candidate : candidates) EXPECT_EQ(layer.run(candidate), "") << candidate;
    }
  }
}

TEST(CudaGemm, AnApproximateTanhIsOutsideTheBoundAndOwnGeluIsNot) {
  const WithTrouble trouble({.approximate_tanh = true});
  for (const DType type : {DType::f16, DType::bf16}) {
    const Layer layer(type);
    EXPECT_NE(layer.run(), "") << name(type);  // the library's epilogue is the first candidate
    for (const std::string& candidate : std::vector<std::string>(last_candidates())) {
      EXPECT_EQ(layer.run(candidate) == "", candidate.find("+gpubench:sm90") != std::string::npos) << candidate;
    }
  }
}

TEST(CudaGemm, WhereTheLibraryHasNoAlgorithmThatIsSaid) {
  for (const CublasLtTrouble& trouble :
       {CublasLtTrouble{.no_algorithm = true}, CublasLtTrouble{.least_alignment = 256}}) {
    const WithTrouble with(trouble);
    try {
      (void)Layer(DType::bf16).run();
      FAIL() << "it ran";
    } catch (const Unsupported& e) {
      EXPECT_THAT(e.what(), HasSubstr("cuda gemm 'op': the library has no algorithm for it"));
    }
  }
}

TEST(CudaGemm, AnAlgorithmThatNeedsMoreScratchMemoryThanItMayHaveIsNoCandidate) {
  const WithTrouble trouble({.scratch_bytes = std::size_t{65} << 20U});
  const Layer layer(DType::bf16);
  EXPECT_EQ(layer.run(), "");
  EXPECT_EQ(last_candidates().size(), 2U);  // of four: the first algorithm fused, and followed by own GELU
}

TEST(CudaGemm, AFailureOfAnyCallOfTheLibraryIsToldByNameOrHurtsNobody) {
  const Layer layer(DType::bf16);
  int calls = 0;
  {
    const WithTrouble none({});
    EXPECT_EQ(layer.run(), "");
    calls = none.calls();
  }
  EXPECT_GT(calls, 50);
  int told = 0;
  for (int failing = 0; failing < calls; ++failing) {
    const WithTrouble trouble({.failing_call = failing,
                               .status = failing % 2 == 0 ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_ALLOC_FAILED});
    try {
      EXPECT_EQ(layer.run(), "") << "call " << failing;
    } catch (const BackendError& e) {
      ++told;
      EXPECT_THAT(e.what(), HasSubstr("cublaslt: ")) << "call " << failing;
      EXPECT_THAT(e.what(), HasSubstr(" failed: ")) << "call " << failing;
    }
  }
  EXPECT_GT(told, calls / 4);
}

}  // namespace gemm_test
}  // namespace gpubench
