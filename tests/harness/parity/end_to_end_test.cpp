// Training steps of tiny models on the CPU backend against the same programs in fp64; GPT-2 also on several ranks and
// with faults.
#include "harness/parity/end_to_end.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/core/program.h"
#include "harness/run/rank_group.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/fuse.h"
#include "tests/reference/cpu/program_run.h"
#include "tests/suites/workloads.h"

namespace gpubench {
namespace end_to_end_test {

constexpr std::uint64_t seed = 7;

Case tiny_step(const std::string& recipe) {
  return {"transformer",
          "gpt2_train_step",
          {{"b", 2}, {"s", 8}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"vocab", 48}},
          recipe,
          {},
          1,
          "tiny",
          Tier::smoke,
          CacheMode::step};
}

// Runs every op of the program except the one labelled `dropped`.
void run_on(Backend& backend, const Program& program, TextbookMachine& memory, const std::string& dropped = "") {
  for (const OpCall& op : program.ops()) {
    if (op.label == dropped) continue;
    std::vector<ValueId> ids = op.inputs;
    ids.insert(ids.end(), op.outputs.begin(), op.outputs.end());
    std::vector<Tensor> tensors;
    for (const ValueId id : ids) {
      const Value& value = program.value(id);
      tensors.push_back({value.spec, memory.data(value.storage) + value.offset_bytes});
    }
    const Plan plan = backend.plan(op, specs_of(program, ids));
    const Buffer workspace = backend.allocate(std::max<std::size_t>(plan->workspace_bytes(), 1));
    backend.run(backend.bind(plan, tensors, {workspace.data(), workspace.bytes()}));
  }
}

std::vector<EndToEndResult> compare(const Case& c, const Program& program, const std::string& dropped = "") {
  TextbookMachine memory(program);
  memory.fill_sources(c.id_without_ranks(), seed, program);
  run_on(*open_cpu_backend(), program, memory, dropped);
  return end_to_end(program, c.id_without_ranks(), seed, [&](ValueId id) { return memory.view(id); });
}

std::vector<EndToEndResult> compare(const std::string& recipe, const std::string& dropped = "") {
  return compare(tiny_step(recipe), testing::program_of(tiny_step(recipe)), dropped);
}

class EndToEnd : public ::testing::TestWithParam<const char*> {};

TEST_P(EndToEnd, ATrainingStepOnTheCpuStaysWithinTheSpreadOfCorrectRuns) {
  int parameters = 0;
  for (const EndToEndResult& result : compare(GetParam())) {
    EXPECT_TRUE(result.passed()) << result.tensor << ": error " << result.error << ", allowed " << result.allowed
                                 << ", norm " << result.norm;
    parameters += result.role == Role::parameter ? 1 : 0;
  }
  EXPECT_GE(parameters, 16);  // two embeddings, twelve tensors of the block, two of the final norm
}

TEST_P(EndToEnd, ADroppedResidualIsSeenInTheUpdatedWeights) {
  int failed = 0;
  for (const EndToEndResult& result : compare(GetParam(), "block0.residual2")) failed += result.passed() ? 0 : 1;
  EXPECT_GT(failed, 10);
}

TEST_P(EndToEnd, AFusedTrainingStepStaysWithinItToo) {
  const Fused fused = fuse(testing::program_of(tiny_step(GetParam())), open_cpu_backend()->fused_ops());
  // embedding + ln1, residual1 + ln2, residual2 + ln_f; loss + its gradient; clip + AdamW, of which bf16 has two
  // (parameters with and without a copy)
  ASSERT_EQ(fused.rewrites.size(), std::string(GetParam()) == "bf16" ? 6U : 5U);
  for (const EndToEndResult& result : compare(tiny_step(GetParam()), fused.program))
    EXPECT_TRUE(result.passed()) << result.tensor << ": error " << result.error << ", allowed " << result.allowed
                                 << ", norm " << result.norm;
}

Case on_ranks(Case c, int ranks) {
  c.ranks = ranks;
  return c;
}

TEST(DataParallelStep, InFp64ItIsTheStepOfOneRankOnTheWholeBatch) {
  const Case one_rank = tiny_step("f32");
  const std::string key = one_rank.id_without_ranks();
  for (const int ranks : {2, 4}) {
    Case whole_batch = one_rank;
    whole_batch.dims[0].second *= ranks;
    const Program whole = testing::program_of(whole_batch);
    const Program parts = testing::program_of(on_ranks(one_rank, ranks));
    const Program wide_whole = widen(whole);
    const Program wide_parts = widen(parts);
    TextbookMachine on_one(wide_whole);
    on_one.fill_sources(key, seed, whole);
    on_one.run();
    TextbookMachine on_all(wide_parts);
    on_all.fill_sources(key, seed, parts);
    on_all.run();

    std::map<std::string, ValueId> expected;  // updated weights and optimizer state
    for (int i = 0; i < static_cast<int>(whole.values().size()); ++i) {
      const Value& value = whole.value({i});
      if (value.updates && value.spec.role != Role::gradient) expected[value.spec.name] = {i};
    }
    ASSERT_GE(expected.size(), 48U);  // 16 parameters with two moments each
    int compared = 0;
    for (int i = 0; i < static_cast<int>(parts.values().size()); ++i) {
      const auto found = expected.find(std::string(parts.spec({i}).global_name()));
      if (found == expected.end()) continue;
      const TensorView got = on_all.view({i});
      const TensorView want = on_one.view(found->second);
      for (std::int64_t e = 0; e < want.shape().elements(); ++e)
        ASSERT_NEAR(got[e], want[e], 1e-9 * std::max(1.0, std::fabs(want[e])))
            << parts.spec({i}).name << "[" << e << "]";
      ++compared;
    }
    EXPECT_EQ(compared, ranks * static_cast<int>(expected.size()));
  }
}

TEST(DataParallelStep, OnCpuRanksItStaysWithinTheSpreadOfCorrectRuns) {
  for (const int ranks : {2, 4}) {
    const Case c = on_ranks(tiny_step("f32"), ranks);
    const Program program = testing::program_of(c);
    TextbookMachine memory(program);
    memory.fill_sources(c.id_without_ranks(), seed, program);
    run_on(*open_rank_group(open_cpu_ranks(ranks)), program, memory);
    int parameters = 0;
    for (const EndToEndResult& result :
         end_to_end(program, c.id_without_ranks(), seed, [&](ValueId id) { return memory.view(id); })) {
      EXPECT_TRUE(result.passed()) << result.tensor << ": error " << result.error << ", allowed " << result.allowed;
      parameters += result.role == Role::parameter ? 1 : 0;
    }
    EXPECT_GE(parameters, 16 * ranks);
  }
}

TEST(EndToEndOfOneOp, ALossOverNoLabelsMustBeNaN) {
  Program p;
  const ValueId logits = p.add(tensor("logits", DType::f32, {3, 5}, Role::input, Fill::normal(1.0)));
  const ValueId labels = p.add(tensor("labels", DType::i32, {3}, Role::input, Fill::constant(-100)));
  const ValueId loss = cross_entropy_forward(p, {}, "loss", logits, labels, {.ignores = true}).loss;
  TextbookMachine memory(p);
  memory.fill_sources("loss", seed, p);
  run_on(*open_cpu_backend(), p, memory);
  const auto passed = [&] {
    const auto results = end_to_end(p, "loss", seed, [&](ValueId id) { return memory.view(id); });
    return std::ranges::all_of(results, [](const EndToEndResult& result) { return result.passed(); });
  };
  EXPECT_TRUE(passed());
  store(DType::f32, memory.data(p.value(loss).storage), 0.0);
  EXPECT_FALSE(passed());
}

// z = x + 0, y = relu(z), dx = dy where y is positive. Only the z nearest to zero may have another sign than the exact
// one.
TEST(Kinks, AnElementThatIsRoundedOverZeroTakesTheOtherGradient) {
  const Case c{"test", "relu", {}, "f32", {}, 1, ""};
  Program p;
  const ValueId x = p.add(tensor("x", DType::f32, {64}, Role::input, Fill::normal(1.0)));
  const ValueId zero = p.add(tensor("zero", DType::f32, {64}, Role::input, Fill::constant(0.0)));
  const ValueId dy = p.add(tensor("dy", DType::f32, {64}, Role::gradient, Fill::normal(1.0)));
  const ValueId z = add(p, {}, "z", x, zero);
  const ValueId y = relu_forward(p, {}, "y", z);
  (void)relu_backward(p, {}, "dz", y, dy);
  const auto fails_with_sign_changed = [&](bool nearest) {
    TextbookMachine memory(p);
    memory.fill_sources(c.id_without_ranks(), seed, p);
    memory.run_op(0);
    auto* values = reinterpret_cast<float*>(memory.data(p.value(z).storage));
    const auto nearer = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
    float* chosen =
        nearest ? std::min_element(values, values + 64, nearer) : std::max_element(values, values + 64, nearer);
    *chosen = -*chosen;
    memory.run_op(1);
    memory.run_op(2);
    int failed = 0;
    for (const EndToEndResult& result :
         end_to_end(p, c.id_without_ranks(), seed, [&](ValueId id) { return memory.view(id); }))
      failed += result.passed() ? 0 : 1;
    return failed;
  };

  EXPECT_EQ(fails_with_sign_changed(true), 0);
  EXPECT_GE(fails_with_sign_changed(false), 2);  // z and y at least
}

struct TinyModel {
  const char *suite, *workload;
  Dims dims;
  int parameters;  // tensors that a step updates
};

// Parameters of Llama: embedding, head, last norm, and per block two norms and four matrices. ResNet: three per
// convolution (the first, and four per bottleneck), and two of the head.
const TinyModel tiny_models[] = {
    {"transformer",
     "bert_train_step",
     {{"b", 2}, {"s", 21}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"vocab", 48}},
     12 + 2 + 3 + 2 + 2 + 1},
    {"transformer",
     "vit_train_step",
     {{"n", 2}, {"image", 8}, {"patch", 4}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"classes", 10}},
     12 + 2 + 1 + 1 + 2 + 2},
    {"convnet",
     "resnet_train_step",
     {{"n", 2}, {"image", 64}, {"width", 8}, {"depth", 14}, {"classes", 10}},
     3 * (1 + 4 * 4) + 2},
    {"transformer",
     "llama_train_step",
     {{"b", 2}, {"s", 8}, {"layers", 2}, {"h", 32}, {"heads", 4}, {"kv", 2}, {"f", 48}, {"vocab", 48}},
     15},
    // Per block also a router and the experts' two matrices, in place of the feed-forward layer's.
    {"moe",
     "mixtral_train_step",
     {{"b", 2},
      {"s", 8},
      {"layers", 2},
      {"h", 32},
      {"heads", 4},
      {"kv", 2},
      {"f", 16},
      {"experts", 4},
      {"k", 2},
      {"vocab", 48}},
     17},
    // Norm, router, and two matrices each of the experts and of the shared one.
    {"moe", "deepseek_layer", {{"b", 2}, {"s", 8}, {"h", 32}, {"f", 16}, {"experts", 6}, {"k", 3}}, 6},
};

TEST_P(EndToEnd, EveryModelStaysWithinItAsWell) {
  for (const TinyModel& model : tiny_models) {
    SCOPED_TRACE(model.workload);
    const Case c{model.suite, model.workload, model.dims, GetParam(), {}, 1, "tiny", Tier::smoke, CacheMode::step};
    int parameters = 0;
    for (const EndToEndResult& result : compare(c, testing::program_of(c))) {
      EXPECT_TRUE(result.passed()) << result.tensor << ": error " << result.error << ", allowed " << result.allowed
                                   << ", norm " << result.norm;
      parameters += result.role == Role::parameter && result.tensor.ends_with("'") ? 1 : 0;
    }
    EXPECT_GE(parameters, model.parameters);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, EndToEnd, ::testing::Values("f32", "bf16"));

}  // namespace end_to_end_test
}  // namespace gpubench
