#include "reference/ops/transform/batches.h"

#include <gtest/gtest.h>

#include <map>

#include "harness/core/error.h"
#include "reference/ops/attention.h"
#include "tests/reference/ops/textbook_run.h"
#include "tests/thrown_text.h"

namespace gpubench::testing {
namespace context_test {

/// Two sequences of two tokens per rank, one head of width 1; all scores are 0, so a token gets the mean of its values.
Program attention(bool causal) {
  Program p;
  const auto batch = [&](const char* name) {
    TensorSpec spec = tensor(name, DType::f32, {4, 1}, Role::input);
    spec.placement = Placement::shard(0);
    const ValueId rows = p.add(std::move(spec));
    return p.part(rows, tensor(std::string(name) + ".heads", DType::f32, {2, 2, 1, 1}, Role::input), 0);
  };
  const ValueId q = batch("q"), k = batch("k"), v = batch("v");
  attention_forward(p, {.causal = causal}, f32_math, "attention", q, k, v);
  return p;
}

std::vector<double> output(const Program& program, TextbookRun& run, const std::string& name) {
  for (int index = 0; index < static_cast<int>(program.values().size()); ++index) {
    if (program.spec({index}).name == name) return run.get({index});
  }
  throw std::runtime_error("no tensor " + name);
}

/// Results of two ranks for the values 1, 2, 3, 4 and 10, 20, 30, 40 of two sequences.
std::vector<std::vector<double>> outputs(bool causal, bool ring = false) {
  const Program shared = context_parallel(attention(causal), {.ranks = 2, .tokens = 2, .ring = ring}, {}).program;
  EXPECT_EQ(shared.mesh(), Mesh({{"cp", 2}}));
  TextbookRun run(shared);
  const std::vector<double> values{1, 2, 3, 4, 10, 20, 30, 40};
  for (int index = 0; index < static_cast<int>(shared.values().size()); ++index) {
    const Value& value = shared.value({index});
    if (!value.source || value.part_of) continue;
    std::vector<double> mine;
    for (std::int64_t i = 0; i < value.spec.shape.elements(); ++i)
      mine.push_back(value.spec.global_name() == "v" ? values.at(static_cast<std::size_t>(global_index(value.spec, i)))
                                                     : 0.0);
    run.set({index}, mine);
  }
  run.run();
  return {output(shared, run, "attention.o@0"), output(shared, run, "attention.o@1")};
}

TEST(ContextParallel, QueriesSeeTheKeysOfTheRanksBeforeAndTheirOwn) {
  EXPECT_EQ(outputs(true), (std::vector<std::vector<double>>{{1, 1.5, 10, 15}, {2, 2.5, 20, 25}}));
}

TEST(ContextParallel, WithoutAMaskTheySeeThoseOfAllRanks) {
  EXPECT_EQ(outputs(false), (std::vector<std::vector<double>>{{2.5, 2.5, 25, 25}, {2.5, 2.5, 25, 25}}));
}

TEST(ContextParallel, InARingTheySeeTheSame) {
  const std::vector<std::vector<double>> causal = outputs(true, true), full = outputs(false, true);
  EXPECT_EQ(causal[0], (std::vector<double>{1, 1.5, 10, 15}));
  expect_near(causal[1], {2, 2.5, 20, 25}, 1e-13);
  for (const std::vector<double>& each : full) expect_near(each, {2.5, 2.5, 25, 25}, 1e-13);
}

TEST(ContextParallel, ARingPassesKeysAndValuesOnAndGathersNothing) {
  std::map<std::string_view, int> count;
  const Program shared = context_parallel(attention(true), {.ranks = 3, .tokens = 2, .ring = true}, {}).program;
  for (const OpCall& op : shared.ops()) ++count[op.kind.name];
  // Rank r attends to r + 1 blocks and merges them; keys and values are sent twice each.
  EXPECT_EQ(count,
            (std::map<std::string_view, int>{{"attention_forward", 6}, {"attention_merge", 3}, {"send_recv", 4}}));
}

std::string refusal_of(const Program& program, std::int64_t tokens) {
  return thrown_text<ProgramError>([&] { (void)context_parallel(program, {.ranks = 2, .tokens = tokens}, {}); },
                                   "none");
}

TEST(ContextParallel, RefusesABatchThatIsNoWholeNumberOfSequences) {
  EXPECT_EQ(refusal_of(attention(true), 3),
            "context_parallel: q@0: f32[4, 1] is not a whole number of sequences of 3 tokens on each rank");
}

}  // namespace context_test
}  // namespace gpubench::testing
