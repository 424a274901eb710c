// Elementwise ops on the CUDA backend: their contract, and casts between all types.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/core/error.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/pointwise_contract.h"

namespace gpubench {
namespace pointwise_test {

using testing::emulated_contract;
using testing::pointwise_cases;
using testing::pointwise_program;
using testing::PointwiseCase;
using testing::PointwiseProgram;
using testing::ProgramRun;
using testing::run_in_every_order;

// A block handles 8192 bf16 elements per turn.
TEST(CudaPointwise, EveryOpTypeAndOddSizeLiesWithinItsBound) {
  testing::expect_bounds_at_every_size(emulated_contract(), {1, 7, 257, 1024, 8195});
}

TEST(CudaPointwise, RepeatedRowsMeetTheRowsTheyStandFor) {
  testing::expect_bounds_of_repeated_rows(emulated_contract());
}

// Packs fit, fit except for the last, or do not fit.
TEST(CudaPointwise, PartsOfWiderRowsAreReadAndWrittenWithoutTouchingTheirNeighbours) {
  testing::expect_bounds_of_parts(emulated_contract(),
                                  {{24, 96, 8, 56, 48, 16}, {27, 96, 8, 56, 48, 16}, {31, 100, 3, 57, 77, 5}});
}

TEST(CudaPointwise, NaNSpreadsToItsElementOnly) { testing::expect_nan_to_stay_in_its_element(emulated_contract()); }

TEST(CudaGelu, EveryFiniteBf16AndF16LiesWithinItsBound) {
  for (const DType dtype : {DType::bf16, DType::f16})
    testing::expect_bounds_of_gelu(emulated_contract(), dtype, testing::every_finite(dtype));
}

TEST(CudaGelu, TheInterestingIntervalLiesWithinItsBoundInF32AndF64) {
  for (const DType dtype : {DType::f32, DType::f64})
    testing::expect_bounds_of_gelu(emulated_contract(), dtype, testing::interesting_interval(80'000));
}

TEST(CudaPointwise, NothingIsRightForNothing) {
  PointwiseProgram e = pointwise_program(pointwise_cases({"scale"})[0], DType::f32, Shape{0});
  EXPECT_EQ(run_in_every_order(e.program, [](ProgramRun&) {}), "");
}

TEST(CudaCast, RoundsOnceBetweenAllTypes) {
  for (const DType from : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const DType to : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      for (const std::int64_t n : {3, 1031}) {
        Program program;
        const ValueId x = program.add(tensor("x", from, Shape{2, n}, Role::activation));
        (void)cast(program, to, "op", x);
        const auto fill = [&](ProgramRun& run) {
          run.set_random(x, 3, 100.0);
          // Ties, and their neighbours that only f64 distinguishes; numbers beyond f16's range, and subnormal in f16.
          std::vector<double> values = run.get(x);
          const double hard[] = {1.00390625,
                                 1.01171875,
                                 1.00390625 + 1e-12,
                                 1.00390625 - 1e-12,
                                 65519.0,
                                 65520.0,
                                 1e-7,
                                 2.98e-8,
                                 -6.1e-5,
                                 1e300,
                                 -0.0,
                                 1e-310};
          for (std::size_t i = 0; i < std::size(hard) && i < values.size(); ++i) values[i] = hard[i];
          run.set(x, values);
        };

        EXPECT_EQ(run_in_every_order(program, fill), "") << name(from) << " to " << name(to) << ", " << n;
      }
    }
  }
}

TEST(CudaPointwise, ATypeThatKernelsLackIsUnsupportedByName) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f8_e4m3, Shape{8}, Role::activation));
  (void)scale(program, {2.0}, Math{}, "op", x);
  const std::string words = testing::refusal(testing::emulated_contract().backend, program);
  EXPECT_NE(words.find("expected f32, f16 or bf16, not f8_e4m3"), std::string::npos) << words;
}

}  // namespace pointwise_test
}  // namespace gpubench
