// A whole training step of a tiny GPT-2 on the CPU backend against the same program in fp64.
#include "harness/parity/end_to_end.h"

#include <gtest/gtest.h>

#include "harness/parity/textbook_machine.h"
#include "reference/cpu/cpu_backend.h"
#include "reference/ops/transform/fuse.h"
#include "suites/suites.h"

namespace gpubench {
namespace {

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

Program build(const Case& c) {
  for (const Suite& suite : all_suites()) {
    for (const auto& workload : suite.workloads) {
      if (suite.name == c.suite && workload->info().name == c.workload) return workload->build(c, {});
    }
  }
  throw std::runtime_error("no such workload");
}

// Runs every op of the program on the CPU backend, one by one; `dropped` is the label of one that is left out.
void run_on_cpu(const Program& program, TextbookMachine& memory, const std::string& dropped = "") {
  const std::unique_ptr<Backend> backend = open_cpu_backend();
  for (const OpCall& op : program.ops()) {
    if (op.label == dropped) continue;
    std::vector<ValueId> ids = op.inputs;
    ids.insert(ids.end(), op.outputs.begin(), op.outputs.end());
    std::vector<Tensor> tensors;
    for (const ValueId id : ids) {
      const Value& value = program.value(id);
      tensors.push_back({value.spec, memory.data(value.storage) + value.offset_bytes});
    }
    const Plan plan = backend->plan(op, specs_of(program, ids));
    const Buffer workspace = backend->allocate(std::max<std::size_t>(plan->workspace_bytes(), 1));
    backend->run(backend->bind(plan, tensors, {workspace.data(), workspace.bytes()}));
  }
}

std::vector<EndToEndResult> compare(const std::string& recipe, const Program& program,
                                    const std::string& dropped = "") {
  const Case c = tiny_step(recipe);
  TextbookMachine memory(program);
  memory.fill_sources(c.id_without_ranks(), seed, program);
  run_on_cpu(program, memory, dropped);
  return end_to_end(program, c.id_without_ranks(), seed, [&](ValueId id) { return memory.view(id); });
}

std::vector<EndToEndResult> compare(const std::string& recipe, const std::string& dropped = "") {
  return compare(recipe, build(tiny_step(recipe)), dropped);
}

class EndToEnd : public testing::TestWithParam<const char*> {};

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
  const Fused fused = fuse(build(tiny_step(GetParam())), open_cpu_backend()->fused_ops());
  // embedding + ln1, residual1 + ln2, residual2 + ln_f; loss + its gradient
  ASSERT_EQ(fused.rewrites.size(), 4U);
  for (const EndToEndResult& result : compare(GetParam(), fused.program)) {
    EXPECT_TRUE(result.passed()) << result.tensor << ": error " << result.error << ", allowed " << result.allowed
                                 << ", norm " << result.norm;
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, EndToEnd, testing::Values("f32", "bf16"));

}  // namespace
}  // namespace gpubench
