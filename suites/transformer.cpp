// Suite transformer: training steps of transformers, forward to AdamW: blocks at the sizes of real models, and whole
// models. On several ranks each has the case's batch (weak scaling); gradients are reduced between ranks.
#include "harness/core/step_parts.h"
#include "suites/models/models.h"
#include "suites/suites.h"

namespace gpubench::suites {
namespace {

// For models whose linear layers may be 8-bit: the extents that their products sum over are multiples of 16.
std::vector<std::string> linear_recipes() {
  std::vector<std::string> recipes = training_recipes();
  recipes.emplace_back("f8_hybrid");
  return recipes;
}

Grid gpt2_blocks() {
  const auto point = [](std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t heads, std::string label,
                        Tier tier) {
    return Point{{{"b", b}, {"s", s}, {"h", h}, {"heads", heads}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = linear_recipes();
  grid.points = {
      point(1, 256, 256, 4, "gpt2 block, a third of the width", Tier::smoke),
      point(1, 512, 768, 12, "gpt2-124m block", Tier::quick),
      point(4, 1024, 768, 12, "gpt2-124m block", Tier::standard),
      point(4, 1024, 1600, 25, "gpt2-1558m block", Tier::large),
      point(1, 2048, 12288, 96, "gpt3-175b block", Tier::large),
  };
  return grid;
}

Grid gpt2_models() {
  const auto in_micro_batches = [](Point step, std::int64_t micro, bool recompute) {
    step.dims.emplace_back("micro", micro);
    step.label += " in micro-batches";
    if (recompute) {
      step.modes = {recompute_mode};
      step.label += ", recomputed";
    }
    return step;
  };
  const auto masked = [](Point step) {
    step.recipes = {"f32", "bf16"};
    step.modes.emplace_back(masked_mode);
    step.label += ", 15% of the labels";
    return step;
  };
  Grid grid;
  grid.recipes = linear_recipes();
  grid.points = {
      gpt2_point(2, 64, 2, 128, 4, 512, "2-layer gpt2", Tier::smoke),
      in_micro_batches(gpt2_point(2, 64, 2, 128, 4, 512, "2-layer gpt2", Tier::smoke), 2, true),
      gpt2_point(4, 128, 4, 256, 4, 2048, "4-layer gpt2", Tier::quick),
      in_micro_batches(gpt2_point(4, 128, 4, 256, 4, 2048, "4-layer gpt2", Tier::standard), 4, false),
      masked(in_micro_batches(gpt2_point(4, 128, 4, 256, 4, 2048, "4-layer gpt2", Tier::quick), 4, false)),
      gpt2_point(4, 1024, 12, 768, 12, 50304, "gpt2-124m", Tier::standard),
      gpt2_point(16, 1024, 12, 768, 12, 50304, "gpt2-124m", Tier::large),
      gpt2_point(4, 1024, 24, 1024, 16, 50304, "gpt2-350m", Tier::large),
      gpt2_point(4, 1024, 36, 1280, 20, 50304, "gpt2-774m", Tier::large),
      gpt2_point(4, 1024, 48, 1600, 25, 50304, "gpt2-1558m", Tier::large),
      in_micro_batches(gpt2_point(4, 1024, 48, 1600, 25, 50304, "gpt2-1558m", Tier::large), 8, true),
  };
  return grid;
}

Grid llama_blocks() {
  const auto point = [](std::int64_t s, std::int64_t h, std::int64_t heads, std::int64_t kv, std::int64_t f,
                        std::string label, Tier tier) {
    return Point{{{"b", 1}, {"s", s}, {"h", h}, {"heads", heads}, {"kv", kv}, {"f", f}}, std::move(label), tier};
  };
  Grid grid;
  grid.recipes = linear_recipes();
  grid.points = {
      point(256, 256, 4, 2, 704, "llama3-8b block, a sixteenth of its width", Tier::smoke),
      point(512, 1024, 16, 4, 2816, "llama3-8b block, a quarter of its width", Tier::quick),
      point(2048, 4096, 32, 8, 14336, "llama3-8b block", Tier::standard),
      point(8192, 4096, 32, 8, 14336, "llama3-8b block", Tier::large),
      point(8192, 8192, 64, 8, 28672, "llama3-70b block", Tier::large),
  };
  return grid;
}

Grid llama_models() {
  Grid grid;
  grid.recipes = linear_recipes();
  grid.points = {
      llama_point(2, 64, 2, 128, 4, 2, 352, 512, "llama3, 2 narrow layers", Tier::smoke),
      // TinyLlama: Zhang et al., arXiv 2401.02385
      llama_point(1, 2048, 22, 2048, 32, 4, 5632, 32000, "tinyllama-1.1b", Tier::standard),
      llama_point(4, 2048, 22, 2048, 32, 4, 5632, 32000, "tinyllama-1.1b", Tier::large),
  };
  return grid;
}

Grid bert_models() {
  Grid grid;
  grid.recipes = training_recipes();
  grid.points = {
      gpt2_point(2, 49, 2, 64, 2, 512, "bert-base, 2 narrow layers", Tier::smoke),
      // vocabulary of 30522, padded to a multiple of 64
      gpt2_point(8, 512, 12, 768, 12, 30528, "bert-base", Tier::standard),
      gpt2_point(16, 512, 24, 1024, 16, 30528, "bert-large", Tier::large),
  };
  return grid;
}

Grid vit_models() {
  const auto point = [](std::int64_t n, std::int64_t image, std::int64_t layers, std::int64_t h, std::int64_t heads,
                        std::int64_t classes, std::string label, Tier tier) {
    return Point{{{"n", n},
                  {"image", image},
                  {"patch", 16},
                  {"layers", layers},
                  {"h", h},
                  {"heads", heads},
                  {"classes", classes}},
                 std::move(label),
                 tier};
  };
  Grid grid;
  grid.recipes = training_recipes();
  grid.points = {
      point(2, 64, 2, 64, 2, 10, "vit-b-16, 2 narrow layers", Tier::smoke),
      point(32, 224, 12, 768, 12, 1000, "vit-b-16", Tier::standard),
      point(256, 224, 12, 768, 12, 1000, "vit-b-16", Tier::large),
      point(64, 224, 24, 1024, 16, 1000, "vit-l-16", Tier::large),
  };
  return grid;
}

Grid dit_blocks() {
  Grid grid;
  grid.recipes = training_recipes();
  grid.points = {
      {{{"n", 1}, {"s", 64}, {"h", 1152}, {"heads", 16}}, "dit-xl-2 block, a quarter of its tokens", Tier::quick},
      {{{"n", 32}, {"s", 256}, {"h", 1152}, {"heads", 16}}, "dit-xl-2 block", Tier::standard},
  };
  return grid;
}

Grid dit_models() {
  const auto point = [](std::int64_t n, std::int64_t image, std::int64_t layers, std::int64_t h, std::int64_t heads,
                        std::int64_t classes, std::string label, Tier tier) {
    return Point{{{"n", n},
                  {"image", image},
                  {"channels", 4},
                  {"patch", 2},
                  {"layers", layers},
                  {"h", h},
                  {"heads", heads},
                  {"classes", classes}},
                 std::move(label),
                 tier};
  };
  Grid grid;
  grid.recipes = {"f32", "tf32", "bf16"};  // not f16: loss scaling needs a loss that an op computes
  Point smallest = point(2, 8, 1, 64, 2, 10, "dit-s-2, a narrow layer", Tier::smoke);
  smallest.recipes = {"bf16"};
  grid.points = {
      smallest,
      point(32, 32, 12, 384, 6, 1000, "dit-s-2", Tier::standard),
      point(32, 32, 28, 1152, 16, 1000, "dit-xl-2", Tier::large),
  };
  return grid;
}

}  // namespace

Suite transformer() {
  return {"transformer",
          "whole training steps of transformers: forward, backward, clip, AdamW",
          {
              declare_step("gpt2_block", "one GPT-2 block: forward, backward, AdamW step", "tokens", {"b", "s"},
                           gpt2_blocks(), gpt2_block_step, {.tensors = true, .sequences = true}),
              declare_step("gpt2_train_step", "a whole GPT-2 training step: embedding to AdamW", "tokens", {"b", "s"},
                           gpt2_models(), gpt2_train_step, {.tensors = true, .sequences = true, .blocks = true}),
              declare_step("llama_block", "one Llama block: forward, backward, AdamW step", "tokens", {"b", "s"},
                           llama_blocks(), llama_block_step, {.tensors = true, .sequences = true}),
              declare_step("llama_train_step", "a whole Llama training step: embedding to AdamW", "tokens", {"b", "s"},
                           llama_models(), llama_train_step, {.tensors = true, .sequences = true, .blocks = true}),
              declare_step("bert_train_step", "a whole BERT training step on masked tokens: embedding to AdamW",
                           "tokens", {"b", "s"}, bert_models(), bert_train_step, {.tensors = true, .blocks = true}),
              declare_step("dit_block", "one block of a diffusion transformer: forward, backward, AdamW step", "images",
                           {"n"}, dit_blocks(), dit_block_step),
              declare_step("dit_train_step", "a whole diffusion transformer training step: latents to AdamW", "images",
                           {"n"}, dit_models(), dit_train_step, {.blocks = true}),
              declare_step("vit_train_step", "a whole vision transformer training step: images to AdamW", "images",
                           {"n"}, vit_models(), vit_train_step, {.tensors = true, .blocks = true}),
          }};
}

}  // namespace gpubench::suites
