// copy, triad, scale, add, cast and GELU on the CPU, against the textbook: odd sizes, both types, parts, large outputs.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>

#include "harness/core/error.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/definition.h"
#include "reference/ops/move.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/pointwise_programs.h"

namespace gpubench {
namespace pointwise_test {

using testing::pointwise_cases;
using testing::pointwise_program;
using testing::PointwiseCase;
using testing::PointwiseProgram;
using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

TEST(Pointwise, OpsThatAreTriedAreAllButCasts) {
  std::set<std::string_view> tried, declared;
  for (const PointwiseCase& op : pointwise_cases())
    tried.insert(pointwise_program(op, DType::f32, {8}).program.ops().back().kind.name);
  for (const OpDefinition* op : definitions()) {
    if (is_pointwise(op->kind())) declared.insert(op->kind().name);
  }
  declared.erase("cast");  // Cast.* tries it from type to type
  tried.erase("copy");  // a move, which is tried like these
  EXPECT_EQ(tried, declared);
}

TEST(Pointwise, EveryOpTypeAndOddSizeLiesWithinItsBound) {
  for (const PointwiseCase& op : pointwise_cases()) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const std::int64_t n : {1, 7, 255, 257, 1023, 50001}) {
        PointwiseProgram e = pointwise_program(op, dtype, Shape{n});
        ProgramRun run(shared_backend(), e.program);
        run.set_random(e.x, 1, 2.0);
        run.set_random(e.z, 2, 1.0);

        EXPECT_EQ(run_and_judge(run), "") << op.name << ", " << name(dtype) << ", n = " << n;
      }
    }
  }
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

// 20 MB and more are stored around the caches, by another loop; the odd count leaves a tail, the shape one row per
// thread.
TEST(Pointwise, LargeOutputsLieWithinTheirBounds) {
  const std::vector<PointwiseCase> all = pointwise_cases();
  for (const PointwiseCase& op : {all[0], all[1], all[4]}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const std::int64_t n = dtype == DType::f32 ? 5'000'001 : 9'000'001;
      PointwiseProgram e = pointwise_program(op, dtype, Shape{n});
      ProgramRun run(shared_backend(), e.program);
      std::vector<double> values(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 4099) / 512.0 - 4.0;
      run.set(e.x, values);
      run.set(e.z, values);

      // 61 shares no factor with a block or a line.
      EXPECT_EQ(run_and_judge(run, 61), "") << op.name << ", " << name(dtype);
    }
  }
}

/// A part: columns [first, first + columns) of `whole`.
TensorSpec columns_of(const TensorSpec& whole, std::string part_name, std::int64_t columns) {
  TensorSpec part = whole;
  part.name = std::move(part_name);
  part.shape = Shape{whole.shape[0], columns};
  part.layout.strides = {whole.shape[1], 1};
  return part;
}

TEST(Pointwise, PartsOfWiderRowsAreReadAndWrittenWithoutTouchingTheirNeighbours) {
  const std::int64_t rows = 37;
  for (const PointwiseCase& op : pointwise_cases()) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      Program program;
      const TensorSpec wide_x = tensor("wide_x", dtype, Shape{rows, 100}, Role::activation);
      const ValueId source = program.add(wide_x);
      const ValueId x = program.part(source, columns_of(wide_x, "x", 31), 3);
      const ValueId z = program.part(source, columns_of(wide_x, "z", 31), 57);
      // The builder makes the attributes and inputs; only where the result goes is changed.
      Program model;
      const ValueId model_x = model.add(tensor("x", dtype, Shape{rows, 31}, Role::activation));
      const ValueId model_z = model.add(tensor("z", dtype, Shape{rows, 31}, Role::activation));
      op.build(model, model_x, model_z);
      OpCall call = model.op(0);
      for (ValueId& input : call.inputs) input = input == model_x ? x : z;
      std::vector<ValueId> wholes;
      for (ValueId& output : call.outputs) {
        const std::string number = std::to_string(wholes.size());
        const TensorSpec wide_y = tensor("wide_y" + number, dtype, Shape{rows, 77}, Role::activation);
        wholes.push_back(program.reserve(wide_y));
        output = program.part(wholes.back(), columns_of(wide_y, "y" + number, 31), 5);
      }
      program.append(call);
      ProgramRun run(shared_backend(), program);
      run.set_random(source, 1, 2.0);
      std::vector<std::vector<double>> untouched;
      for (const ValueId whole : wholes) untouched.push_back(run.get(whole));

      EXPECT_EQ(run_and_judge(run), "") << op.name << ", " << name(dtype);

      for (std::size_t k = 0; k < wholes.size(); ++k) {
        const std::vector<double> after = run.get(wholes[k]);
        for (std::size_t i = 0; i < after.size(); ++i) {
          const std::size_t column = i % 77;
          if (column >= 5 && column < 36) continue;
          ASSERT_EQ(after[i], untouched[k][i]) << op.name << " wrote column " << column;
        }
      }
    }
  }
}

