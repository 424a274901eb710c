// Layer normalization on the CUDA backend's kernels, against the textbook: rows that are constant, nearly so, or far
// from zero; widths of the kernels for a warp, a block, and long rows.
#include "reference/ops/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "reference/cuda/kernels/norm.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench {
namespace norm_test {

using testing::EmulatedRun;
using testing::ProgramRun;
using testing::run_in_every_order;

/// Rows whose mean, over standard deviation, and standard deviation are the hard ones: variance 1, 100 epsilon,
/// epsilon, 0; mean 0, 1 and 16 deviations.
void make_hard(ProgramRun& run, ValueId x) {
  constexpr double deviations[] = {1.0, 0.0316, 0.00316, 0.0};
  constexpr double means[] = {0.0, 1.0, 16.0};
  const auto n = static_cast<std::size_t>(run.program().spec(x).shape[-1]);
  std::vector<double> values = run.get(x);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double deviation = deviations[i / n % 4];
    values[i] = means[i / n % 3] * (deviation > 0.0 ? deviation : 0.7) + deviation * values[i];
  }
  run.set(x, values);
}

struct Types {
  DType data, parameter;
};
const std::vector<Types> all_types = {{DType::f64, DType::f64},   {DType::f32, DType::f32}, {DType::bf16, DType::f32},
                                      {DType::bf16, DType::bf16}, {DType::f16, DType::f32}, {DType::f16, DType::f16}};

struct Size {
  std::int64_t rows, n, stride;  // every `stride`th unit is judged
};

Math math_of(DType data) {
  Math math;
  if (data == DType::f64) math.accumulate = DType::f64;
  return math;
}

// Warps take up to 1024 elements, blocks of 64 to 512 threads (backward: 1024) up to 16384; 1030 is no multiple of a
// pack. Long rows cost emulated threads, so that not all types have them.
std::vector<Size> sizes_of(const Types& types) {
  std::vector<Size> sizes = {{1, 1, 1}, {5, 7, 1}, {13, 255, 1}, {26, 768, 1}, {7, 1030, 1}};
  if (types.data == types.parameter) sizes.insert(sizes.end(), {{3, 1024, 1}, {2, 2056, 1}});
  if (types.data == DType::bf16 && types.parameter == DType::f32) {
    sizes.insert(sizes.end(), {{2, 8200, 17}, {2, 12288, 17}, {2, 16400, 17}});
  }
  if (types.data == DType::f32) sizes.push_back({2, 6151, 17});
  // In f64 warps take up to 512 (backward: 256), blocks up to 8192 (4096).
  if (types.data == DType::f64) sizes.insert(sizes.end(), {{30, 256, 1}, {2, 512, 1}, {2, 4100, 17}, {2, 8194, 17}});
  return sizes;
}

TEST(CudaLayerNormForward, HardRowsOfEveryKernelLieWithinTheirBounds) {
  for (const Types& types : all_types) {
    for (const Size& size : sizes_of(types)) {
      Program program;
      const ValueId x = program.add(tensor("x", types.data, Shape{size.rows, size.n}, Role::activation));
      const ValueId gamma = program.add(tensor("gamma", types.parameter, Shape{size.n}, Role::parameter));
      const ValueId beta = program.add(tensor("beta", types.parameter, Shape{size.n}, Role::parameter));
      (void)layer_norm_forward(program, LayerNorm{}, math_of(types.data), "op", x, gamma, beta);
      const auto fill = [&](ProgramRun& run) {
        run.set_random(x, 1);
        make_hard(run, x);
        run.set_random(gamma, 2);
        run.set_random(beta, 3);
      };

      EXPECT_EQ(run_in_every_order(program, fill, EmulatedRun{size.stride}), "")
          << name(types.data) << ", " << name(types.parameter) << ", " << size.rows << " x " << size.n;
    }
  }
}

/// Statistics as the forward pass would have left them, in f32.
void set_statistics(ProgramRun& run, ValueId x, ValueId mean, ValueId rstd) {
  const std::vector<double> values = run.get(x);
  const auto n = static_cast<std::size_t>(run.program().spec(x).shape[-1]);
  std::vector<double> means;
  std::vector<double> rstds;
  for (std::size_t first = 0; first < values.size(); first += n) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += values[first + i];
    means.push_back(sum / static_cast<double>(n));
    double squares = 0.0;
    for (std::size_t i = 0; i < n; ++i)
      squares += (values[first + i] - means.back()) * (values[first + i] - means.back());
    rstds.push_back(1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-5));
  }
  run.set(mean, means);
  run.set(rstd, rstds);
}

