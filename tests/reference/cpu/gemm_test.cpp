// gemm against sums written out in fp64: shapes that fill no tile, every transpose, every attribute, f32 and bf16.
#include "reference/ops/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "reference/cpu/usable_isa.h"
#include "tests/reference/cpu/each_target.h"
#include "tests/reference/cpu/program_run.h"
#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace gemm_test {

using testing::first_beyond;
using testing::ProgramRun;
using testing::shared_backend;

constexpr double u32 = 1.0 / (1 << 24);

constexpr DType all_types[] = {DType::f64, DType::f32, DType::bf16, DType::f16};
constexpr DType gelu_types[] = {DType::f32, DType::bf16, DType::f16};

DType accumulator_of(DType type) { return type == DType::f64 ? DType::f64 : DType::f32; }

struct Case {
  std::int64_t batch = 0, m = 1, n = 1, k = 1;  // batch 0: no batch axis
  Gemm gemm;
  DType dtype = DType::f32;
  DType c_dtype = DType::f32;
  DType bias_dtype = DType::f32;
};

Shape shape_of(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool transpose = false) {
  if (transpose) std::swap(rows, columns);
  return batch == 0 ? Shape{rows, columns} : Shape{batch, rows, columns};
}

// The case as a program with its operands filled, and the fp64 answer.
struct Experiment {
  explicit Experiment(const Case& wanted) : c(wanted), run(shared_backend(), build()) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(c.k));
    run.set_random(a, 1);
    run.set_random(b, 2, scale);
    if (operands.c_in) run.set_random(*operands.c_in, 3);
    if (operands.bias) run.set_random(*operands.bias, 4);
    if (operands.pre) run.set_random(*operands.pre, 5, 2.0);
    compute();
  }

  Program build() {
    Program program;
    a = program.add(tensor("a", c.dtype, shape_of(c.batch, c.m, c.k, c.gemm.transpose_a), Role::activation));
    b = program.add(tensor("b", c.dtype, shape_of(c.batch, c.k, c.n, c.gemm.transpose_b), Role::parameter));
    const Shape shape = shape_of(c.batch, c.m, c.n);
    if (c.gemm.beta != 0.0) operands.c_in = program.add(tensor("c", c.c_dtype, shape, Role::activation));
    if (c.gemm.bias) operands.bias = program.add(tensor("bias", c.bias_dtype, Shape{c.n}, Role::parameter));
    if (c.gemm.epilogue == Gemm::Epilogue::gelu_gradient) {
      operands.pre = program.add(tensor("pre", c.c_dtype, shape, Role::activation));
    }
    std::optional<ValueId> into;
    if (!operands.c_in) into = program.reserve(tensor("y", c.c_dtype, shape, Role::activation));
    result = gpubench::gemm(program, c.gemm, Math{.accumulate = accumulator_of(c.dtype)}, "gemm", a, b, operands, into);
    return program;
  }

  void compute() {
    const std::vector<double> av = run.get(a), bv = run.get(b);
    const std::vector<double> c_in = operands.c_in ? run.get(*operands.c_in) : std::vector<double>();
    const std::vector<double> bias = operands.bias ? run.get(*operands.bias) : std::vector<double>();
    for (std::int64_t batch = 0; batch < std::max<std::int64_t>(c.batch, 1); ++batch) {
      for (std::int64_t i = 0; i < c.m; ++i) {
        for (std::int64_t j = 0; j < c.n; ++j) {
          double sum = 0.0, size = 0.0;
          for (std::int64_t p = 0; p < c.k; ++p) {
            const std::int64_t ai = c.gemm.transpose_a ? p * c.m + i : i * c.k + p;
            const std::int64_t bi = c.gemm.transpose_b ? j * c.k + p : p * c.n + j;
            const double term = av[static_cast<std::size_t>(batch * c.m * c.k + ai)] *
                                bv[static_cast<std::size_t>(batch * c.k * c.n + bi)];
            sum += term;
            size += std::abs(term);
          }
          double z = c.gemm.alpha * sum;
          double s = std::abs(c.gemm.alpha) * size;
          const auto at = static_cast<std::size_t>((batch * c.m + i) * c.n + j);
          if (operands.c_in) z += c.gemm.beta * c_in[at], s += std::abs(c.gemm.beta * c_in[at]);
          if (operands.bias) z += bias[static_cast<std::size_t>(j)], s += std::abs(bias[static_cast<std::size_t>(j)]);
          want.push_back(z);
          // Any order of k + 3 additions and products; in f64 the sum written out has errors like it.
          const double u = c.dtype == DType::f64 ? 2.0 * unit_roundoff(DType::f64) : u32;
          bound.push_back(static_cast<double>(c.k + 4) * u * s);
        }
      }
    }
  }

  // want and bound with one rounding to the stored type on top
  [[nodiscard]] std::vector<double> stored_bound(std::span<const double> values, std::span<const double> bounds) const {
    std::vector<double> all(values.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = bounds[i] + unit_roundoff(c.c_dtype) * (std::abs(values[i]) + bounds[i]);
    }
    return all;
  }

  Case c;
  ValueId a, b;
  GemmOperands operands;
  GemmResult result;
  ProgramRun run;
  std::vector<double> want, bound;
};

