// Rotary position embedding on the CPU, against the textbook: odd sizes, all types, both conventions, parts, in place.
#include <gtest/gtest.h>

#include "reference/cpu/cpu_backend.h"
#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/rotary_contract.h"

namespace gpubench {
namespace rotary_test {

using testing::cpu_contract;
using testing::fill;
using testing::ProgramRun;
using testing::rotary_kinds;
using testing::rotary_program;
using testing::RotaryProgram;
using testing::run_and_judge;
using testing::shared_backend;
using testing::told;

TEST(Rotary, EveryKindTypeAndOddSizeLiesWithinItsBound) {
  testing::expect_bounds_of_rotary(
      cpu_contract(),
      {{1, 1, 1, 2}, {2, 3, 5, 6}, {1, 7, 1, 34}, {3, 33, 2, 64}, {1, 65, 8, 128}, {2, 5, 3, 514}, {1, 2, 2, 10000}});
}

TEST(Rotary, PartsOfTokensAndInPlaceTouchNoNeighbourAndGiveTheSameBits) {
  testing::expect_rotary_of_parts(cpu_contract(),
                                  {{{2, 9, 3, 20}, {150, 60}, {71, 7}}, {{2, 9, 3, 22}, {150, 61}, {66, 0}}});
}

TEST(Rotary, NaNSpreadsToItsPairOnly) { testing::expect_nan_to_stay_in_its_pair(cpu_contract()); }

// Outputs larger than half of the largest cache (counted up to 32 MiB) are streamed from a scratch block, which 11
// heads of 130 elements do not fill evenly.
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

}  // namespace rotary_test
}  // namespace gpubench