struct Backward {
  Program program;
  ValueId dy, x, gamma, mean, rstd;
  std::optional<ValueId> dr;
  LayerNormBackward out;
};

/// With the residual's gradient it is residual_norm_backward.
Backward backward_of(const Types& types, std::int64_t rows, std::int64_t n, bool residual = false) {
  Backward b;
  if (residual) b.dr = b.program.add(tensor("dr", types.data, Shape{rows, n}, Role::gradient));
  b.dy = b.program.add(tensor("dy", types.data, Shape{rows, n}, Role::gradient));
  b.x = b.program.add(tensor("x", types.data, Shape{rows, n}, Role::activation));
  b.gamma = b.program.add(tensor("gamma", types.parameter, Shape{n}, Role::parameter));
  b.mean =
      b.program.add(tensor("mean", types.data == DType::f64 ? DType::f64 : DType::f32, Shape{rows}, Role::statistic));
  b.rstd =
      b.program.add(tensor("rstd", types.data == DType::f64 ? DType::f64 : DType::f32, Shape{rows}, Role::statistic));
  b.out =
      layer_norm_backward(b.program, LayerNorm{}, math_of(types.data), "op", b.dy, b.x, b.gamma, b.mean, b.rstd, b.dr);
  return b;
}

void fill_backward(ProgramRun& run, const Backward& b) {
  run.set_random(b.dy, 4);
  run.set_random(b.x, 1);
  make_hard(run, b.x);
  run.set_random(b.gamma, 2);
  if (b.dr) run.set_random(*b.dr, 5);
  set_statistics(run, b.x, b.mean, b.rstd);
}

void expect_backward_within_bounds(bool residual) {
  for (const Types& types : all_types) {
    for (const Size& size : sizes_of(types)) {
      const Backward b = backward_of(types, size.rows, size.n, residual);

      EXPECT_EQ(run_in_every_order(
                    b.program, [&](ProgramRun& run) { fill_backward(run, b); }, EmulatedRun{size.stride}),
                "")
          << name(types.data) << ", " << name(types.parameter) << ", " << size.rows << " x " << size.n;
    }
  }
}

TEST(CudaLayerNormBackward, HardRowsOfEveryKernelLieWithinTheirBounds) { expect_backward_within_bounds(false); }

TEST(CudaResidualNormBackward, HardRowsOfEveryKernelLieWithinTheirBounds) { expect_backward_within_bounds(true); }

TEST(CudaResidualNormBackward, ARowsResidualAtAnOddAddressLiesWithinItsBound) {
  Program p;
  const auto data = [&](const char* name) { return p.add(tensor(name, DType::bf16, Shape{9, 64}, Role::activation)); };
  const ValueId dy = data("dy"), x = data("x");
  const ValueId gamma = p.add(tensor("gamma", DType::f32, Shape{64}, Role::parameter));
  const ValueId mean = p.add(tensor("mean", DType::f32, Shape{9}, Role::statistic));
  const ValueId rstd = p.add(tensor("rstd", DType::f32, Shape{9}, Role::statistic));
  const TensorSpec whole = tensor("whole", DType::bf16, Shape{9, 200}, Role::gradient);
  TensorSpec part = whole;
  part.name = "dr";
  part.shape = Shape{9, 64};
  const ValueId source = p.add(whole);
  (void)layer_norm_backward(p, {}, Math{}, "op", dy, x, gamma, mean, rstd, p.part(source, part, 3));
  const auto fill = [&](ProgramRun& run) {
    for (const ValueId id : {dy, x, gamma, mean, source}) run.set_random(id, static_cast<std::uint64_t>(id.index));
    run.set(rstd, std::vector<double>(9, 1.5));
  };

  EXPECT_EQ(run_in_every_order(p, fill), "");
}

