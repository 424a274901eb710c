// quantize on the CUDA backend's kernels, against the textbook: bitwise with scales that are powers of two.
#include "reference/ops/quantize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/quantize_programs.h"

namespace gpubench {
namespace quantize_test {

using testing::ProgramRun;
using testing::run_in_every_order;

TEST(CudaQuantize, EveryTypeAndOddSizeIsRight) {
  for (const DType from : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType to : {DType::f8_e4m3, DType::f8_e5m2}) {
      for (const std::int64_t n : {1, 15, 16, 1027, 20000}) {
        for (const double scale_value : {0.0625, 1.0, 300.0}) {  // the last overflows
          Program program;
          const ValueId x = program.add(tensor("x", from, Shape{n}, Role::activation));
          const ValueId scale = program.add(tensor("scale", DType::f32, Shape{1}, Role::scalar));
          (void)quantize(program, Quantize{to}, Math{}, "op", x, scale);
          const auto fill = [&](ProgramRun& run) {
            run.set_random(x, 3, 2.0);
            run.set(scale, std::vector<double>{scale_value});
          };

          EXPECT_EQ(run_in_every_order(program, fill), "")
              << name(from) << " to " << name(to) << ", " << n << ", scale " << scale_value;
        }
      }
    }
  }
}

// Ties, subnormals and overflow of either 8-bit type.
TEST(CudaQuantize, EveryF16IsRoundedOnceSaturatedAndNot) {
  const std::vector<double> values = testing::every_number(DType::f16);
  for (const DType to : {DType::f8_e4m3, DType::f8_e5m2}) {
    for (const bool saturate : {true, false}) {
      Program program;
      const ValueId x =
          program.add(tensor("x", DType::f16, Shape{static_cast<std::int64_t>(values.size())}, Role::activation));
      const ValueId scale = program.add(tensor("scale", DType::f32, Shape{1}, Role::scalar));
      (void)quantize(program, {to, saturate}, Math{}, "op", x, scale);
      const auto fill = [&](ProgramRun& run) {
        run.set(x, values);
        run.set(scale, std::vector<double>{1.0});
      };

      EXPECT_EQ(run_in_every_order(program, fill), "") << name(to) << ", saturate " << saturate;
    }
  }
}

TEST(CudaQuantize, BlocksOfEverySizeOfNumberAreExact) {
  for (const DType from : {DType::f32, DType::f16, DType::bf16}) {
    for (const testing::BlocksProgram& p : testing::blocks_programs(from)) {
      for (const double scale : {0.25, 3.0}) {
        const auto fill = [&](ProgramRun& run) {
          run.set(p.x, testing::block_rows(scale == 3.0));
          if (p.scale) run.set(*p.scale, std::vector<double>{scale});
        };
        EXPECT_EQ(run_in_every_order(p.program, fill), "") << p.what << ", scale " << scale;
      }
    }
  }
}

TEST(CudaQuantize, BlocksThatBeginAtAnyElementAreRight) {
  Program program;
  const ValueId whole = program.add(tensor("whole", DType::bf16, Shape{200}, Role::activation));
  const ValueId x = program.part(whole, tensor("x", DType::bf16, Shape{2, 96}, Role::activation), 3);
  (void)quantize_blocks(program, {}, {}, "q", x);
  EXPECT_EQ(run_in_every_order(program, [&](ProgramRun& run) { run.set_random(whole, 3, 2.0); }), "");
}

// Of every bit pattern of a type: elements of 4 bits, and the scales that it chooses as the largest of its block.
TEST(CudaQuantize, EveryNumberIsTheRightElementAndChoosesTheRightScale) {
  for (const auto& [type, values] : {std::pair(DType::f16, testing::every_element(DType::f16)),
                                     std::pair(DType::bf16, testing::every_largest(DType::bf16))}) {
    for (const testing::BlocksProgram& p :
         testing::blocks_programs(type, Shape{static_cast<std::int64_t>(values.size()) / 32, 32})) {
      const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
      ProgramRun run(*backend, p.program);
      run.set(p.x, values);
      if (p.scale) run.set(*p.scale, std::vector<double>{1.0});

      EXPECT_EQ(testing::run_and_judge(run), "") << p.what;
    }
  }
}

TEST(CudaQuantize, TheScaleOfEveryHistoryIsExact) {
  for (const std::vector<double>& history : testing::amax_histories()) {
    Program program;
    const Shape shape{static_cast<std::int64_t>(history.size())};
    const ValueId amax = program.add(tensor("history", DType::f32, shape, Role::statistic));
    (void)scale_from_amax(program, {DType::f8_e5m2, 2}, {}, "scale", amax);
    EXPECT_EQ(run_in_every_order(program, [&](ProgramRun& run) { run.set(amax, history); }), "") << history[0];
  }
}

TEST(CudaQuantize, TheLargestMagnitudeOfPartsOfRowsIsFound) {
  Program program;
  const TensorSpec whole = tensor("whole", DType::bf16, Shape{70, 100}, Role::activation);
  TensorSpec part = whole;
  part.name = "x";
  part.shape = Shape{70, 48};
  const ValueId source = program.add(whole);
  (void)amax(program, {}, "amax", program.part(source, part, 3));
  EXPECT_EQ(run_in_every_order(program, [&](ProgramRun& run) { run.set_random(source, 3, 2.0); }), "");
}

TEST(CudaQuantize, TransposedValuesAndPartsOfWiderRowsAreRight) {
  for (const bool transposed : {false, true}) {
    for (const std::int64_t first : {16, 3}) {
      Program program;
      const TensorSpec whole = tensor("whole", DType::bf16, Shape{70, 100}, Role::activation);
      TensorSpec part = whole;
      part.name = "x";
      part.shape = Shape{70, 48};
      const ValueId source = program.add(whole);
      const ValueId x = program.part(source, part, first);
      const ValueId scale = program.add(tensor("scale", DType::f32, Shape{1}, Role::scalar));
      const int columns_first[] = {1, 0};
      std::optional<Layout> layout;
      if (transposed) layout = Layout::ordered(part.shape, columns_first);
      (void)quantize(program, Quantize{}, Math{}, "op", x, scale, layout);
      const auto fill = [&](ProgramRun& run) {
        run.set_random(source, 3, 2.0);
        run.set(scale, std::vector<double>{8.0});
      };

      EXPECT_EQ(run_in_every_order(program, fill), "") << "transposed " << transposed << ", from column " << first;
    }
  }
}

TEST(CudaQuantize, NaNReachesItsValueAndTheLargestMagnitude) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, Shape{40}, Role::activation));
  const ValueId scale = program.add(tensor("scale", DType::f32, Shape{1}, Role::scalar));
  const Quantized out = quantize(program, Quantize{}, Math{}, "op", x, scale);
  ProgramRun run(*backend, program);
  std::vector<double> values(40, 3.0);
  values[17] = std::nan("");
  run.set(x, values);
  run.set(scale, std::vector<double>{2.0});

  run.run();

  EXPECT_TRUE(std::isnan(run.get(out.amax)[0]));
  EXPECT_EQ(run.get(out.inverse)[0], 0.5);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(std::isnan(run.get(out.values)[i]), i == 17);
}

}  // namespace quantize_test
}  // namespace gpubench
