// Elementwise ops on the CPU: their contract, threads, large outputs, casts.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/cpu/cpu_backend.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/pointwise_contract.h"

namespace gpubench {
namespace pointwise_test {

using testing::cpu_contract;
using testing::pointwise_cases;
using testing::pointwise_program;
using testing::PointwiseCase;
using testing::PointwiseProgram;
using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

TEST(Pointwise, EveryOpTypeAndOddSizeLiesWithinItsBound) {
  testing::expect_bounds_at_every_size(cpu_contract(), {1, 7, 255, 257, 1023, 50001});
}

TEST(Pointwise, PartsOfWiderRowsAreReadAndWrittenWithoutTouchingTheirNeighbours) {
  testing::expect_bounds_of_parts(cpu_contract(), {{31, 100, 3, 57, 77, 5}});
}

TEST(Pointwise, RepeatedRowsMeetTheRowsTheyStandFor) { testing::expect_bounds_of_repeated_rows(cpu_contract()); }

TEST(Pointwise, NaNSpreadsToItsElementOnly) { testing::expect_nan_to_stay_in_its_element(cpu_contract()); }

TEST(Gelu, EveryFiniteBf16LiesWithinItsBound) {
  testing::expect_bounds_of_gelu(cpu_contract(), DType::bf16, testing::every_finite(DType::bf16));
}

TEST(Gelu, TheInterestingIntervalLiesWithinItsBoundInF32) {
  testing::expect_bounds_of_gelu(cpu_contract(), DType::f32, testing::interesting_interval(200'000));
}

TEST(Pointwise, AnyNumberOfThreadsGivesTheSameBits) {
  const std::unique_ptr<Backend> one = open_cpu_backend(1);
  const std::unique_ptr<Backend> three = open_cpu_backend(3);
  for (const PointwiseCase& op : pointwise_cases()) {
    std::vector<std::vector<std::byte>> results;
    for (Backend* backend : {one.get(), three.get()}) {
      PointwiseProgram e = pointwise_program(op, DType::bf16, Shape{100001});
      ProgramRun run(*backend, e.program);
      run.set_random(e.x, 1, 2.0);
      run.set_random(e.z, 2, 1.0);
      run.run();
      results.push_back(run.bytes_of(e.y));
    }
    EXPECT_EQ(results[0], results[1]) << op.name;
  }
}

// 20 MB and more are streamed by another loop; the odd count leaves a tail, the shape one row per thread.
TEST(Pointwise, LargeOutputsLieWithinTheirBounds) {
  for (const PointwiseCase& op : pointwise_cases({"copy", "gelu_forward", "triad"})) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const std::int64_t n = dtype == DType::f32 ? 5'000'001 : 9'000'001;
      PointwiseProgram e = pointwise_program(op, dtype, Shape{n});
      ProgramRun run(shared_backend(), e.program);
      std::vector<double> values(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 4099) / 512.0 - 4.0;
      run.set(e.x, values);
      run.set(e.z, values);

      // 61 has no common factor with a block or a line.
      EXPECT_EQ(run_and_judge(run, 61), "") << op.name << ", " << name(dtype);
    }
  }
}

TEST(Cast, RoundsOnceAndWidensExactly) {
  for (const auto& [from, to] : {std::pair{DType::f32, DType::bf16}, std::pair{DType::bf16, DType::f32}}) {
    Program program;
    const ValueId x = program.add(tensor("x", from, Shape{3, 1023}, Role::activation));
    (void)cast(program, to, "op", x);
    ProgramRun run(shared_backend(), program);
    run.set_random(x, 3, 100.0);
    EXPECT_EQ(run_and_judge(run), "") << name(from) << " to " << name(to);

    run.set(x, std::vector<double>(3 * 1023, -0.0));
    EXPECT_EQ(run_and_judge(run), "") << "of -0, " << name(from) << " to " << name(to);
  }
}

TEST(Pointwise, ATypeThatTheBackendLacksIsUnsupportedByName) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f64, Shape{8}, Role::activation));
  (void)scale(program, {2.0}, Math{}, "op", x);
  const std::string words = testing::refusal(shared_backend(), program);
  EXPECT_NE(words.find("f64[8]; expected f32 or bf16"), std::string::npos) << words;
}

TEST(Pointwise, SaysWhichVectorUnitsItUses) {
  PointwiseProgram e = pointwise_program(pointwise_cases({"scale"})[0], DType::f32, Shape{8});
  ProgramRun run(shared_backend(), e.program);
  run.set_random(e.x, 1);
  run.run();
  EXPECT_EQ(run.implementation(0).substr(0, 9), "gpubench:");
}

}  // namespace pointwise_test
}  // namespace gpubench
