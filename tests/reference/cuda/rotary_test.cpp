// Rotary position embedding on the CUDA backend's kernels, against the textbook: odd sizes, all types, both
// conventions, parts of packed tokens at addresses that packs fit or don't, in place.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/core/error.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/rotary_programs.h"

namespace gpubench {
namespace rotary_test {

using testing::fill;
using testing::PackedPlace;
using testing::ProgramRun;
using testing::rotary_kinds;
using testing::rotary_program;
using testing::RotaryProgram;
using testing::run_in_every_order;
using testing::told;

// A thread has four heads of a token: fewer, one more, and twice as many with one to spare.
TEST(CudaRotary, EveryKindTypeAndOddSizeLiesWithinItsBound) {
  for (const Rotary& attributes : rotary_kinds()) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      for (const Shape& shape : {Shape{1, 1, 1, 2}, Shape{2, 3, 5, 6}, Shape{1, 3, 4, 16}, Shape{2, 17, 9, 64},
                                 Shape{1, 5, 2, 72}, Shape{1, 2, 3, 1030}}) {
        const RotaryProgram r = rotary_program(attributes, dtype, shape);

        EXPECT_EQ(run_in_every_order(r.program, [&](ProgramRun& run) { fill(run, r); }), "")
            << told(attributes, dtype, shape);
      }
    }
  }
}

/// Whether packs fit, fit in x only, or nowhere: by where parts begin, and by the width of a token.
struct Places {
  PackedPlace from, to;
};

TEST(CudaRotary, PartsOfPackedTokensAreReadAndWrittenWithoutTouchingTheirNeighbours) {
  const Shape shape{2, 5, 3, 32};
  for (const Places& places : {Places{{160, 32}, {96, 0}}, Places{{160, 32}, {97, 1}}, Places{{161, 32}, {128, 30}}}) {
    for (const Rotary& attributes : rotary_kinds()) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const RotaryProgram r = packed_rotary_program(attributes, dtype, shape, places.from, places.to);

        EXPECT_EQ(run_in_every_order(r.program, [&](ProgramRun& run) { fill(run, r); }), "")
            << told(attributes, dtype, shape) << " from width " << places.from.width << " to " << places.to.width;
      }
    }
  }
}

TEST(CudaRotary, InPlaceGivesTheBitsOfOutOfPlaceAndKeepsTheRestOfTheToken) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  const Shape shape{2, 5, 5, 32};
  for (const PackedPlace& place : {PackedPlace{.width = 256, .first = 64}, PackedPlace{.width = 181, .first = 7}}) {
    for (const Rotary& attributes : rotary_kinds()) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const RotaryProgram r = in_place_rotary_program(attributes, dtype, shape, place);
        const RotaryProgram apart = packed_rotary_program(attributes, dtype, shape, place, {.width = 160, .first = 0});
        ASSERT_EQ(run_in_every_order(r.program, [&](ProgramRun& run) { fill(run, r); }), "")
            << told(attributes, dtype, shape);
        ProgramRun run(*backend, r.program);
        ProgramRun other(*backend, apart.program);
        fill(run, r);
        fill(other, apart);
        const std::vector<double> before = run.get(r.whole_x);

        run.run();
        other.run();

        EXPECT_EQ(run.get(r.y), other.get(apart.y)) << told(attributes, dtype, shape);
        const std::vector<double> after = run.get(r.whole_x);
        for (std::size_t i = 0; i < after.size(); ++i) {
          if (lies_in_part(place, shape, static_cast<std::int64_t>(i) % place.width)) continue;
          ASSERT_EQ(after[i], before[i]) << "wrote element " << i;
        }
      }
    }
  }
}

TEST(CudaRotary, NaNSpreadsToItsPairOnly) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  const std::size_t d = 32;
  for (const Rotary& attributes : rotary_kinds()) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const RotaryProgram r = rotary_program(attributes, dtype, {1, 4, 2, 32});
      ProgramRun run(*backend, r.program);
      fill(run, r);
      std::vector<double> x = run.get(r.x);
      const std::size_t spoilt = 3 * d + 24;
      x[spoilt] = std::nan("");
      run.set(r.x, x);

      run.run();

      const std::size_t partner = attributes.pairing == Rotary::Pairing::half ? spoilt - d / 2 : spoilt + 1;
      const std::vector<double> y = run.get(r.y);
      for (std::size_t i = 0; i < y.size(); ++i) {
        EXPECT_EQ(std::isnan(y[i]), i == spoilt || i == partner) << told(attributes, dtype, {1, 4, 2, 32}) << i;
      }
    }
  }
}

TEST(CudaRotary, ATypeThatKernelsLackIsUnsupportedByName) {
  const std::unique_ptr<Backend> backend = testing::open_emulated_backend();
  const RotaryProgram r = rotary_program({}, DType::f8_e4m3, {1, 2, 1, 4});
  ProgramRun run(*backend, r.program);
  try {
    run.run();
    FAIL() << "f8_e4m3 was planned";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("f32, f16 and bf16 here, not f8_e4m3"), std::string::npos) << error.what();
  }
}

}  // namespace rotary_test
}  // namespace gpubench
