// Narrow copies on the CPU, against the textbook: all of them bit for bit where scales are powers of two.
#include <gtest/gtest.h>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/quantize_programs.h"

namespace gpubench {
namespace quantize_test {

using testing::BlocksProgram;
using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

TEST(Quantize, EveryBf16IsRoundedOnceSaturatedAndNot) {
  const std::vector<double> values = testing::every_number(DType::bf16);
  for (const DType to : {DType::f8_e4m3, DType::f8_e5m2}) {
    for (const bool saturate : {true, false}) {
      for (const double scale_value : {1.0, 0x1p20, 300.0}) {
        Program program;
        const ValueId x =
            program.add(tensor("x", DType::bf16, Shape{static_cast<std::int64_t>(values.size())}, Role::activation));
        const ValueId scale = program.add(tensor("scale", DType::f32, Shape{1}, Role::scalar));
        (void)quantize(program, {to, saturate}, {}, "q", x, scale);
        ProgramRun run(shared_backend(), program);
        run.set(x, values);
        run.set(scale, std::vector<double>{scale_value});

        EXPECT_EQ(run_and_judge(run), "") << name(to) << ", saturate " << saturate << ", scale " << scale_value;
      }
    }
  }
}

TEST(Quantize, BlocksOfEverySizeOfNumberAreExact) {
  for (const DType from : {DType::f32, DType::bf16}) {
    for (const BlocksProgram& p : testing::blocks_programs(from)) {
      for (const bool specials : {false, true}) {
        for (const double scale : {0.25, 3.0}) {
          ProgramRun run(shared_backend(), p.program);
          run.set(p.x, testing::block_rows(specials));
          if (p.scale) run.set(*p.scale, std::vector<double>{scale});

          EXPECT_EQ(run_and_judge(run), "") << p.what << ", scale " << scale;
        }
      }
    }
  }
}

// Of every bit pattern of bf16: elements of 4 bits, and the scales that it chooses as the largest of its block.
TEST(Quantize, EveryBf16IsTheRightElementAndChoosesTheRightScale) {
  for (const std::vector<double>& values : {testing::every_element(DType::bf16), testing::every_largest(DType::bf16)}) {
    for (const BlocksProgram& p :
         testing::blocks_programs(DType::bf16, Shape{static_cast<std::int64_t>(values.size()) / 32, 32})) {
      ProgramRun run(shared_backend(), p.program);
      run.set(p.x, values);
      if (p.scale) run.set(*p.scale, std::vector<double>{1.0});

      EXPECT_EQ(run_and_judge(run), "") << p.what;
    }
  }
}

TEST(Quantize, TheScaleOfEveryHistoryIsExact) {
  for (const DType to : {DType::f8_e4m3, DType::f8_e5m2}) {
    for (const std::vector<double>& history : testing::amax_histories()) {
      Program program;
      const Shape shape{static_cast<std::int64_t>(history.size())};
      const ValueId amax = program.add(tensor("history", DType::f32, shape, Role::statistic));
      (void)scale_from_amax(program, {to, 2}, {}, "scale", amax);
      ProgramRun run(shared_backend(), program);
      run.set(amax, history);

      EXPECT_EQ(run_and_judge(run), "") << name(to) << " " << history[0];
    }
  }
}

TEST(Quantize, TheLargestMagnitudeIsFoundWhereverItIs) {
  for (const std::int64_t place : {0, 8191, 8192, 29999}) {
    Program program;
    const ValueId x = program.add(tensor("x", DType::f32, Shape{30000}, Role::activation));
    const ValueId largest = amax(program, {}, "amax", x);
    ProgramRun run(shared_backend(), program);
    std::vector<double> values(30000, 1.5);
    values[static_cast<std::size_t>(place)] = -2.0;
    run.set(x, values);

    EXPECT_EQ(run_and_judge(run), "");
    EXPECT_EQ(run.get(largest)[0], 2.0) << place;
  }
}

}  // namespace quantize_test
}  // namespace gpubench
