// Host time to plan a training step on many ranks, by stage: gpt2-124m, data-parallel, bf16. Goal: all stages below 1 s
// of CPU at 64 ranks and below 10 s at 512.
//
// build: model, backward, replicas, reductions. digest: of the definition. work: FLOP and bytes of the ops.
// dependencies: between ops. fuse: with all fused ops. plan: every op after fuse(), on the sim backend, with keys of
// the tuning cache.
#include <benchmark/benchmark.h>

#include <array>

#include "harness/core/tuning_cache.h"
#include "harness/plan/plan.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/transform/batches.h"
#include "reference/ops/transform/fuse.h"
#include "suites/suites.h"
#include "tests/fakes/sim/sim_backend.h"
#include "tests/reference/ops/transform/mesh_step.h"

namespace gpubench {
namespace {

constexpr std::array claims{FusionClaim{residual_norm_forward_kind, true},
                            FusionClaim{cross_entropy_forward_backward_kind, true},
                            FusionClaim{gemm_gelu_bias_gradient_kind, true},
                            FusionClaim{gemm_weight_bias_gradient_kind, true}, FusionClaim{clip_adamw_kind, true}};

struct Step {
  std::shared_ptr<const Workload> workload;
  Case c;
};

/// The smallest batch of gpt2-124m; the number of ops does not depend on it.
Step gpt2_124m(int ranks) {
  Selection selection;
  selection.tier = Tier::standard;
  selection.precisions = {"bf16"};
  selection.filters = {"gpt2_train_step/b=4,s=1024,layers=12,"};
  for (const Suite& suite : all_suites()) {
    if (suite.name != "transformer") continue;
    for (PlannedCase& one : declared_cases(std::array{suite}, selection)) {
      one.c.ranks = ranks;
      return {one.workload, std::move(one.c)};
    }
  }
  throw ProgramError("the transformer suite has no gpt2-124m at the standard tier any more");
}

void report(benchmark::State& state, const Program& program) {
  state.counters["ops"] = static_cast<double>(program.ops().size());
  state.counters["values"] = static_cast<double>(program.values().size());
}

void build(benchmark::State& state) {
  const Step step = gpt2_124m(static_cast<int>(state.range(0)));
  for (auto _ : state) report(state, step.workload->build(step.c));
}

void digest(benchmark::State& state) {
  const Step step = gpt2_124m(static_cast<int>(state.range(0)));
  const Program program = step.workload->build(step.c);
  for (auto _ : state) benchmark::DoNotOptimize(definition_digest(step.c, *step.workload, program));
}

void work(benchmark::State& state) {
  const Step step = gpt2_124m(static_cast<int>(state.range(0)));
  const Program program = step.workload->build(step.c);
  for (auto _ : state) benchmark::DoNotOptimize(cost_of(program));
}

void dependencies(benchmark::State& state) {
  const Step step = gpt2_124m(static_cast<int>(state.range(0)));
  const Program program = step.workload->build(step.c);
  for (auto _ : state) benchmark::DoNotOptimize(program.dependencies());
}

void fused(benchmark::State& state) {
  const Step step = gpt2_124m(static_cast<int>(state.range(0)));
  const Program program = step.workload->build(step.c);
  for (auto _ : state) report(state, fuse(program, claims).program);
}

void plan_all(const Program& program) {
  const std::unique_ptr<Backend> backend = open_sim_backend("");
  for (const OpCall& call : program.ops()) {
    std::vector<TensorSpec> specs = specs_of(program, call.inputs);
    const std::vector<TensorSpec> outputs = specs_of(program, call.outputs);
    specs.insert(specs.end(), outputs.begin(), outputs.end());
    benchmark::DoNotOptimize(choice_key(call, specs));
    benchmark::DoNotOptimize(backend->plan(call, specs));
  }
}

void plan(benchmark::State& state) {
  const Step step = gpt2_124m(static_cast<int>(state.range(0)));
  const Program program = fuse(step.workload->build(step.c), claims).program;
  for (auto _ : state) plan_all(program);
}

// A worker's stages for a case before it allocates memory.
void all_stages(benchmark::State& state) {
  const Step step = gpt2_124m(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const Program program = step.workload->build(step.c);
    benchmark::DoNotOptimize(definition_digest(step.c, *step.workload, program));
    benchmark::DoNotOptimize(cost_of(program));
    const Fused result = fuse(program, claims);
    benchmark::DoNotOptimize(result.program.dependencies());
    plan_all(result.program);
  }
}

// Builds and plans one of 16,384 ranks of a step with 96 layers in stages along pp, with dependencies.
void one_of_many(benchmark::State& state) {
  constexpr int replicas = 256;
  const Mesh mesh({{"tp", 8}, {"pp", 8}});
  const int rank = 9'876;
  for (auto _ : state) {
    const testing::MeshStep step = testing::mesh_step(mesh, {rank % mesh.ranks()}, 96);
    const Program program =
        data_parallel(step.program, {.ranks = replicas, .bucket_bytes = 1, .held = {rank}}, step.gradients);
    benchmark::DoNotOptimize(program.dependencies());
    plan_all(program);
    report(state, program);
    state.counters["ranks"] = program.mesh().ranks();
  }
}

void ranks(benchmark::internal::Benchmark* stage) {
  for (const int count : {1, 64, 512}) stage->Arg(count);
  stage->ArgName("ranks")->Unit(benchmark::kMillisecond);
}

BENCHMARK(build)->Apply(ranks);
BENCHMARK(digest)->Apply(ranks);
BENCHMARK(work)->Apply(ranks);
BENCHMARK(dependencies)->Apply(ranks);
BENCHMARK(fused)->Apply(ranks);
BENCHMARK(plan)->Apply(ranks);
BENCHMARK(all_stages)->Apply(ranks);
BENCHMARK(one_of_many)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpubench

BENCHMARK_MAIN();