TEST(CudaRmsNorm, HardRowsOfEveryKernelLieWithinTheirBoundsBothWays) {
  for (const Types& types : all_types) {
    for (const Size& size : sizes_of(types)) {
      Program program;
      const Shape shape{size.rows, size.n};
      const ValueId dy = program.add(tensor("dy", types.data, shape, Role::gradient));
      const ValueId x = program.add(tensor("x", types.data, shape, Role::activation));
      const ValueId gamma = program.add(tensor("gamma", types.parameter, Shape{size.n}, Role::parameter));
      const RmsNormForward out = rms_norm_forward(program, {}, math_of(types.data), "forward", x, gamma);
      (void)rms_norm_backward(program, {}, math_of(types.data), "backward", dy, x, gamma, out.rstd);
      const auto fill = [&](ProgramRun& run) {
        run.set_random(dy, 4);
        run.set_random(x, 1);
        make_hard(run, x);
        run.set_random(gamma, 2);
      };

      EXPECT_EQ(run_in_every_order(program, fill, EmulatedRun{size.stride}), "")
          << name(types.data) << ", " << name(types.parameter) << ", " << size.rows << " x " << size.n;
    }
  }
}

// Two multiprocessors have 24 warps at once; 61 rows take three turns.
TEST(CudaLayerNormBackward, ManyRowsAreSummedInTurns) {
  for (const Size& size : {Size{61, 100, 1}, Size{19, 1100, 7}, Size{5, 16385, 101}}) {
    for (const bool residual : {false, true}) {
      const Backward b = backward_of({DType::bf16, DType::f32}, size.rows, size.n, residual);

      EXPECT_EQ(run_in_every_order(
                    b.program, [&](ProgramRun& run) { fill_backward(run, b); }, EmulatedRun{size.stride, 2}),
                "")
          << size.rows << " x " << size.n << (residual ? ", beside a residual" : "");
    }
  }
}

TEST(CudaLayerNormForward, RowsOfAPartAndOfOddAddressesLieWithinTheirBounds) {
  for (const std::int64_t first : {8, 3}) {
    Program program;
    const TensorSpec whole = tensor("whole", DType::bf16, Shape{9, 200}, Role::activation);
    TensorSpec part = whole;
    part.name = "x";
    part.shape = Shape{9, 64};
    const ValueId source = program.add(whole);
    const ValueId x = program.part(source, part, first);
    const ValueId gamma = program.add(tensor("gamma", DType::f32, Shape{64}, Role::parameter));
    const ValueId beta = program.add(tensor("beta", DType::f32, Shape{64}, Role::parameter));
    (void)layer_norm_forward(program, LayerNorm{}, Math{}, "op", x, gamma, beta);
    const auto fill = [&](ProgramRun& run) {
      run.set_random(source, 1);
      run.set_random(gamma, 2);
      run.set_random(beta, 3);
    };

    EXPECT_EQ(run_in_every_order(program, fill), "") << "from column " << first;
  }
}

struct Residual {
  Program program;
  ValueId x, r, gamma, beta;
  ResidualNormForward out;
};

Residual residual_of(const Types& types, std::int64_t rows, std::int64_t n) {
  Residual e;
  e.x = e.program.add(tensor("x", types.data, Shape{rows, n}, Role::activation));
  e.r = e.program.add(tensor("r", types.data, Shape{rows, n}, Role::activation));
  e.gamma = e.program.add(tensor("gamma", types.parameter, Shape{n}, Role::parameter));
  e.beta = e.program.add(tensor("beta", types.parameter, Shape{n}, Role::parameter));
  e.out = residual_norm_forward(e.program, {}, math_of(types.data), "op", e.x, e.r, e.gamma, e.beta);
  return e;
}

/// Sums with the hard rows of make_hard(); of every fifth row x and r cancel.
void fill_residual(ProgramRun& run, const Residual& e, std::int64_t n) {
  run.set_random(e.x, 1);
  make_hard(run, e.x);
  run.set_random(e.r, 5, 0.001);
  run.set_random(e.gamma, 2);
  run.set_random(e.beta, 3);
  const std::vector<double> x = run.get(e.x);
  std::vector<double> r = run.get(e.r);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i / static_cast<std::size_t>(n) % 5 == 4) r[i] = -x[i];
  }
  run.set(e.r, r);
}