TEST(Pointwise, RepeatedRowsMeetTheRowsTheyStandFor) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t repeats : {1, 4, 12}) {
      for (const std::int64_t n : {1, 31, 1000}) {
        testing::ModulatedRows e(dtype, 12, repeats, n, 3);
        ProgramRun run(shared_backend(), e.program);
        run.set_random(e.x, 1, 2.0);
        run.set_random(e.both, 2, 1.0);

        EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", " << repeats << ", n = " << n;
      }
    }
  }
}

TEST(Pointwise, NaNSpreadsToItsElementOnly) {
  for (const PointwiseCase& op : pointwise_cases()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      PointwiseProgram e = pointwise_program(op, dtype, Shape{100});
      ProgramRun run(shared_backend(), e.program);
      std::vector<double> values(100, 0.5);
      values[41] = std::nan("");
      run.set(e.x, values);
      run.set(e.z, std::vector<double>(100, 0.25));

      run.run();

      const std::vector<double> y = run.get(e.y);
      for (std::size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(std::isnan(y[i]), op.spreads && i == 41) << op.name << " at " << i;
    }
  }
}

TEST(Copy, KeepsEveryBitOfEveryType) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8}) {
    Program program;
    const ValueId x = program.add(tensor("x", dtype, Shape{333}, Role::activation));
    const ValueId y = copy(program, "op", x);
    ProgramRun run(shared_backend(), program);
    run.set_random(x, 7, 1000.0);

    run.run();

    EXPECT_EQ(run.bytes_of(x), run.bytes_of(y)) << name(dtype);
    EXPECT_TRUE(run.canaries_intact());
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

TEST(Gelu, EveryFiniteBf16LiesWithinItsBound) {
  std::vector<double> values;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto value = static_cast<double>(std::bit_cast<float>(bits << 16U));
    if (std::isfinite(value)) values.push_back(value);
  }
  for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
    Program program;
    const ValueId x =
        program.add(tensor("x", DType::bf16, Shape{static_cast<std::int64_t>(values.size())}, Role::activation));
    (void)gelu_forward(program, Gelu{form}, Math{}, "op", x);
    ProgramRun run(shared_backend(), program);
    run.set(x, values);

    EXPECT_EQ(run_and_judge(run), "");
  }
}

// f32 shows what bf16 hides: 200,000 points of the interval where the two forms and all cancellations are visible.
TEST(Gelu, TheInterestingIntervalLiesWithinItsBoundInF32) {
  std::vector<double> values;
  for (int i = -100'000; i < 100'000; ++i) values.push_back(i * 1.2e-4 + 1e-7);
  const auto n = static_cast<std::int64_t>(values.size());
  for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
    for (const bool backward : {false, true}) {
      Program program;
      const ValueId x = program.add(tensor("x", DType::f32, Shape{n}, Role::activation));
      const ValueId dy = program.add(tensor("dy", DType::f32, Shape{n}, Role::activation));
      if (backward) {
        (void)gelu_backward(program, Gelu{form}, Math{}, "op", x, dy);
      } else {
        (void)gelu_forward(program, Gelu{form}, Math{}, "op", x);
      }
      ProgramRun run(shared_backend(), program);
      run.set(x, values);
      run.set_random(dy, 5);

      EXPECT_EQ(run_and_judge(run), "") << "backward: " << backward;
    }
  }
}

TEST(Pointwise, ATypeThatTheBackendLacksIsUnsupportedByName) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f64, Shape{8}, Role::activation));
  (void)scale(program, {2.0}, Math{}, "op", x);
  ProgramRun run(shared_backend(), program);
  try {
    run.run();
    FAIL() << "f64 was planned";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("f64[8]; expected f32 or bf16"), std::string::npos) << error.what();
  }
}

TEST(Pointwise, SaysWhichVectorUnitsItUses) {
  PointwiseProgram e = pointwise_program(pointwise_cases()[2], DType::f32, Shape{8});
  ProgramRun run(shared_backend(), e.program);
  run.set_random(e.x, 1);
  run.run();
  EXPECT_EQ(run.implementation(0).substr(0, 9), "gpubench:");
}

}  // namespace pointwise_test
}  // namespace gpubench
