// Rotary position embedding on the CUDA backend, against the textbook: odd sizes, all types, both conventions, parts of
// packed tokens, aligned or not, in place.
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/rotary_contract.h"

namespace gpubench {
namespace rotary_test {

using testing::emulated_contract;

// A thread handles four heads of a token: sizes below that, one above it, and one above twice that.
TEST(CudaRotary, EveryKindTypeAndOddSizeLiesWithinItsBound) {
  testing::expect_bounds_of_rotary(
      emulated_contract(), {{1, 1, 1, 2}, {2, 3, 5, 6}, {1, 3, 4, 16}, {2, 17, 9, 64}, {1, 5, 2, 72}, {1, 2, 3, 1030}});
}

// Packs fit, fit in x only, or not at all, depending on the parts' offsets and the token width.
TEST(CudaRotary, PartsOfTokensAndInPlaceTouchNoNeighbourAndGiveTheSameBits) {
  testing::expect_rotary_of_parts(emulated_contract(), {{{2, 5, 3, 32}, {160, 32}, {96, 0}},
                                                        {{2, 5, 3, 32}, {160, 32}, {97, 1}},
                                                        {{2, 5, 3, 32}, {161, 32}, {128, 30}},
                                                        {{2, 5, 5, 32}, {256, 64}, {160, 0}},
                                                        {{2, 5, 5, 32}, {181, 7}, {160, 0}}});
}

TEST(CudaRotary, NaNSpreadsToItsPairOnly) { testing::expect_nan_to_stay_in_its_pair(emulated_contract()); }

TEST(CudaRotary, ATypeThatKernelsLackIsUnsupportedByName) {
  const testing::RotaryProgram r = testing::rotary_program({}, DType::f8_e4m3, {1, 2, 1, 4});
  const std::string words = testing::refusal(emulated_contract().backend, r.program);
  EXPECT_NE(words.find("expected f32, f16 or bf16, not f8_e4m3"), std::string::npos) << words;
}

}  // namespace rotary_test
}  // namespace gpubench