TEST(CudaResidualNormForward, HardRowsOfEveryKernelLieWithinTheirBounds) {
  for (const Types& types : all_types) {
    for (const Size& size : sizes_of(types)) {
      const Residual e = residual_of(types, size.rows, size.n);

      EXPECT_EQ(run_in_every_order(
                    e.program, [&](ProgramRun& run) { fill_residual(run, e, size.n); }, EmulatedRun{size.stride}),
                "")
          << name(types.data) << ", " << name(types.parameter) << ", " << size.rows << " x " << size.n;
    }
  }
}

// One of the two rows has no pack that fits: column 3 of rows of 200.
TEST(CudaResidualNormForward, RowsOfAPartAndOfOddAddressesLieWithinTheirBounds) {
  for (const std::int64_t first : {8, 3}) {
    Program program;
    const TensorSpec whole = tensor("whole", DType::bf16, Shape{9, 200}, Role::activation);
    TensorSpec part = whole;
    part.name = "r";
    part.shape = Shape{9, 64};
    const ValueId source = program.add(whole);
    const ValueId r = program.part(source, part, first);
    const ValueId x = program.add(tensor("x", DType::bf16, Shape{9, 64}, Role::activation));
    const ValueId gamma = program.add(tensor("gamma", DType::f32, Shape{64}, Role::parameter));
    const ValueId beta = program.add(tensor("beta", DType::f32, Shape{64}, Role::parameter));
    (void)residual_norm_forward(program, {}, Math{}, "op", x, r, gamma, beta);
    const auto fill = [&](ProgramRun& run) {
      run.set_random(source, 1);
      run.set_random(x, 4);
      run.set_random(gamma, 2);
      run.set_random(beta, 3);
    };

    EXPECT_EQ(run_in_every_order(program, fill), "") << "from column " << first;
  }
}

TEST(CudaResidualNormForward, NaNInTheResidualStaysInItsRow) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  for (const std::int64_t n : {40, 1500}) {
    const Residual e = residual_of({DType::bf16, DType::f32}, 3, n);
    ProgramRun run(*backend, e.program);
    fill_residual(run, e, n);
    std::vector<double> r = run.get(e.r);
    const auto wrong = static_cast<std::size_t>(n) + 5;
    r[wrong] = std::nan("");
    run.set(e.r, r);

    run.run();

    const std::vector<double> sum = run.get(e.out.sum);
    const std::vector<double> y = run.get(e.out.y);
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(std::isnan(sum[i]), i == wrong) << i;
      ASSERT_EQ(std::isnan(y[i]), i / static_cast<std::size_t>(n) == 1) << i;
    }
  }
}

TEST(CudaLayerNormForward, NaNStaysInItsRow) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  for (const std::int64_t n : {40, 1500}) {
    Program program;
    const ValueId x = program.add(tensor("x", DType::bf16, Shape{3, n}, Role::activation));
    const ValueId gamma = program.add(tensor("gamma", DType::f32, Shape{n}, Role::parameter));
    const ValueId beta = program.add(tensor("beta", DType::f32, Shape{n}, Role::parameter));
    const LayerNormForward out = layer_norm_forward(program, LayerNorm{}, Math{}, "op", x, gamma, beta);
    ProgramRun run(*backend, program);
    run.set_random(x, 1);
    run.set_random(gamma, 2);
    run.set_random(beta, 3);
    std::vector<double> values = run.get(x);
    values[static_cast<std::size_t>(n) + 5] = std::nan("");
    run.set(x, values);

    run.run();

    const std::vector<double> y = run.get(out.y);
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isnan(y[i]), i / static_cast<std::size_t>(n) == 1) << i;
    EXPECT_TRUE(std::isnan(run.get(out.rstd)[1]));
  }
}

// 132 multiprocessors: GPT-2's width has a warp per row in blocks of 12 (8 in f32); 12288 columns are 768 threads, one
// block each; 4096 columns are 256 threads, two blocks each; fewer rows than blocks are a block each.
TEST(CudaLayerNormBackward, SplitsRowsByWhatFitsAMultiprocessor) {
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f32, 8192, 768, 132), 132);
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::bf16, 24, 768, 132), 2);
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f32, 24, 768, 132), 3);
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f32, 1024, 12288, 132), 132);
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f32, 16384, 4096, 132), 264);
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f32, 3, 4096, 132), 3);
  // In f64 768 columns are 192 threads, two blocks each.
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f64, 8192, 768, 132), 264);
}

}  // namespace norm_test
}  // namespace gpubench
