// Masks, softcap and sinks of attention on the CPU, judged by the textbook.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/ops/attention.h"
#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace attention_variants_test {

using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

struct Variant {
  const char* name;
  AttentionExtents extents;
  Attention attention;
  bool sinks = false;
  std::vector<double> documents{};  // the same for every batch entry
};

// The tensors of a variant.
struct Operands {
  ValueId q, k, v;
  AttentionOptions options;
};

Operands operands_of(Program& program, const Variant& x, DType type) {
  const AttentionExtents& e = x.extents;
  Operands made{program.add(tensor("q", type, {e.b, e.s, e.hq, e.d}, Role::activation)),
                program.add(tensor("k", type, {e.b, e.t, e.hkv, e.d}, Role::activation)),
                program.add(tensor("v", type, {e.b, e.t, e.hkv, e.d}, Role::activation)),
                {}};
  if (x.sinks) made.options.sinks = program.add(tensor("sinks", DType::f32, {e.hq}, Role::parameter));
  if (!x.documents.empty()) {
    const auto boundaries = static_cast<std::int64_t>(x.documents.size());
    made.options.documents = program.add(tensor("documents", DType::i32, {e.b, boundaries}, Role::input));
  }
  return made;
}

void fill(ProgramRun& run, const Operands& operands, const Variant& x) {
  run.set_random(operands.q, 1);
  run.set_random(operands.k, 2);
  run.set_random(operands.v, 3);
  if (operands.options.sinks) run.set_random(*operands.options.sinks, 4, 2.0);
  if (operands.options.documents) {
    std::vector<double> all;
    for (std::int64_t batch = 0; batch < x.extents.b; ++batch)
      all.insert(all.end(), x.documents.begin(), x.documents.end());
    run.set(*operands.options.documents, all);
  }
}

std::string forward(const Variant& x, DType type) {
  Program program;
  const Operands operands = operands_of(program, x, type);
  attention_forward(program, x.attention, Math{}, "forward", operands.q, operands.k, operands.v, operands.options);
  ProgramRun run(shared_backend(), program);
  fill(run, operands, x);
  return run_and_judge(run);
}

// o and lse are read as given: lse near the logarithm of some tens of keys.
std::string backward(const Variant& x, DType type) {
  const AttentionExtents& e = x.extents;
  Program program;
  const Operands operands = operands_of(program, x, type);
  const ValueId d_o = program.add(tensor("do", type, {e.b, e.s, e.hq, e.d}, Role::gradient));
  const ValueId o = program.add(tensor("o", type, {e.b, e.s, e.hq, e.d}, Role::activation));
  const ValueId lse = program.add(tensor("lse", DType::f32, {e.b, e.hq, e.s}, Role::statistic));
  attention_backward(program, x.attention, Math{}, "backward", d_o, operands.q, operands.k, operands.v, o, lse,
                     operands.options);
  ProgramRun run(shared_backend(), program);
  fill(run, operands, x);
  run.set_random(d_o, 5);
  run.set_random(o, 6);
  run.set_random(lse, 7, 0.25);
  std::vector<double> moved = run.get(lse);
  for (double& value : moved) value += 3.0;
  run.set(lse, moved);
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
      {"full, fewer keys", {1, 150, 2, 2, 16, 33}, {.causal = false, .scale = scale}},
      {"softcap", {1, 130, 2, 1, 16, 130}, {.scale = scale, .softcap = 1.5}},
      {"softcap of Gemma", {1, 130, 2, 1, 16, 130}, {.scale = 4.0, .softcap = 50.0}},
      {"sinks", {2, 130, 4, 2, 16, 130}, {.scale = scale}, true},
      {"documents", {2, 300, 2, 1, 16, 300}, {.scale = scale}, false, {0, 1, 65, 65, 190, 300}},
      {"full documents", {1, 300, 2, 1, 16, 300}, {.causal = false, .scale = scale}, false, {0, 100, 190, 300}},
      {"documents in a second chunk", {1, 1100, 1, 1, 16, 1100}, {.scale = scale}, false, {0, 530, 600, 1100}},
      {"a boundary outside", {1, 90, 1, 1, 16, 90}, {.scale = scale}, false, {-5, 30, 4000}},
      {"all of them", {2, 200, 4, 2, 24, 200}, {.scale = scale, .window = 40, .softcap = 3.0}, true, {0, 90, 200}},
  };
}

class AttentionVariants : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Cpu, AttentionVariants, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST_P(AttentionVariants, KeepForwardAndBackwardWithinTheirBounds) {
  for (const Variant& variant : variants()) {
    EXPECT_EQ(forward(variant, GetParam()), "") << variant.name;
    EXPECT_EQ(backward(variant, GetParam()), "") << variant.name;
  }
}

// A weight of 0 times a value that is NaN is NaN: blocks of keys that a window or a document cuts must not be
// multiplied.
TEST_P(AttentionVariants, LetANanValueReachOnlyTheQueriesThatSeeIt) {
  const std::int64_t s = 300, bad = 100;
  for (const Variant& x :
       std::vector<Variant>{{"window", {1, s, 1, 1, 16, s}, {.scale = 0.25, .window = 50}},
                            {"document", {1, s, 1, 1, 16, s}, {.scale = 0.25}, false, {0, 90, 150}}}) {
    Program program;
    const Operands operands = operands_of(program, x, GetParam());
    const AttentionForward out = attention_forward(program, x.attention, Math{}, "forward", operands.q, operands.k,
                                                   operands.v, operands.options);
    ProgramRun run(shared_backend(), program);
    fill(run, operands, x);
    std::vector<double> v = run.get(operands.v);
    v[bad * 16 + 3] = std::numeric_limits<double>::quiet_NaN();
    run.set(operands.v, v);

    run.run();

    const std::vector<double> o = run.get(out.o);
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