std::string about(const Experiment& e) { return e.run.program().to_string() + " by " + e.run.implementation(0); }

void expect_right(const Case& wanted) {
  Experiment e(wanted);
  e.run.run();
  const std::vector<double> got = e.run.get(e.result.c);
  const std::vector<double> bound = e.stored_bound(e.want, e.bound);
  const std::int64_t wrong = first_beyond(got, e.want, bound);
  ASSERT_EQ(wrong, -1) << about(e) << ": got " << got[static_cast<std::size_t>(wrong)] << ", want "
                       << e.want[static_cast<std::size_t>(wrong)] << " +- " << bound[static_cast<std::size_t>(wrong)];
  EXPECT_TRUE(e.run.canaries_intact()) << about(e);
}

double gelu_of(GeluForm form, double x) {
  if (form == GeluForm::erf) return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

// By central differences, which know nothing of the formula; their error is about h^2 / 6 times a third derivative
// below 1, and 2^-52 / h.
double gelu_slope(GeluForm form, double x) {
  constexpr double h = 1e-5;
  return (gelu_of(form, x + h) - gelu_of(form, x - h)) / (2.0 * h);
}

// Of a and b, of c; transposes of a and b.
using TypesAndTransposes = std::tuple<std::pair<DType, DType>, bool, bool>;
class GemmShapes : public ::testing::TestWithParam<TypesAndTransposes> {};

TEST_P(GemmShapes, AgreesWithSumsWrittenOut) {
  const auto [types, transpose_a, transpose_b] = GetParam();
  const std::int64_t shapes[][4] = {{0, 1, 1, 1},    {0, 35, 127, 111}, {0, 1, 33, 70},  {0, 70, 1, 5},
                                    {0, 7, 5, 1},    {0, 64, 96, 32},   {0, 3, 2, 4096}, {1, 16, 8, 24},
                                    {3, 17, 19, 23}, {2, 1, 64, 16},    {5, 32, 1, 32},  {0, 129, 65, 257},
                                    {0, 1, 1, 1000}, {4, 33, 64, 128}};
  for (const auto& [batch, m, n, k] : shapes) {
    Case c{batch, m, n, k, {}, types.first, types.second, accumulator_of(types.first)};
    c.gemm.transpose_a = transpose_a;
    c.gemm.transpose_b = transpose_b;
    expect_right(c);
  }
}
std::string title_of(const ::testing::TestParamInfo<TypesAndTransposes>& info) {
  const auto [types, transpose_a, transpose_b] = info.param;
  return std::string(name(types.first)) + "_to_" + std::string(name(types.second)) + (transpose_a ? "_ta" : "") +
         (transpose_b ? "_tb" : "");
}
const std::pair<DType, DType> types_in_use[] = {
    {DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}, {DType::f64, DType::f64}};
INSTANTIATE_TEST_SUITE_P(All, GemmShapes,
                         ::testing::Combine(::testing::ValuesIn(types_in_use), ::testing::Bool(), ::testing::Bool()),
                         title_of);

class GemmF64 : public testing::EachTarget {};
GPUBENCH_ON_EACH_TARGET(GemmF64);

TEST_P(GemmF64, AgreesWithSumsWrittenOut) {
  for (const auto& [m, n, k] : {std::tuple{97, 33, 513}, {6, 16, 256}, {1, 1, 1}, {200, 50, 7}})
    expect_right({0, m, n, k, {}, DType::f64, DType::f64, DType::f64});
}

TEST(Gemm, AlphaScalesTheProductButNeitherBiasNorC) {
  for (const DType dtype : all_types) {
    for (const double alpha : {1.0, -0.75}) {
      for (const double beta : {0.0, 1.0, 0.5}) {
        for (const bool bias : {false, true}) {
          Case c{0, 37, 65, 96, {}, dtype, dtype, accumulator_of(dtype)};
          c.gemm.alpha = alpha;
          c.gemm.beta = beta;
          c.gemm.bias = bias;
          expect_right(c);
          c.batch = 2;
          c.gemm.transpose_b = true;
          expect_right(c);
        }
      }
    }
  }
}

TEST(Gemm, AccumulatesIntoF32FromBf16) {
  Case c{0, 48, 33, 200, {}, DType::bf16, DType::f32, DType::f32};
  c.gemm.beta = 1.0;
  c.gemm.transpose_a = true;
  expect_right(c);
}

TEST(Gemm, TakesABf16BiasWithBf16) {
  Case c{0, 21, 40, 64, {}, DType::bf16, DType::bf16, DType::bf16};
  c.gemm.bias = true;
  expect_right(c);
}

TEST(Gemm, GeluEpilogueReturnsTheActivationOfTheUnroundedSumsAndTheSums) {
  for (const DType dtype : gelu_types) {
    for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
      for (const double beta : {0.0, 0.5}) {
        Case c{0, 37, 130, 64, {}, dtype, dtype, DType::f32};
        c.gemm = {false, true, 1.25, beta, true, Gemm::Epilogue::gelu, form};
        Experiment e(c);
        e.run.run();
        const std::vector<double> pre = e.run.get(*e.result.pre);
        EXPECT_EQ(first_beyond(pre, e.want, e.stored_bound(e.want, e.bound)), -1) << about(e);
        // |gelu'| <= 1.13, and the budget of gelu (6 |y| + 3 |x| ulps and the argument's) for the function itself
        std::vector<double> want(e.want), bound(e.bound);
        for (std::size_t i = 0; i < want.size(); ++i) {
          const double z = e.want[i];
          want[i] = gelu_of(form, z);
          bound[i] = 1.13 * e.bound[i] + u32 * (6.0 * std::abs(want[i]) + 7.0 * std::abs(z));
        }
        const std::vector<double> got = e.run.get(e.result.c);
        EXPECT_EQ(first_beyond(got, want, e.stored_bound(want, bound)), -1) << about(e);
        EXPECT_TRUE(e.run.canaries_intact()) << about(e);
      }
    }
  }
}

