// Layer norm, RMS norm, batch norm, and norms with a residual on the CUDA backend, against the textbook: rows that are
// constant, nearly constant, or far from zero; widths for warp, block and long-row kernels.
#include <gtest/gtest.h>

#include "reference/cuda/kernels/rows.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/norm_contract.h"

namespace gpubench {
namespace norm_test {

using testing::emulated_contract;
using testing::NormKind;
using testing::NormSize;
using testing::NormTypes;

// Warps handle up to 1024 elements, blocks of 64 to 512 threads (backward: 1024) up to 16384; 1030 is not a multiple of
// a pack. Long rows are slow on emulated threads, so only some types have them.
std::vector<NormSize> sizes_of(const NormTypes& types) {
  std::vector<NormSize> sizes = {{1, 1}, {5, 7}, {13, 255}, {26, 768}, {7, 1030}};
  if (types.data == types.parameter) sizes.insert(sizes.end(), {{3, 1024}, {2, 2056}});
  if (types.data == DType::bf16 && types.parameter == DType::f32)
    sizes.insert(sizes.end(), {{2, 8200, 17}, {2, 12288, 17}, {2, 16400, 17}});
  if (types.data == DType::f32) sizes.push_back({2, 6151, 17});
  // In f64 warps handle up to 512 (backward: 256), blocks up to 8192 (4096).
  if (types.data == DType::f64) sizes.insert(sizes.end(), {{30, 256}, {2, 512}, {2, 4100, 17}, {2, 8194, 17}});
  return sizes;
}

const std::vector<NormKind> kinds{NormKind::layer, NormKind::rms, NormKind::residual};

void expect_hard_rows(NormKind kind) {
  testing::expect_bounds_of_hard_rows(emulated_contract(), kind,
                                      {{DType::f64, DType::f64},
                                       {DType::f32, DType::f32},
                                       {DType::bf16, DType::f32},
                                       {DType::bf16, DType::bf16},
                                       {DType::f16, DType::f32},
                                       {DType::f16, DType::f16}},
                                      sizes_of);
}

TEST(CudaLayerNorm, HardRowsOfEveryKernelLieWithinTheirBoundsBothWays) { expect_hard_rows(NormKind::layer); }

TEST(CudaRmsNorm, HardRowsOfEveryKernelLieWithinTheirBoundsBothWays) { expect_hard_rows(NormKind::rms); }

TEST(CudaResidualNorm, HardRowsOfEveryKernelLieWithinTheirBoundsBothWays) { expect_hard_rows(NormKind::residual); }

TEST(CudaNorm, RowsOfAPartAndOfOddAddressesLieWithinTheirBounds) {
  testing::expect_bounds_of_parts_of_rows(emulated_contract(), kinds);
}

TEST(CudaNorm, NaNStaysInItsRow) { testing::expect_nan_to_stay_in_its_row(emulated_contract(), kinds); }

TEST(CudaLayerNorm, AConstantRowGivesBeta) { testing::expect_beta_of_a_constant_row(emulated_contract()); }

TEST(CudaResidualNorm, GivesTheSumOfTheAddBitForBitAndItsNormUpToRounding) {
  testing::expect_residual_norm_of_add_and_norm(emulated_contract());
}

TEST(CudaBatchNorm, EveryShapeAndTypeIsWithinItsBound) {
  testing::expect_bounds_in_every_type(emulated_contract(), testing::batch_norm_programs);
}

// Two multiprocessors run 24 warps at once; 61 rows take three turns.
TEST(CudaNorm, GradientsOfManyRowsAreSummedInTurns) {
  for (const auto& [rows, n, stride] : {NormSize{61, 100}, NormSize{19, 1100, 7}, NormSize{5, 16385, 101}}) {
    for (const NormKind kind : kinds) {
      const testing::NormProgram p(kind, {DType::bf16, DType::f32}, rows, n);
      EXPECT_EQ(testing::run_in_every_order(p.program, [&](testing::ProgramRun& run) { fill(run, p); }, {stride, 2}),
                "")
          << rows << " x " << n;
    }
  }
}

// 132 multiprocessors. GPT-2's width: a warp per row, blocks of 12 warps (8 in f32). 12288 columns: one block of 768
// threads each; 4096 columns: two blocks of 256 threads each. With fewer rows than blocks: a block per row.
TEST(CudaLayerNormBackward, SplitsRowsByWhatFitsAMultiprocessor) {
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f32, 8192, 768, 132), 132);
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::bf16, 24, 768, 132), 2);
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f32, 24, 768, 132), 3);
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f32, 1024, 12288, 132), 132);
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f32, 16384, 4096, 132), 264);
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f32, 3, 4096, 132), 3);
  // In f64 768 columns take 192 threads: two blocks each.
  EXPECT_EQ(cuda::layer_norm_backward_parts(cuda::Element::f64, 8192, 768, 132), 264);
}

}  // namespace norm_test
}  // namespace gpubench
