#include <gtest/gtest.h>

#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/expert_contract.h"

namespace gpubench {
namespace expert_ops_test {

using testing::emulated_contract;
using testing::ExpertProgram;
using testing::ExpertPrograms;

TEST(CudaExpertOps, SoftmaxOfEveryShapeAndTypeIsWithinItsBound) {
  testing::expect_bounds_of_softmax(emulated_contract());
}

TEST(CudaExpertOps, RoutingOfEveryKindAndTypeIsWithinItsBound) {
  testing::expect_bounds_of_routing(emulated_contract());
}

TEST(CudaExpertOps, TokensAreGroupedAndMovedWithinTheirBounds) {
  testing::expect_bounds_of_token_moves(emulated_contract());
}

TEST(CudaExpertOps, GroupedProductsOfEveryTypeAreWithinTheirBounds) {
  testing::expect_bounds_of_grouped_products(emulated_contract());
}

TEST(CudaExpertOps, RowsFarBelowZeroLieWithinTheirBounds) {
  testing::expect_bounds_of_rows_far_below_zero(emulated_contract());
}

TEST(CudaExpertOps, ARowOfSoftmaxWithANanIsAllNan) { testing::expect_nan_in_its_row_of_softmax(emulated_contract()); }

TEST(CudaExpertOps, SizesThatMakeNoSenseTouchNoOtherMemory) {
  testing::expect_senseless_sizes_to_touch_nothing_else(emulated_contract());
}

TEST(CudaExpertOps, GroupedProductsSayWhetherTensorCoresMultiplyThem) {
  for (const auto& [type, name] : {std::pair{DType::f32, "gpubench:sm90"}, {DType::bf16, "gpubench:sm90,mma"}}) {
    const ExpertProgram p = ExpertPrograms(type).products(type).front();
    testing::ProgramRun run(emulated_contract().backend, p.program);
    fill(run, p);
    run.run();
    EXPECT_EQ(run.implementation(0), name);
  }
}

// f32 kernels do not use tensor cores, so a tf32 result would not have tf32 arithmetic.
TEST(CudaExpertOps, GroupedProductsInTf32AreUnsupported) {
  Program program;
  const ValueId a = program.add(tensor("a", DType::f32, {4, 4}, Role::input));
  const ValueId b = program.add(tensor("b", DType::f32, {1, 4, 4}, Role::input));
  const ValueId sizes = program.add(tensor("sizes", DType::i32, {1}, Role::input));
  (void)grouped_gemm(program, {}, {.inputs = Math::Inputs::tf32}, "c", a, b, sizes);
  EXPECT_NE(testing::refusal(emulated_contract().backend, program), "");
}

}  // namespace expert_ops_test
}  // namespace gpubench