TEST(Gemm, GeluGradientEpilogueMultipliesByTheSlopeAtPre) {
  for (const DType dtype : gelu_types) {
    for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
      for (const std::int64_t batch : {0, 2}) {
        Case c{batch, 29, 67, 64, {}, dtype, dtype, DType::f32};
        c.gemm.epilogue = Gemm::Epilogue::gelu_gradient;
        c.gemm.gelu_form = form;
        Experiment e(c);
        e.run.run();
        const std::vector<double> pre = e.run.get(*e.operands.pre);
        std::vector<double> want(e.want), bound(e.bound);
        for (std::size_t i = 0; i < want.size(); ++i) {
          const double slope = gelu_slope(form, pre[i]);
          want[i] = e.want[i] * slope;
          const double slope_error = 30.0 * u32 * (1.0 + std::abs(pre[i])) + 1e-9;
          bound[i] = 1.13 * e.bound[i] + std::abs(e.want[i]) * slope_error;
        }
        const std::vector<double> got = e.run.get(e.result.c);
        EXPECT_EQ(first_beyond(got, want, e.stored_bound(want, bound)), -1) << about(e);
        EXPECT_TRUE(e.run.canaries_intact()) << about(e);
      }
    }
  }
}

// q = x w for one third of a packed [tokens, 3 n] tensor, read as one third of another.
TEST(Gemm, ReadsAndWritesPartsOfPackedTensors) {
  for (const DType dtype : all_types) {
    constexpr std::int64_t m = 40, n = 48, k = 32;
    Program program;
    const ValueId packed_in = program.add(tensor("in", dtype, Shape{m, 3 * k}, Role::activation));
    TensorSpec a_spec = tensor("a", dtype, Shape{m, k}, Role::activation);
    a_spec.layout.strides = {3 * k, 1};
    const ValueId a = program.part(packed_in, a_spec, k);
    const ValueId b = program.add(tensor("b", dtype, Shape{k, n}, Role::parameter));
    const ValueId packed_out = program.reserve(tensor("out", dtype, Shape{m, 3 * n}, Role::activation));
    TensorSpec c_spec = tensor("c", dtype, Shape{m, n}, Role::activation);
    c_spec.layout.strides = {3 * n, 1};
    const ValueId c = program.part(packed_out, c_spec, n);
    (void)gemm(program, {}, Math{.accumulate = accumulator_of(dtype)}, "gemm", a, b, {}, c);
    ProgramRun run(shared_backend(), program);
    run.set_random(packed_in, 7);
    run.set_random(b, 8);
    const std::vector<double> before = run.get(packed_out);
    run.run();
    const std::vector<double> in = run.get(packed_in), bv = run.get(b), out = run.get(packed_out);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < 3 * n; ++j) {
        const double got = out[static_cast<std::size_t>(i * 3 * n + j)];
        if (j < n || j >= 2 * n) {  // not ours: still the canary
          std::byte element[8];
          store(dtype, element, got);
          EXPECT_EQ(element[0], testing::canary);
          continue;
        }
        double want = 0.0, size = 0.0;
        for (std::int64_t p = 0; p < k; ++p) {
          const double term =
              in[static_cast<std::size_t>(i * 3 * k + k + p)] * bv[static_cast<std::size_t>(p * n + j - n)];
          want += term;
          size += std::abs(term);
        }
        const double bound = (k + 4) * u32 * size;
        ASSERT_LE(std::abs(got - want), bound + unit_roundoff(dtype) * (std::abs(want) + bound))
            << run.implementation(0);
      }
    }
  }
}

