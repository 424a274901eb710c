// gemm on the CUDA backend: its requests to cuBLASLt, judged by the results of a stand-in that follows the manual.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "tests/reference/cuda/emulated_cublaslt.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/gemm_contract.h"

namespace gpubench {
namespace gemm_test {

using ::testing::Contains;
using testing::CublasLtTrouble;
using ::testing::HasSubstr;
using testing::last_candidates;
using testing::ProgramRun;
using testing::run_in_every_order;
using testing::WithTrouble;

/// Judges every candidate; there must be at least two.
testing::BackendContract every_candidate() {
  const testing::BackendContract& emulated = testing::emulated_contract();
  const auto judges = [](const Program& program, const testing::Fill& fill, std::int64_t) -> std::string {
    if (std::string fault = run_in_every_order(program, fill); !fault.empty()) return fault;
    const std::vector<std::string> candidates = last_candidates();
    for (const std::string& candidate : candidates) {
      const std::string fault = run_in_every_order(program, fill, {.pinned = candidate});
      if (!fault.empty()) return candidate + ": " + fault;
    }
    return candidates.size() < 2 ? "fewer than two candidates" : "";
  };
  return {emulated.backend, emulated.types, judges};
}

TEST(CudaGemm, EveryTransposeAndFactorIsTheProductThatWasAskedFor) {
  for (const Gemm& factors : {Gemm{.alpha = -0.5, .bias = true}, Gemm{.beta = 2.0}})
    testing::expect_bounds_of_products(every_candidate(), {{DType::f64}, {DType::f32}, {DType::f16}, {DType::bf16}},
                                       {{0, 19, 24, 11}}, testing::with_every_transpose(factors));
}

TEST(CudaGemm, GeluAndItsSlopeAreWithinOrBehindTheProduct) {
  testing::expect_bounds_of_products(every_candidate(), {{DType::f32}, {DType::f16}, {DType::bf16}}, {{0, 19, 24, 11}},
                                     testing::products_with_gelu);
}

TEST(CudaGemm, ReadsAndWritesPartsOfPackedTensors) { testing::expect_bounds_of_packed_operands(every_candidate()); }

/// A layer with GELU: [16, 24], sums over 8.
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
    for (const std::int64_t n : {24, 13}) {  // 13: cuBLASLt's epilogue needs rows that are a multiple of 8
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
    EXPECT_NE(layer.run(), "") << name(type);  // cuBLASLt's epilogue is the first candidate
    for (const std::string& candidate : std::vector<std::string>(last_candidates()))
      EXPECT_EQ(layer.run(candidate) == "", candidate.find("+gpubench:sm90") != std::string::npos) << candidate;
  }
}

TEST(CudaGemm, WhereTheLibraryHasNoAlgorithmThatIsSaid) {
  for (const CublasLtTrouble& trouble :
       {CublasLtTrouble{.no_algorithm = true}, CublasLtTrouble{.min_alignment = 256}}) {
    const WithTrouble with(trouble);
    EXPECT_THAT(testing::refusal(testing::emulated_contract().backend, Layer(DType::bf16).program),
                HasSubstr("cuda gemm 'op': the library has no algorithm for it"));
  }
}

TEST(CudaGemm, AnAlgorithmThatNeedsMoreScratchMemoryThanItMayHaveIsNoCandidate) {
  const WithTrouble trouble({.scratch_bytes = std::size_t{65} << 20U});
  const Layer layer(DType::bf16);
  EXPECT_EQ(layer.run(), "");
  EXPECT_EQ(last_candidates().size(), 2U);  // of four: the first algorithm fused, and with own GELU
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
