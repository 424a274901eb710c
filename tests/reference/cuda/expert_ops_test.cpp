// Softmax and what mixtures of experts are made of, on the CUDA backend's kernels, against the textbook.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/expert_programs.h"

namespace gpubench {
namespace cuda_expert_ops_test {

using testing::ExpertProgram;
using testing::ExpertPrograms;

constexpr std::array every_type{DType::f64, DType::f32, DType::f16, DType::bf16};

void expect_right(const std::vector<ExpertProgram>& programs) {
  EXPECT_FALSE(programs.empty());
  for (const ExpertProgram& p : programs)
    EXPECT_EQ(testing::run_in_every_order(p.program, [&](testing::ProgramRun& run) { fill(run, p); }), "") << p.what;
}

TEST(CudaExpertOps, SoftmaxOfEveryShapeAndTypeIsWithinItsBound) {
  for (const DType type : every_type) expect_right(ExpertPrograms(type).softmax());
}

TEST(CudaExpertOps, RoutingOfEveryKindAndTypeIsWithinItsBound) {
  for (const DType type : every_type) expect_right(ExpertPrograms(type).routing());
}

TEST(CudaExpertOps, TokensAreGroupedAndMovedWithinTheirBounds) {
  expect_right(ExpertPrograms(DType::f32).groups());
  for (const DType type : every_type) expect_right(ExpertPrograms(type).moves());
}

TEST(CudaExpertOps, GroupedProductsOfEveryTypeAreWithinTheirBounds) {
  for (const DType type : every_type) {
    expect_right(ExpertPrograms(type).products(type));
    if (type == DType::f16 || type == DType::bf16) expect_right(ExpertPrograms(type).products(DType::f32));
  }
}

TEST(CudaExpertOps, GroupedProductsSayWhetherTensorCoresMultiplyThem) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend({});
  for (const auto& [type, name] : {std::pair{DType::f32, "gpubench:sm90"}, {DType::bf16, "gpubench:sm90,mma"}}) {
    const ExpertProgram p = ExpertPrograms(type).products(type).front();
    testing::ProgramRun run(*backend, p.program);
    fill(run, p);
    run.run();
    EXPECT_EQ(run.implementation(0), name);
  }
}

// In f32 its kernels know no tensor cores: a result under tf32 would be of another arithmetic than its name says.
TEST(CudaExpertOps, GroupedProductsInTf32AreUnsupported) {
  Program program;
  const ValueId a = program.add(tensor("a", DType::f32, {4, 4}, Role::input));
  const ValueId b = program.add(tensor("b", DType::f32, {1, 4, 4}, Role::input));
  const ValueId sizes = program.add(tensor("sizes", DType::i32, {1}, Role::input));
  (void)grouped_gemm(program, {}, {.inputs = Math::Inputs::tf32}, "c", a, b, sizes);
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend({});
  testing::ProgramRun run(*backend, program);
  EXPECT_THROW(run.run(), Unsupported);
}

}  // namespace cuda_expert_ops_test
}  // namespace gpubench
