// The suites' training steps, small: in one type, in mixed precision and fused, and on two ranks and fused.
#include "reference/ops/transform/fuse.h"
#include "tests/reference/ops/oracle/programs.h"
#include "tests/suites/workloads.h"

namespace gpubench::testing {

void add_models(OraclePrograms& all) {
  std::vector<FusionClaim> every;
  for (const FusionRule& rule : fusion_rules()) every.push_back({rule.kind});
  const auto add = [&](const std::string& suite, const std::string& workload, const Dims& dims, int max_ranks = 2) {
    struct Variant {
      const char* recipe;
      int ranks;
      bool fused;
    };
    for (const Variant& v : {Variant{"f32", 1, false}, Variant{"bf16", 1, true}, Variant{"f32", 2, true}}) {
      if (v.ranks > max_ranks) continue;
      Program step = program_of({suite, workload, dims, v.recipe, {}, v.ranks, "of the oracle"});
      const std::string name = workload + " " + to_string(dims) + " " + v.recipe + " x" + std::to_string(v.ranks);
      if (v.fused) step = fuse(step, every).program;
      all.push_back({name + (v.fused ? " fused" : ""), std::move(step)});
    }
  };
  const Dims gpt2{{"b", 2}, {"s", 7}, {"layers", 2}, {"h", 12}, {"heads", 3}, {"vocab", 19}};
  add("transformer", "gpt2_train_step", gpt2);
  add("scaling", "gpt2_weak", gpt2);
  add("scaling", "gpt2_strong", gpt2);
  add("scaling", "gpt2_stages", gpt2, 1);  // parallel_steps_test covers several ranks, also for the models below
  add("transformer", "gpt2_block", {{"b", 2}, {"s", 7}, {"h", 12}, {"heads", 3}});
  const Dims llama{{"b", 2}, {"s", 5}, {"layers", 2}, {"h", 24}, {"heads", 6}, {"kv", 2}, {"f", 20}, {"vocab", 17}};
  add("transformer", "llama_train_step", llama);
  add("scaling", "llama_shared", llama, 1);
  add("scaling", "llama_sequences", llama, 1);
  add("transformer", "llama_block", {{"b", 2}, {"s", 5}, {"h", 24}, {"heads", 6}, {"kv", 3}, {"f", 20}});
  const Dims mixtral{{"b", 2},  {"s", 5},  {"layers", 2},  {"h", 24}, {"heads", 6},
                     {"kv", 2}, {"f", 20}, {"experts", 5}, {"k", 2},  {"vocab", 17}};
  add("moe", "mixtral_train_step", mixtral);
  add("scaling", "mixtral_weak", mixtral);
  add("scaling", "mixtral_experts", mixtral, 1);
  add("moe", "mixtral_block",
      {{"b", 2}, {"s", 5}, {"h", 24}, {"heads", 6}, {"kv", 3}, {"f", 20}, {"experts", 4}, {"k", 3}});
  add("moe", "deepseek_block",
      {{"b", 2},
       {"s", 5},
       {"h", 24},
       {"heads", 3},
       {"q_rank", 10},
       {"kv_rank", 8},
       {"nope", 6},
       {"rope", 4},
       {"v", 5},
       {"f", 20},
       {"experts", 7},
       {"k", 3}});
  add("moe", "deepseek_layer", {{"b", 2}, {"s", 5}, {"h", 24}, {"f", 20}, {"experts", 7}, {"k", 3}});
  add("transformer", "bert_train_step", {{"b", 2}, {"s", 17}, {"layers", 2}, {"h", 12}, {"heads", 2}, {"vocab", 19}});
  add("transformer", "vit_train_step",
      {{"n", 3}, {"image", 12}, {"patch", 4}, {"layers", 2}, {"h", 12}, {"heads", 2}, {"classes", 5}});
  add("transformer", "dit_block", {{"n", 2}, {"s", 7}, {"h", 12}, {"heads", 2}});
  add("transformer", "dit_train_step",
      {{"n", 3}, {"image", 6}, {"channels", 2}, {"patch", 2}, {"layers", 2}, {"h", 12}, {"heads", 2}, {"classes", 5}});
  add("convnet", "resnet_block", {{"n", 3}, {"h", 7}, {"c", 8}, {"width", 2}, {"stride", 1}});
  add("convnet", "resnet_block", {{"n", 3}, {"h", 7}, {"c", 6}, {"width", 3}, {"stride", 2}});
  add("convnet", "vgg_train_step", {{"n", 3}, {"image", 32}, {"width", 2}, {"classes", 5}});
  const Dims resnet{{"n", 4}, {"image", 64}, {"width", 3}, {"depth", 50}, {"classes", 7}};
  add("convnet", "resnet_train_step", resnet);
  add("scaling", "resnet_weak", resnet);
  add("scaling", "resnet_strong", resnet);
}

std::vector<std::string> training_steps() {
  std::vector<std::string> names;
  for (const Suite& one : all_suites()) {
    if (one.only_by_name) continue;  // suite variants
    for (const auto& each : one.workloads) {
      if (each->info().cache == CacheMode::step && each->info().max_ranks > 1) names.push_back(each->info().name);
    }
  }
  return names;
}

}  // namespace gpubench::testing
