// triad, scale, add, cast and GELU on the CUDA backend's kernels, against the textbook: odd sizes, all types, parts of
// wider rows, addresses that no pack fits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "harness/core/error.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/pointwise_programs.h"

namespace gpubench {
namespace pointwise_test {

using testing::pointwise_cases;
using testing::pointwise_program;
using testing::PointwiseCase;
using testing::PointwiseProgram;
using testing::ProgramRun;
using testing::run_in_every_order;

// 8192 bf16 elements are a block's turn.
TEST(CudaPointwise, EveryOpTypeAndOddSizeLiesWithinItsBound) {
  for (const PointwiseCase& op : pointwise_cases()) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      for (const std::int64_t n : {1, 7, 257, 1024, 8195}) {
        PointwiseProgram e = pointwise_program(op, dtype, Shape{n});
        const auto fill = [&](ProgramRun& run) {
          run.set_random(e.x, 1, 2.0);
          run.set_random(e.z, 2, 1.0);
        };

        EXPECT_EQ(run_in_every_order(e.program, fill), "") << op.name << ", " << name(dtype) << ", n = " << n;
      }
    }
  }
}

TEST(CudaPointwise, NothingIsRightForNothing) {
  PointwiseProgram e = pointwise_program(pointwise_cases()[2], DType::f32, Shape{0});
  EXPECT_EQ(run_in_every_order(e.program, [](ProgramRun&) {}), "");
}

TEST(CudaPointwise, RepeatedRowsMeetTheRowsTheyStandFor) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (const std::int64_t repeats : {1, 4, 12}) {
      for (const auto& [n, first] : {std::pair{1, 3}, {31, 3}, {64, 8}}) {
        testing::ModulatedRows e(dtype, 12, repeats, n, first);
        const auto fill = [&](ProgramRun& run) {
          run.set_random(e.x, 1, 2.0);
          run.set_random(e.both, 2, 1.0);
        };

        EXPECT_EQ(run_in_every_order(e.program, fill), "") << name(dtype) << ", " << repeats << ", n = " << n;
      }
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

/// Where parts begin and how wide they and their wholes are: whether packs fit, fit but for the last one, or don't.
struct Parts {
  std::int64_t columns, wide_x, x_first, z_first, wide_y, y_first;
};

TEST(CudaPointwise, PartsOfWiderRowsAreReadAndWrittenWithoutTouchingTheirNeighbours) {
  const std::int64_t rows = 37;
  for (const Parts& parts :
       {Parts{31, 100, 3, 57, 77, 5}, Parts{24, 96, 8, 56, 48, 16}, Parts{27, 96, 8, 56, 48, 16}}) {
    for (const PointwiseCase& op : pointwise_cases()) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        Program program;
        const TensorSpec wide_x = tensor("wide_x", dtype, Shape{rows, parts.wide_x}, Role::activation);
        const ValueId source = program.add(wide_x);
        const ValueId x = program.part(source, columns_of(wide_x, "x", parts.columns), parts.x_first);
        const ValueId z = program.part(source, columns_of(wide_x, "z", parts.columns), parts.z_first);
        // The builder makes the attributes and inputs; only where the result goes is changed.
        Program model;
        const ValueId model_x = model.add(tensor("x", dtype, Shape{rows, parts.columns}, Role::activation));
        const ValueId model_z = model.add(tensor("z", dtype, Shape{rows, parts.columns}, Role::activation));
        op.build(model, model_x, model_z);
        OpCall call = model.op(0);
        for (ValueId& input : call.inputs) input = input == model_x ? x : z;
        for (std::size_t k = 0; k < call.outputs.size(); ++k) {
          const std::string number = std::to_string(k);
          const TensorSpec wide_y = tensor("wide_y" + number, dtype, Shape{rows, parts.wide_y}, Role::activation);
          const ValueId whole_y = program.reserve(wide_y);
          call.outputs[k] = program.part(whole_y, columns_of(wide_y, "y" + number, parts.columns), parts.y_first);
        }
        program.append(call);

        EXPECT_EQ(run_in_every_order(program, [&](ProgramRun& run) { run.set_random(source, 1, 2.0); }), "")
            << op.name << ", " << name(dtype) << ", " << parts.columns << " columns";
      }
    }
  }
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
          // Ties, and what lies just beside them where only f64 sees it; numbers beyond f16 and subnormal in it.
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

TEST(CudaGelu, EveryFiniteBf16AndF16LiesWithinItsBound) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    std::vector<double> values;
    for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
      const auto pattern = static_cast<std::uint16_t>(bits);
      const double value = load(dtype, reinterpret_cast<const std::byte*>(&pattern));
      if (std::isfinite(value)) values.push_back(value);
    }
    for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
      for (const bool backward : {false, true}) {
        Program program;
        const auto n = static_cast<std::int64_t>(values.size());
        const ValueId x = program.add(tensor("x", dtype, Shape{n}, Role::activation));
        const ValueId dy = program.add(tensor("dy", dtype, Shape{n}, Role::activation));
        if (backward) {
          (void)gelu_backward(program, Gelu{form}, Math{}, "op", x, dy);
        } else {
          (void)gelu_forward(program, Gelu{form}, Math{}, "op", x);
        }
        const auto fill = [&](ProgramRun& run) {
          run.set(x, values);
          run.set(dy, std::vector<double>(values.size(), 1.0));
        };

        EXPECT_EQ(run_in_every_order(program, fill), "") << name(dtype) << ", backward: " << backward;
      }
    }
  }
}

// f32 shows what bf16 hides: points of the interval where the two forms and all cancellations are visible.
TEST(CudaGelu, TheInterestingIntervalLiesWithinItsBoundInF32AndF64) {
  std::vector<double> values;
  for (int i = -40'000; i < 40'000; ++i) values.push_back(i * 3e-4 + 1e-7);
  const auto n = static_cast<std::int64_t>(values.size());
  for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
    for (const bool backward : {false, true}) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        Program program;
        const ValueId x = program.add(tensor("x", dtype, Shape{n}, Role::activation));
        const ValueId dy = program.add(tensor("dy", dtype, Shape{n}, Role::activation));
        const Math math = testing::math_of(program, x);
        if (backward) {
          (void)gelu_backward(program, Gelu{form}, math, "op", x, dy);
        } else {
          (void)gelu_forward(program, Gelu{form}, math, "op", x);
        }
        const auto fill = [&](ProgramRun& run) {
          run.set(x, values);
          run.set_random(dy, 5);
        };

        EXPECT_EQ(run_in_every_order(program, fill), "") << name(dtype) << ", backward: " << backward;
      }
    }
  }
}

TEST(CudaPointwise, NaNSpreadsToItsElementOnly) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  for (const PointwiseCase& op : pointwise_cases()) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      PointwiseProgram e = pointwise_program(op, dtype, Shape{100});
      ProgramRun run(*backend, e.program);
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

TEST(CudaPointwise, ATypeThatKernelsLackIsUnsupportedByName) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  Program program;
  const ValueId x = program.add(tensor("x", DType::f8_e4m3, Shape{8}, Role::activation));
  (void)scale(program, {2.0}, Math{}, "op", x);
  ProgramRun run(*backend, program);
  try {
    run.run();
    FAIL() << "f8_e4m3 was planned";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("f32, f16 and bf16 here, not f8_e4m3"), std::string::npos) << error.what();
  }
}

}  // namespace pointwise_test
}  // namespace gpubench
