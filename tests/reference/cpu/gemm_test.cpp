// gemm on the CPU, against the textbook: partial tiles, every transpose, attribute and type.
#include <gtest/gtest.h>

#include "reference/cpu/usable_isa.h"
#include "tests/reference/cpu/each_target.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/gemm_contract.h"

namespace gpubench {
namespace gemm_test {

using testing::cpu_contract;
using testing::GemmProgram;
using testing::GemmTypes;
using testing::ProgramRun;
using testing::shared_backend;
using testing::with_every_transpose;

constexpr DType f64 = DType::f64, f32 = DType::f32, bf16 = DType::bf16, f16 = DType::f16;

const std::vector<GemmTypes> types_for_gelu{{f32}, {bf16, bf16, f32}, {f16, f16, f32}};

TEST(Gemm, EveryShapeTypeAndTransposeIsWithinItsBound) {
  testing::expect_bounds_of_products(cpu_contract(), {{f32}, {bf16}, {bf16, f32}, {f64}},
                                     {{0, 1, 1, 1},
                                      {0, 35, 127, 111},
                                      {0, 1, 33, 70},
                                      {0, 70, 1, 5},
                                      {0, 7, 5, 1},
                                      {0, 64, 96, 32},
                                      {0, 3, 2, 4096},
                                      {1, 16, 8, 24},
                                      {3, 17, 19, 23},
                                      {2, 1, 64, 16},
                                      {5, 32, 1, 32},
                                      {0, 129, 65, 257},
                                      {0, 1, 1, 1000},
                                      {4, 33, 64, 128}},
                                     with_every_transpose());
}

class GemmF64 : public testing::EachTarget {};
GPUBENCH_ON_EACH_TARGET(GemmF64);

TEST_P(GemmF64, IsWithinItsBound) {
  testing::expect_bounds_of_products(cpu_contract(), {{f64}},
                                     {{0, 97, 33, 513}, {0, 6, 16, 256}, {0, 1, 1, 1}, {0, 200, 50, 7}}, {{}});
}

TEST(Gemm, AlphaScalesTheProductButNeitherBiasNorC) {
  std::vector<Gemm> factors;
  for (const double alpha : {1.0, -0.75}) {
    for (const double beta : {0.0, 1.0, 0.5}) {
      for (const bool bias : {false, true}) {
        for (const bool transpose_b : {false, true})
          factors.push_back({.transpose_b = transpose_b, .alpha = alpha, .beta = beta, .bias = bias});
      }
    }
  }
  testing::expect_bounds_of_products(cpu_contract(), {{f64}, {f32}, {bf16, bf16, f32}, {f16, f16, f32}},
                                     {{0, 37, 65, 96}, {2, 37, 65, 96}}, factors);
}

TEST(Gemm, AccumulatesIntoF32FromBf16) {
  testing::expect_bounds_of_products(cpu_contract(), {{bf16, f32, f32}}, {{0, 48, 33, 200}},
                                     {{.transpose_a = true, .beta = 1.0}});
}

TEST(Gemm, TakesABf16BiasWithBf16) {
  testing::expect_bounds_of_products(cpu_contract(), {{bf16}}, {{0, 21, 40, 64}}, {{.bias = true}});
}

TEST(Gemm, GeluAndItsSlopeAreWithinTheBoundsOfUnroundedSums) {
  testing::expect_bounds_of_products(cpu_contract(), types_for_gelu,
                                     {{0, 37, 130, 64}, {2, 29, 67, 64}, {0, 130, 70, 513}},
                                     testing::products_with_gelu);
  for (const GeluForm form : {GeluForm::tanh, GeluForm::erf})
    testing::expect_bounds_of_products(cpu_contract(), types_for_gelu, {{0, 37, 130, 64}},
                                       {{false, true, 1.25, 0.5, true, Gemm::Epilogue::gelu, form}});
}

TEST(Gemm, ReadsAndWritesPartsOfPackedTensors) { testing::expect_bounds_of_packed_operands(cpu_contract()); }

// The factors are not powers of two, so they must scale the sums, before any rounding.
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
  for (const DType dtype : {f64, f32, bf16, f16}) {
    const GemmProgram p({dtype}, {0, 20, 20, 20}, {});
    ProgramRun run(shared_backend(), p.program);
    fill(run, p);
    testing::spoil(run, p.a, 5 * 20 + 19);  // row 5, last of k

    run.run();

    testing::expect_nan_where(run.get(p.result.c), [](std::size_t i) { return i / 20 == 5; });
  }
}

TEST(Gemm, SaysWhichLibraryComputes) {
  ProgramRun run(shared_backend(), GemmProgram({f32}, {0, 64, 64, 64}, {}).program);

  run.bind();

  EXPECT_EQ(run.implementation(0).substr(0, 7), "onednn:");
  EXPECT_EQ(run.implementation(0).find("onednn:ref"), std::string::npos) << run.implementation(0);
}

TEST(Gemm, RefusesTypesItLacksByName) {
  const std::string words = testing::refusal(shared_backend(), GemmProgram({f64, f32}, {0, 4, 4, 4}, {}).program);

  EXPECT_NE(words.find("a: f64[4, 4]"), std::string::npos) << words;
}

}  // namespace gemm_test
}  // namespace gpubench
