// Layer norm, RMS norm, batch norm, and norms with a residual on the CPU, against the textbook: rows that are constant,
// nearly constant, or far from zero; odd widths.
#include <gtest/gtest.h>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/norm_contract.h"

namespace gpubench {
namespace norm_test {

using testing::cpu_contract;
using testing::NormKind;
using testing::NormSize;

const std::vector<NormKind> kinds{NormKind::layer, NormKind::rms, NormKind::residual_forward};

void expect_hard_rows(NormKind kind) {
  for (const int threads : {1, 3}) {
    testing::expect_bounds_of_hard_rows(cpu_contract(threads), kind,
                                        {{DType::f32, DType::f32},
                                         {DType::bf16, DType::f32},
                                         {DType::bf16, DType::bf16},
                                         {DType::f16, DType::f32},
                                         {DType::f16, DType::f16}},
                                        [](const testing::NormTypes&) -> std::vector<NormSize> {
                                          return {{1, 1}, {5, 7}, {24, 255}, {300, 768}, {25, 1023}, {12, 5000}};
                                        });
  }
}

TEST(LayerNorm, HardRowsOfOddWidthsLieWithinTheirBoundsBothWays) { expect_hard_rows(NormKind::layer); }

TEST(RmsNorm, HardRowsOfOddWidthsLieWithinTheirBoundsBothWays) { expect_hard_rows(NormKind::rms); }

TEST(ResidualNormForward, HardRowsOfOddWidthsLieWithinTheirBounds) { expect_hard_rows(NormKind::residual_forward); }

TEST(Norm, RowsOfAPartAndOfOddAddressesLieWithinTheirBounds) {
  testing::expect_bounds_of_parts_of_rows(cpu_contract(), kinds);
}

TEST(Norm, NaNStaysInItsRow) { testing::expect_nan_to_stay_in_its_row(cpu_contract(), kinds); }

TEST(LayerNorm, AConstantRowGivesBeta) { testing::expect_beta_of_a_constant_row(cpu_contract()); }

TEST(ResidualNorm, GivesTheSumOfTheAddBitForBitAndItsNormUpToRounding) {
  testing::expect_residual_norm_of_add_and_norm(cpu_contract());
}

TEST(BatchNorm, EveryShapeAndTypeIsWithinItsBound) {
  testing::expect_bounds_in_every_type(cpu_contract(), testing::batch_norm_programs);
}

// Outputs larger than half of the caches are streamed.
TEST(Norm, LargeOutputsLieWithinTheirBounds) {
  for (const auto& [kind, dtype] : {std::pair{NormKind::layer, DType::f32},
                                    {NormKind::rms, DType::f32},
                                    {NormKind::residual_forward, DType::f32},
                                    {NormKind::residual_forward, DType::bf16}}) {
    const testing::NormProgram p(kind, {dtype, DType::f32}, 7001, 750);
    EXPECT_EQ(cpu_contract().judge(
                  p.program, [&](testing::ProgramRun& run) { fill(run, p); }, 53),
              "")
        << name(dtype);
  }
}

}  // namespace norm_test
}  // namespace gpubench
