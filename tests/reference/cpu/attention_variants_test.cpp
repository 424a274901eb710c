// Masks, softcap and sinks of attention on the CPU, judged by the textbook.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/reference/attention_programs.h"
#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace attention_variants_test {

using testing::AttentionProgram;
using testing::backward_program;
using testing::forward_program;
using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;
using Variant = testing::AttentionVariant;

std::string judged(const AttentionProgram& made, const Variant& x) {
  ProgramRun run(shared_backend(), made.program);
  fill(run, made, x);
  return run_and_judge(run);
}

// Lengths around the blocks of 64 and 128 queries and the chunks of 512 keys, windows that begin in the middle of them.
std::vector<Variant> variants() {
  const double scale = 0.25;
  return {
      {"window", {1, 200, 2, 2, 16, 200}, {.scale = scale, .window = 70}},
      {"window of one", {1, 70, 2, 1, 16, 70}, {.scale = scale, .window = 1}},
      {"window beyond a chunk", {1, 700, 1, 1, 16, 700}, {.scale = scale, .window = 150}},
      {"fewer queries", {2, 33, 4, 2, 16, 150}, {.scale = scale}},
      {"one query", {2, 1, 4, 2, 16, 600}, {.scale = scale}},
      {"fewer queries, window", {1, 130, 2, 2, 16, 700}, {.scale = scale, .window = 100}},
      {"full, fewer queries", {1, 33, 2, 2, 16, 150}, {.causal = false, .scale = scale}},
      {"more queries than keys", {1, 200, 2, 1, 16, 70}, {.scale = scale}},
      {"more queries than keys, window", {1, 150, 2, 2, 16, 20}, {.scale = scale, .window = 7}},
      {"more queries than keys, sinks", {2, 200, 2, 2, 16, 70}, {.scale = scale}, true},
      {"full, fewer keys", {1, 150, 2, 2, 16, 33}, {.causal = false, .scale = scale}},
      {"softcap", {1, 130, 2, 1, 16, 130}, {.scale = scale, .softcap = 1.5}},
      {"softcap of Gemma", {1, 130, 2, 1, 16, 130}, {.scale = 4.0, .softcap = 50.0}},
      {"sinks", {2, 130, 4, 2, 16, 130}, {.scale = scale}, true},
      {"documents", {2, 300, 2, 1, 16, 300}, {.scale = scale}, false, {0, 1, 65, 65, 190, 300}},
      {"full documents", {1, 300, 2, 1, 16, 300}, {.causal = false, .scale = scale}, false, {0, 100, 190, 300}},
      {"documents in a second chunk", {1, 1100, 1, 1, 16, 1100}, {.scale = scale}, false, {0, 530, 600, 1100}},
      {"a boundary outside", {1, 90, 1, 1, 16, 90}, {.scale = scale}, false, {-5, 30, 4000}},
      {"narrower values", {1, 150, 2, 1, 48, 150, 24}, {.scale = scale}},
      {"wider values, in a second chunk", {1, 40, 2, 2, 24, 600, 70}, {.scale = scale}},
      {"all of them", {2, 200, 4, 2, 24, 200}, {.scale = scale, .window = 40, .softcap = 3.0}, true, {0, 90, 200}},
  };
}

class AttentionVariants : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Cpu, AttentionVariants, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST_P(AttentionVariants, KeepForwardAndBackwardWithinTheirBounds) {
  for (const Variant& variant : variants()) {
    EXPECT_EQ(judged(forward_program(variant, GetParam()), variant), "") << variant.name;
    EXPECT_EQ(judged(backward_program(variant, GetParam()), variant), "") << variant.name;
  }
}

// Widths of a part of a block, of one, and beyond.
TEST_P(AttentionVariants, PartsOfTheKeysAreJoinedWithinTheirBounds) {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 9, 3, 40}, Shape{1, 5, 2, 300}}) {
    const testing::MergeProgram made(GetParam(), shape);
    ProgramRun run(shared_backend(), made.program);
    fill(run, made);
    EXPECT_EQ(run_and_judge(run), "") << shape.to_string();
  }
}

// A weight of 0 times a value that is NaN is NaN: blocks of keys that a window or a document cuts must not be
// multiplied.
TEST_P(AttentionVariants, LetANanValueReachOnlyTheQueriesThatSeeIt) {
  const std::int64_t s = 300, bad = 100;
  for (const Variant& x :
       std::vector<Variant>{{"window", {1, s, 1, 1, 16, s}, {.scale = 0.25, .window = 50}},
                            {"document", {1, s, 1, 1, 16, s}, {.scale = 0.25}, false, {0, 90, 150}}}) {
    const AttentionProgram made = forward_program(x, GetParam());
    ProgramRun run(shared_backend(), made.program);
    fill(run, made, x);
    std::vector<double> v = run.get(made.v);
    v[bad * 16 + 3] = std::numeric_limits<double>::quiet_NaN();
    run.set(made.v, v);

    run.run();

    const std::vector<double> o = run.get(made.program.op(0).output("o"));
    for (std::int64_t i = 0; i < s; ++i) {
      const bool sees = i >= bad && i < 150;
      for (std::int64_t c = 0; c < 16; ++c) {
        ASSERT_EQ(std::isnan(o[static_cast<std::size_t>(i * 16 + c)]), sees && c == 3) << x.name << ", " << i;
      }
    }
  }
}

}  // namespace attention_variants_test
}  // namespace gpubench