// The factors of 8-bit operands are no powers of two: they belong to the sums, where they round nothing on the way.
TEST(Gemm, ScalesTheSumsOf8BitOperands) {
  for (const DType a_type : {DType::f8_e4m3, DType::f8_e5m2}) {
    for (const std::int64_t k : {1, 40, 700}) {
      for (const bool more : {false, true}) {
        Program program;
        const ValueId a = program.add(tensor("a", a_type, Shape{33, k}, Role::activation));
        const ValueId b = program.add(tensor("b", DType::f8_e4m3, Shape{17, k}, Role::parameter));
        const auto number = [&](const char* name) { return program.add(tensor(name, DType::f32, {1}, Role::scalar)); };
        GemmOperands operands;
        operands.scale_a = number("scale_a"), operands.scale_b = number("scale_b");
        Gemm attributes{.transpose_b = true, .scaled = true};
        if (more) {
          attributes.alpha = 1.5, attributes.beta = 0.5, attributes.bias = true;
          operands.bias = program.add(tensor("bias", DType::bf16, Shape{17}, Role::parameter));
          operands.c_in = program.add(tensor("c", DType::bf16, Shape{33, 17}, Role::activation));
        }
        std::optional<ValueId> into;
        if (!more) into = program.reserve(tensor("c", DType::bf16, Shape{33, 17}, Role::activation));
        (void)gemm(program, attributes, Math{}, "gemm", a, b, operands, into);
        ProgramRun run(shared_backend(), program);
        run.set_random(a, 1);
        run.set_random(b, 2);
        run.set(*operands.scale_a, std::vector<double>{static_cast<double>(0.3F)});
        run.set(*operands.scale_b, std::vector<double>{static_cast<double>(1.7F)});
        if (more) run.set_random(*operands.bias, 3), run.set_random(*operands.c_in, 4);

        EXPECT_EQ(testing::run_and_judge(run), "") << name(a_type) << " k = " << k << ", more: " << more;
        EXPECT_TRUE(run.implementation(0).ends_with("+widen")) << run.implementation(0);
        const bool from_avx2_on = cpu::onednn_isa().starts_with("avx2") || cpu::onednn_isa().starts_with("avx512");
        EXPECT_FALSE(from_avx2_on && run.implementation(0).starts_with("onednn:ref")) << run.implementation(0);
      }
    }
  }
}

TEST(Gemm, SpreadsNan) {
  for (const DType dtype : all_types) {
    Case c{0, 20, 20, 20, {}, dtype, dtype, accumulator_of(dtype)};
    Experiment e(c);
    std::vector<double> a = e.run.get(e.a);
    a[5 * 20 + 19] = std::nan("");  // row 5, last of k
    e.run.set(e.a, a);
    e.run.run();
    const std::vector<double> got = e.run.get(e.result.c);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i / 20 == 5) << i;
  }
}

TEST(Gemm, GivesTheSameBitsTwice) {
  for (const DType dtype : gelu_types) {
    Case c{0, 130, 70, 513, {}, dtype, dtype, DType::f32};
    c.gemm.epilogue = Gemm::Epilogue::gelu;
    Experiment e(c);
    e.run.run();
    const std::vector<std::byte> once = e.run.bytes_of(e.result.c);
    e.run.run_again();
    EXPECT_EQ(e.run.bytes_of(e.result.c), once) << about(e);
  }
}

TEST(Gemm, SaysWhichLibraryComputes) {
  Case c{0, 64, 64, 64, {}, DType::f32, DType::f32, DType::f32};
  Experiment e(c);
  e.run.run();
  EXPECT_EQ(e.run.implementation(0).substr(0, 7), "onednn:");
  EXPECT_EQ(e.run.implementation(0).find("onednn:ref"), std::string::npos) << e.run.implementation(0);
}

void expect_refused(const Case& wanted, const std::string& words) {
  Experiment e(wanted);
  try {
    e.run.run();
    FAIL() << "expected Unsupported";
  } catch (const Unsupported& refused) {
    EXPECT_NE(std::string(refused.what()).find(words), std::string::npos) << refused.what();
  }
}

TEST(Gemm, RefusesTypesItLacksByName) {
  expect_refused({0, 4, 4, 4, {}, DType::f64, DType::f32, DType::f32}, "a: f64[4, 4]");
}

}  // namespace gemm_test
}  // namespace gpubench
