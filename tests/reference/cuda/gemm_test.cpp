// gemm on the CUDA backend: what it tells cuBLASLt, judged by what a stand-in that follows the library's manual makes
// of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/ops/gemm.h"
#include "tests/reference/cuda/emulated_choice.h"
#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench {
namespace gemm_test {

using testing::last_candidates;
using testing::ProgramRun;
using testing::run_in_every_order;

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
  expect_right(DType::f32, {.epilogue = Gemm::Epilogue::gelu, .gelu_form = GeluForm::erf});
  expect_right(DType::f32, {.epilogue = Gemm::Epilogue::gelu_gradient, .gelu_form = GeluForm::erf});
}

}  // namespace gemm_test
}  // namespace gpubench
