// Products of block-scaled operands on the CUDA backend: its kernel tiles the scales; a stand-in that follows
// cuBLASLt's manual reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "reference/cuda/kernels/products.h"
#include "tests/reference/block_scaled_programs.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench {
namespace block_scaled_gemm_test {

using testing::BlockScaledProgram;
using testing::BlockScaledTypes;
using ::testing::HasSubstr;
using testing::last_candidates;
using testing::ProgramRun;
using testing::run_in_every_order;

constexpr int first_with_blocks = 100;

std::string judged(const BlockScaledProgram& p, const std::string& pinned = {}) {
  return run_in_every_order(p.program, [&p](ProgramRun& run) { p.fill(run); },
                            {.pinned = pinned, .compute_capability = first_with_blocks});
}

// More rows than a tile, and 3, 6, 16 and 32 scales per row: loads of single bytes and of 16 bytes.
TEST(CudaBlockScaledGemm, EveryFormatAndShapeIsRight) {
  for (const BlockScaledTypes& types : {testing::mxfp8, testing::mxfp8_mixed, testing::nvfp4}) {
    for (const GemmExtents& extents : {GemmExtents{1, 130, 5, 96}, {1, 5, 140, 512}}) {
      const BlockScaledProgram p(types, extents);
      EXPECT_EQ(judged(p), "") << p.what();
      for (const std::string& candidate : std::vector<std::string>(last_candidates())) {
        EXPECT_THAT(candidate, HasSubstr("gpubench:sm100:tile_scales+cublaslt:algo="));
        EXPECT_EQ(judged(p, candidate), "") << p.what() << " by " << candidate;
      }
    }
  }
}

TEST(CudaBlockScaledGemm, FactorsBiasAndOldValuesAreTheLibrarys) {
  for (const BlockScaledTypes& types : {testing::mxfp8, testing::nvfp4}) {
    for (const Gemm& attributes : {Gemm{.alpha = -0.3, .bias = true}, Gemm{.alpha = 0.7, .beta = 0.4},
                                   Gemm{.bias = true, .epilogue = Gemm::Epilogue::gelu}}) {
      const BlockScaledProgram p(types, {.m = 16, .n = 24, .k = 64}, DType::bf16, attributes);
      EXPECT_EQ(judged(p), "") << p.what();
    }
  }
}

TEST(CudaBlockScaledGemm, BeforeSm100AndOfFormatsThatTheLibraryLacksItIsUnsupported) {
  const auto refusal = [](const BlockScaledTypes& types, int capability) {
    return testing::refusal(*testing::open_emulated_backend({.compute_capability = capability}),
                            BlockScaledProgram(types, {.m = 16, .n = 16, .k = 64}).program);
  };
  EXPECT_THAT(refusal(testing::nvfp4, 90),
              HasSubstr("products of block-scaled numbers need compute capability 10.0, this device has 9.0"));
  EXPECT_THAT(refusal(testing::mxfp8, 89), HasSubstr("need compute capability 10.0"));
  EXPECT_THAT(refusal(testing::mxfp4, 100), HasSubstr("the library has no algorithm for it"));
}

// Offsets by hand, from the manual's picture of a tile: rows 0, 32, 64, 96 are adjacent in its first 16 bytes, then
// rows 1, 33, 65, 97. A second tile to the right follows the first; the next 128 rows follow both.
TEST(CudaBlockScaledGemm, ScalesGoWhereTheLibraryLooksForThem) {
  const auto tiles_of = [](std::int64_t rows, std::int64_t columns) {
    std::vector<std::uint8_t> scales(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::uint8_t>(1 + i % 251);
    alignas(16) std::array<std::uint8_t, 16> small{};  // of b: a row with one scale
    cuda::TileScalesArgs args;
    args.a = {scales.data(), rows, columns, nullptr};
    args.b = {small.data(), 0, 0, small.data()};
    std::vector<std::uint8_t> tiles(static_cast<std::size_t>(cuda::scale_tile_bytes(args.a)) + 16, 0xEE);
    args.a.tiles = reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(tiles.data()) + 15) / 16 * 16);
    cuda::launch_tile_scales(args, nullptr);
    return std::vector<std::uint8_t>(args.a.tiles, args.a.tiles + cuda::scale_tile_bytes(args.a));
  };
  const auto code = [](std::int64_t row, std::int64_t column, std::int64_t columns) {
    return static_cast<std::uint8_t>(1 + (row * columns + column) % 251);
  };
  for (const std::int64_t columns : {6, 16}) {
    const std::vector<std::uint8_t> tiles = tiles_of(129, columns);
    const std::size_t across = columns == 6 ? 2 : 4;
    ASSERT_EQ(tiles.size(), 2 * across * 512);
    EXPECT_EQ(tiles[0], code(0, 0, columns));
    EXPECT_EQ(tiles[3], code(0, 3, columns));
    EXPECT_EQ(tiles[4], code(32, 0, columns));
    EXPECT_EQ(tiles[14], code(96, 2, columns));
    EXPECT_EQ(tiles[16], code(1, 0, columns));
    EXPECT_EQ(tiles[31 * 16 + 15], code(127, 3, columns));
    EXPECT_EQ(tiles[512], code(0, 4, columns));
    EXPECT_EQ(tiles[512 + 5 * 16 + 9], code(69, 5, columns));
    EXPECT_EQ(tiles[across * 512 + 1], code(128, 1, columns));
    EXPECT_EQ(tiles[across * 512 + 16], 0);  // row 129 does not exist
    EXPECT_EQ(tiles[512 + 2], columns == 6 ? 0 : code(0, 6, columns));
    EXPECT_EQ(std::count_if(tiles.begin(), tiles.end(), [](std::uint8_t byte) { return byte != 0; }), 129 * columns);
  }
}

}  // namespace block_scaled_gemm_test
}  // namespace gpubench
