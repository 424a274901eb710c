// Whole training steps of the suites, small, for the oracle: in one type, in mixed precision, on two ranks, and each of
// these fused.
#include <stdexcept>

#include "reference/ops/transform/fuse.h"
#include "suites/suites.h"
#include "tests/reference/ops/oracle/programs.h"

namespace gpubench::testing {
namespace {

Program step_of(const std::string& suite, const std::string& workload, const Dims& dims, const std::string& recipe,
                int ranks) {
  for (const Suite& one : all_suites()) {
    for (const auto& each : one.workloads) {
      if (one.name != suite || each->info().name != workload) continue;
      Case c;
      c.suite = suite;
      c.workload = workload;
      c.dims = dims;
      c.recipe = recipe;
      c.ranks = ranks;
      return each->build(c);
    }
  }
  throw std::runtime_error("no workload " + suite + "/" + workload);
}

}  // namespace

void add_models(OraclePrograms& all) {
  const auto add = [&](const std::string& workload, const Dims& dims) {
    for (const auto& [recipe, ranks] : {std::pair("f32", 1), std::pair("bf16", 1), std::pair("f32", 2)}) {
      const std::string name = workload + " " + to_string(dims) + " " + recipe + " x" + std::to_string(ranks);
      Program step = step_of("transformer", workload, dims, recipe, ranks);
      std::vector<FusionClaim> every;
      for (const FusionRule& rule : fusion_rules()) every.push_back({rule.kind});
      all.push_back({name + " fused", fuse(step, every).program});
      all.push_back({name, std::move(step)});
    }
  };
  add("gpt2_train_step", {{"b", 2}, {"s", 7}, {"layers", 2}, {"h", 12}, {"heads", 3}, {"vocab", 19}});
  add("gpt2_block", {{"b", 2}, {"s", 7}, {"h", 12}, {"heads", 3}});
  add("llama_train_step",
      {{"b", 2}, {"s", 5}, {"layers", 2}, {"h", 24}, {"heads", 6}, {"kv", 2}, {"f", 20}, {"vocab", 17}});
  add("llama_block", {{"b", 2}, {"s", 5}, {"h", 24}, {"heads", 6}, {"kv", 3}, {"f", 20}});
}

}  // namespace gpubench::testing
