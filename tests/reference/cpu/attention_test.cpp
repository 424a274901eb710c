// Attention on the CPU, forward and backward, against the textbook. Blocks have 64 queries (backward: 128), chunks 512
// keys; sizes here do not fill blocks or vectors.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "reference/cpu/cpu_backend.h"
#include "tests/reference/attention_contract.h"
#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace attention_test {

using testing::AttentionPasses;
using testing::AttentionProgram;
using testing::AttentionVariant;
using testing::cpu_contract;
using testing::ProgramRun;
using testing::shared_backend;

const std::vector<DType> types{DType::f32, DType::bf16};

TEST(Attention, EveryMaskSoftcapAndSinksKeepTheirBounds) {
  std::vector<AttentionVariant> variants = testing::attention_variants(150, 600);
  variants.push_back(
      {"documents in a third chunk", {1, 1100, 1, 1, 16, 1100}, {.scale = 0.25}, false, {0, 530, 600, 1100}});
  variants.push_back({"window beyond a chunk", {1, 700, 1, 1, 16, 700}, {.scale = 0.25, .window = 150}});
  variants.push_back({"fewer queries, window", {1, 130, 2, 2, 16, 700}, {.scale = 0.25, .window = 100}});
  testing::expect_bounds_of_attention(cpu_contract(), variants, types);
}

TEST(Attention, EveryHeadSizeAndPartsOfPackedTokensKeepTheirBounds) {
  testing::expect_bounds_of_attention(cpu_contract(), testing::attention_heads(), types);
}

TEST(Attention, HugeKeysBeyondTheDiagonalAreNotSeen) { testing::expect_no_key_beyond_the_diagonal(cpu_contract()); }

TEST(Attention, ANanKeyReachesOnlyTheQueriesThatSeeIt) {
  testing::expect_a_nan_key_to_reach_what_sees_it(cpu_contract());
}

// Inside a block of queries, at its ends, in the second chunk of keys. Such a block takes another path, with other
// rounding.
TEST(Attention, ANanOrInfiniteValueReachesOnlyTheQueriesThatSeeIt) {
  for (const std::int64_t place : {0, 63, 64, 100, 511, 530, 599})
    testing::expect_a_wrong_value_to_reach_what_sees_it(cpu_contract(), 600, place, 0.02);
}

// Widths below, at and above a block.
TEST(Attention, PartsOfTheKeysAreJoinedWithinTheirBounds) {
  testing::expect_bounds_of_merged_parts(cpu_contract(), types, {{1, 1, 1, 1}, {2, 9, 3, 40}, {1, 5, 2, 300}});
}

std::vector<AttentionVariant> settings() {
  std::vector<AttentionVariant> all;
  for (const bool causal : {true, false}) {
    const auto add = [&](AttentionExtents e, std::optional<std::int64_t> packed_from = {}, double scale = 0.0) {
      e.t = e.s;
      if (scale == 0.0) scale = 1.0 / std::sqrt(static_cast<double>(e.d));
      all.push_back({causal ? "causal " : "full ", e, {.causal = causal, .scale = scale}, false, {}, packed_from});
    };
    for (const std::int64_t s : {1, 17, 127, 129, 200}) add({1, s, 2, 2, 64});
    for (const std::int64_t d : {8, 80, 128}) add({1, 70, 2, 2, d});
    add({1, 33, 1, 1, 7});      // rows of bf16 at odd multiples of 2 bytes
    add({1, 600, 1, 1, 16});    // more keys than a chunk
    add({2, 90, 8, 2, 32}, 0);  // grouped, packed
    add({2, 65, 3, 3, 64}, 0, 0.5);
    add({1, 300, 3, 1, 16});  // one kv head for all threads
    add({4, 70, 16, 8, 32});  // many kv heads per thread
  }
  return all;
}

class BothTypes : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Cpu, BothTypes, ::testing::ValuesIn(types),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST_P(BothTypes, KeepForwardAndTheBackwardBehindItWithinTheirBounds) {
  testing::expect_bounds_of_attention(cpu_contract(), settings(), {GetParam()}, {AttentionPasses::chained});
}

TEST_P(BothTypes, RepeatBitByBit) {
  const AttentionProgram p({"", {1, 700, 3, 1, 32, 700}, {.scale = 0.25}}, GetParam(), AttentionPasses::chained);
  ProgramRun run(shared_backend(), p.program);
  fill(run, p);
  run.run();
  const ValueId outputs[] = {p.o, p.lse, p.gradients.dq, p.gradients.dk, p.gradients.dv};
  std::vector<std::vector<std::byte>> first;
  for (const ValueId id : outputs) first.push_back(run.bytes_of(id));

  for (int repeat = 0; repeat < 5; ++repeat) {
    run.run_again();

    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(run.bytes_of(outputs[i]), first[i]) << "output " << i;
  }
}

// A block's result does not depend on the thread that computes it, or on how a head's blocks are distributed. With six
// heads, only a single thread handles whole heads. dk and dv too, whose sums are not split; dq is summed in shares.
TEST_P(BothTypes, GiveTheSameBitsOnOneTwoAndFiveThreads) {
  const AttentionProgram p({"", {6, 150, 2, 1, 32, 150}, {.scale = 0.18}}, GetParam(), AttentionPasses::chained);
  std::vector<std::vector<std::byte>> first;
  for (const int threads : {1, 2, 5}) {
    const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
    ProgramRun run(*backend, p.program);
    fill(run, p);

    EXPECT_EQ(testing::run_and_judge(run), "") << threads << " threads";

    std::vector<std::vector<std::byte>> bytes;
    for (const ValueId id : {p.o, p.lse, p.gradients.dk, p.gradients.dv}) bytes.push_back(run.bytes_of(id));
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first) << threads << " threads";
  }
}

TEST(Attention, SaysWhoComputes) {
  const AttentionProgram p({"", {1, 8, 1, 1, 8, 8}, {}}, DType::bf16, AttentionPasses::chained);
  ProgramRun run(shared_backend(), p.program);

  run.bind();

  EXPECT_EQ(run.implementation(0).rfind("gpubench:", 0), 0U) << run.implementation(0);
  EXPECT_EQ(run.implementation(0), run.implementation(1));
}

TEST(Attention, RefusesF64AndAScaleThatIsNotPositive) {
  const auto refusal_of = [](double scale, DType type) {
    const AttentionProgram p({"", {1, 4, 1, 1, 8, 4}, {.scale = scale}}, type, AttentionPasses::forward);
    return testing::refusal(shared_backend(), p.program);
  };
  for (const double scale : {-1.0, std::nan("")})
    EXPECT_NE(refusal_of(scale, DType::f32).find("scale is"), std::string::npos);
  EXPECT_NE(refusal_of(1.0, DType::f64), "");
}

}  // namespace attention_test
}  // namespace gpubench
