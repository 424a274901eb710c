#include <gtest/gtest.h>

#include "tests/reference/attention_contract.h"
#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench {
namespace cuda_attention_test {

using testing::emulated_contract;

TEST(CudaAttentionVariants, WithEveryMaskSoftcapAndSinksKeepTheirBounds) {
  testing::expect_bounds_of_attention(emulated_contract(), testing::attention_variants(70, 140),
                                      {DType::f32, DType::bf16});
}

// Separate kernels for heads of up to 64, 128 and 256 elements; single elements if packs of four do not fit.
TEST(CudaAttention, EveryHeadSizeAndPartsOfPackedTokensKeepTheirBounds) {
  testing::expect_bounds_of_attention(emulated_contract(), testing::attention_heads(),
                                      {DType::f32, DType::f16, DType::bf16});
}

TEST(CudaAttention, HugeKeysBeyondTheDiagonalAreNotSeen) {
  testing::expect_no_key_beyond_the_diagonal(emulated_contract());
}

TEST(CudaAttention, ANanKeyReachesOnlyTheQueriesThatSeeIt) {
  testing::expect_a_nan_key_to_reach_what_sees_it(emulated_contract());
}

TEST(CudaAttention, ANanOrInfiniteValueReachesOnlyTheQueriesThatSeeIt) {
  testing::expect_a_wrong_value_to_reach_what_sees_it(emulated_contract(), 140, 70, 0.0);
}

TEST(CudaAttentionMerge, OddAndPackedWidthsLieWithinTheirBounds) {
  testing::expect_bounds_of_merged_parts(emulated_contract(), emulated_contract().types,
                                         {{1, 1, 1, 1}, {2, 9, 3, 40}, {1, 5, 2, 37}});
}

std::string refusal_of(std::int64_t d, const Math& math, DType type) {
  Program program;
  const auto heads = [&](const char* name) { return program.add(tensor(name, type, {1, 4, 1, d}, Role::activation)); };
  const ValueId q = heads("q"), k = heads("k"), v = heads("v");
  (void)attention_forward(program, {}, math, "forward", q, k, v);
  return testing::refusal(emulated_contract().backend, program);
}

// The kernels do not use tensor cores, so a tf32 result would not have tf32 arithmetic.
TEST(CudaAttentionRefuses, Tf32F64AndHeadsThatAreTooWide) {
  EXPECT_NE(refusal_of(8, {.inputs = Math::Inputs::tf32}, DType::f32).find("lack tf32"), std::string::npos);
  EXPECT_NE(refusal_of(8, {.accumulate = DType::f64}, DType::f64).find("sums in f64"), std::string::npos);
  EXPECT_NE(refusal_of(264, {}, DType::f32).find("heads of 264 elements; expected at most 256"), std::string::npos);
}

}  // namespace cuda_attention_test
}  // namespace gpubench
