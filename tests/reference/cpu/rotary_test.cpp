// Rotary position embedding on the CPU, against the textbook: odd sizes, both types and conventions, parts, in place.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/core/error.h"
#include "reference/cpu/cpu_backend.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/rotary_programs.h"

namespace gpubench {
namespace rotary_test {

using testing::fill;
using testing::PackedPlace;
using testing::ProgramRun;
using testing::rotary_kinds;
using testing::rotary_program;
using testing::RotaryProgram;
using testing::run_and_judge;
using testing::shared_backend;
using testing::told;

const std::vector<Shape> odd_shapes{{1, 1, 1, 2},    {2, 3, 5, 6},   {1, 7, 1, 34},   {3, 33, 2, 64},
                                    {1, 65, 8, 128}, {2, 5, 3, 514}, {1, 2, 2, 10000}};

TEST(Rotary, EveryKindTypeAndOddSizeLiesWithinItsBound) {
  for (const Rotary& attributes : rotary_kinds()) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      for (const Shape& shape : odd_shapes) {
        const RotaryProgram r = rotary_program(attributes, dtype, shape);
        ProgramRun run(shared_backend(), r.program);
        fill(run, r);

        EXPECT_EQ(run_and_judge(run), "") << told(attributes, dtype, shape);
      }
    }
  }
}

TEST(Rotary, PartsOfPackedTokensAreReadAndWrittenWithoutTouchingTheirNeighbours) {
  const Shape shape{2, 9, 3, 20};
  const PackedPlace from{.width = 150, .first = 60};
  const PackedPlace to{.width = 71, .first = 7};
  for (const Rotary& attributes : rotary_kinds()) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const RotaryProgram r = packed_rotary_program(attributes, dtype, shape, from, to);
      ProgramRun run(shared_backend(), r.program);
      fill(run, r);
      const std::vector<double> untouched = run.get(r.whole_y);

      EXPECT_EQ(run_and_judge(run), "") << told(attributes, dtype, shape);

      const std::vector<double> after = run.get(r.whole_y);
      for (std::size_t i = 0; i < after.size(); ++i) {
        if (lies_in_part(to, shape, static_cast<std::int64_t>(i) % to.width)) continue;
        ASSERT_EQ(after[i], untouched[i]) << "wrote element " << i;
      }
    }
  }
}

TEST(Rotary, InPlaceGivesTheBitsOfOutOfPlaceAndKeepsTheRestOfTheToken) {
  const Shape shape{2, 9, 3, 22};
  const PackedPlace place{.width = 150, .first = 61};
  for (const Rotary& attributes : rotary_kinds()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const RotaryProgram r = in_place_rotary_program(attributes, dtype, shape, place);
      const RotaryProgram apart = packed_rotary_program(attributes, dtype, shape, place, {.width = 66, .first = 0});
      ProgramRun run(shared_backend(), r.program);
      ProgramRun other(shared_backend(), apart.program);
      fill(run, r);
      fill(other, apart);
      const std::vector<double> before = run.get(r.whole_x);

      EXPECT_EQ(run_and_judge(run), "") << told(attributes, dtype, shape);

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

// Outputs beyond half of the largest cache (at most 32 MiB counted) are stored around the caches, from a scratch block
// that 11 heads of 130 elements do not fill evenly.
TEST(Rotary, LargeOutputsLieWithinTheirBounds) {
  for (const Rotary& attributes : {Rotary{}, Rotary{.pairing = Rotary::Pairing::interleaved}}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Shape shape{1, dtype == DType::f32 ? 3001 : 6003, 11, 130};
      const RotaryProgram r = rotary_program(attributes, dtype, shape);
      ProgramRun run(shared_backend(), r.program);
      fill(run, r);

      EXPECT_EQ(run_and_judge(run, 61), "") << told(attributes, dtype, shape);
    }
  }
}

TEST(Rotary, AnyNumberOfThreadsGivesTheSameBits) {
  const std::unique_ptr<Backend> one = open_cpu_backend(1);
  const std::unique_ptr<Backend> three = open_cpu_backend(3);
  for (const Rotary& attributes : rotary_kinds()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      std::vector<std::vector<std::byte>> results;
      for (Backend* backend : {one.get(), three.get()}) {
        const RotaryProgram r = rotary_program(attributes, dtype, {2, 301, 5, 66});
        ProgramRun run(*backend, r.program);
        fill(run, r);
        run.run();
        results.push_back(run.bytes_of(r.y));
      }
      EXPECT_EQ(results[0], results[1]) << told(attributes, dtype, {2, 301, 5, 66});
    }
  }
}

TEST(Rotary, NaNSpreadsToItsPairOnly) {
  const std::size_t d = 38;
  for (const Rotary& attributes : rotary_kinds()) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const RotaryProgram r = rotary_program(attributes, dtype, {1, 4, 2, 38});
      ProgramRun run(shared_backend(), r.program);
      fill(run, r);
      std::vector<double> x = run.get(r.x);
      const std::size_t spoilt = 3 * d + 24;
      x[spoilt] = std::nan("");
      run.set(r.x, x);

      run.run();

      const std::size_t partner = attributes.pairing == Rotary::Pairing::half ? spoilt - d / 2 : spoilt + 1;
      const std::vector<double> y = run.get(r.y);
      for (std::size_t i = 0; i < y.size(); ++i) {
        EXPECT_EQ(std::isnan(y[i]), i == spoilt || i == partner) << told(attributes, dtype, {1, 4, 2, 38}) << i;
      }
    }
  }
}

}  // namespace rotary_test
}  // namespace gpubench
